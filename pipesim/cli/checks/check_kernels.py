"""``pipesim check PATH``: the kernels of a folder, a program, a library: one in full, or a line for each."""

import argparse
import signal
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from pipesim.answers.project_settings import TriagePolicy
from pipesim.answers.spread import processors
from pipesim.cli.arguments import flag_of, has_kernels, require_positive, strictness_of
from pipesim.cli.found_kernels import questions
from pipesim.cli.output import counted_units, remark, show_answer
from pipesim.errors import ParameterError
from pipesim.formats.documents import document
from pipesim.inputs import confined
from pipesim.launches.found import FoundQuestion, check_all, stamps
from pipesim.process.watch import current, signal_of
from pipesim.report.pages.checks.kernels import kernels_lines
from pipesim.targets import SOURCES

if TYPE_CHECKING:
    from pipesim.answers.views.kernels import KernelRow

_LOOK_S = 1.0  #: between two looks at files
#: Options that ask about one kernel, by their names in the line.
_OF_ONE = (
    "any", "replay", "redundant", "against", "fix", "sarif", "redact", "update_baseline", "ctas", "param", "launch",
)  # fmt: skip


def _questions(options: argparse.Namespace, names: list[str], policy: TriagePolicy) -> list[FoundQuestion]:
    """Each kernel of the paths, as it is to be checked."""
    how = (strictness_of(options), options.max_states, options.time_limit, policy, tuple(options.source_roots))
    return [each for name in names for each in questions(options, name, how)]


def carry_out_kernels(options: argparse.Namespace, names: list[str], policy: TriagePolicy) -> int | None:
    """The lines of all kernels of the paths; the exit code. None where there is one kernel, which is checked in full.

    ``policy``: what fails.
    """
    for other in (name for name in names if not (has_kernels(options, name) or name.endswith(".ptx"))):
        fact = f"{other} is not a folder, program, library, object or .ptx file, whose kernels are listed"
        raise ParameterError(fact, correction="give two commands, or leave out --entry, --list, --watch and --no-cache")
    asked = _questions(options, names, policy)
    for folder in (path for path in map(Path, names) if path.is_dir()):
        if left := [each.relative_to(folder) for each in folder.rglob("*") if each.suffix in (*SOURCES, ".py")]:
            said = f"{min(left)}" + f" and {len(left) - 1:,} more" * bool(left[1:])
            remark(f"sources of {folder} are neither compiled nor run: {said}; name each, as {folder / min(left)}")
    if len(asked) == 1 and asked[0].kernel.text and not (options.list or options.watch):
        options.asked = asked  # what is compiled is not compiled again
        return None
    for each in (*_OF_ONE, *(["format"] if options.format not in (None, "text", "json") else [])):
        if getattr(options, each):
            fact = f"{flag_of(each)} asks about one kernel, and there are {len(asked):,}"
            raise ParameterError(fact, correction="name one with --entry NAME")
    require_positive(options, "jobs")
    return watched(options, names, policy) if options.watch else _show(options, names, asked, [])[0]


def _show(
    options: argparse.Namespace, paths: list[str], asked: list[FoundQuestion], before: "list[KernelRow]"
) -> "tuple[int, list[KernelRow]]":
    """Check, and show what is not as ``before``; the exit code, and all of it."""
    if options.list:
        rows = [each.row for each in asked]
    else:
        current().start(None)  # each kernel has its own limit
        jobs, keeps = 1 if confined else options.jobs or processors(), not (options.no_cache or confined)
        with counted_units("checking kernels") as tell:
            rows, known = check_all(asked, jobs, lambda over: tell(over, len(asked)), keeps=keeps)
        if known and not before:
            remark(f"{known:,} of {len(asked):,} verdicts are those of an earlier check (--no-cache checks again)")
    codes = {each.exit_code for each in rows} | ({3} - {3 * (options.list or any(each.verdict for each in rows))})
    code = max(codes - {0, 1, 3}, default=0) or next((each for each in (1, 3) if each in codes), 0)
    new = [row for row in rows if row not in before]
    if new or not before:
        from pipesim.ptx.launch.settings import setting_words  # with what a list does without

        made = document("check-kernels", code, paths=paths, kernels=new)
        given = [*paths, *(f"-I{each}" for each in options.include), *sum(map(setting_words, options.sets), ())]
        show_answer(options, made, lambda width: kernels_lines(new, given, width, None if options.list else code))
    return code, rows


def watched(
    options: argparse.Namespace, paths: list[str], policy: TriagePolicy,
    rounds: int = -1, wait: Callable[[float], None] = sleep,
) -> int:  # fmt: skip
    """Check, and again where a file has changed, until Ctrl-C, or as many ``rounds``; the exit code of the last."""
    code, rows, seen = 0, list["KernelRow"](), None
    try:
        while rounds:
            now = list(stamps([each for path in map(Path, paths) for each in (path, *path.rglob("*"))]))
            if now != seen:
                asked = _questions(options, paths, policy)
                seen, (code, rows) = now, _show(options, paths, asked, rows)
            current().start(None)
            wait(_LOOK_S)
            rounds -= 1
    except KeyboardInterrupt as error:
        if signal_of(error) != signal.SIGINT:
            raise
        current().resume()
    return code
