"""Keep the documentation true: fill in what commands really print and what files really hold.

``python tools/docs_output.py`` rewrites the blocks; ``--check`` exits with 1 if one is stale. A block is fenced and
follows a marker: ``<!-- output of: pipesim ... -->`` (standard output at 80 columns; ``output of, exit 1:`` wants that
exit code, without it any is accepted; also ``pytest ...``; with ``| start | end`` a part), ``<!-- file: path -->``,
``<!-- excerpt: path | start | end -->`` (from the one line that has the first text to before the next that has the
second, if there is one), ``<!-- diff: before after -->``, ``<!-- plain: NAME right -->`` (what ``pipesim check
NAME.ptx`` prints of a kernel of tests/plain_cuda, or of its ``wrong`` twin, then from the fault on). Tables are not
fenced: ``<!-- operations -->``, ``<!-- options -->``, ``<!-- profile fields -->`` and others. What the Python of a page
prints is filled in as well (``python_blocks.py``).
"""

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from pipesim.cli.main import COMMANDS
from pipesim.cli.main import main as pipesim
from pipesim.model.ops import OPERANDS
from pipesim.model.tables import WORK_CLASSES
from pipesim.report.text.words import percent
from pipesim.timed.profile import FIELDS, load_profile, profile_names
from tests.support.plain_cuda import PLAIN, PlainKernel
from tools import python_blocks

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))
_FENCED = re.compile(
    r"(<!-- (output of(?:, exit \d)?|file|excerpt|diff|plain): (.+?) -->\n```\w*\n)(.*?)(^```$)",
    re.DOTALL | re.MULTILINE,
)
_AT_A_LIMIT = re.compile(r"(time limit after) [\d,]+")  # how far a step came depends on the machine
# Of the environment, what changes what pytest prints: options, and CI, under which its last lines are not cut short.
_PYTEST_READS = {"CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR", "PY_COLORS", "PYTEST_THEME", "PYTHONPATH"}
_SECONDS = re.compile(r"in \d+\.\d+s\b")
_TABLE = re.compile(
    r"(<!-- (operations|options|profile fields|work classes|protocols|stated errors|plain kernels) -->\n)((?:\|.*\n)*)"
)


def output_of(command: str, exit_code: int | None = None, folder: Path = ROOT) -> str:
    """What a ``pipesim`` command prints on standard output, 80 columns wide, run from the repository's root.

    ValueError if it ends with another exit code than the page says.
    """
    program, *arguments = shlex.split(command)
    if program == "pytest":
        return _output_of_pytest(arguments, exit_code)
    if program != "pipesim":
        raise ValueError(f"the documentation runs pipesim, not {program}")
    stream = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(stream),
    ):
        ended = _exit_code(arguments)
    if exit_code not in (None, ended):
        raise ValueError(f"{command}: exit code {ended}, and the page says {exit_code}")
    printed = _AT_A_LIMIT.sub(r"\1 …", stream.getvalue()).replace(f"{ROOT}/", "")
    return "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"


def _exit_code(arguments: list[str]) -> int:
    """Run a command; a help ends with SystemExit, as argparse has it."""
    try:
        return pipesim(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def _output_of_pytest(arguments: list[str], exit_code: int | None) -> str:
    """What pytest prints, with pipesim's plugin and without any settings; how long it took is left out."""
    plugin = ("-p", "no:pipesim", "-p", "pipesim.pytest_plugin", "-p", "no:cacheprovider")
    elsewhere = {name: value for name, value in os.environ.items() if name not in _PYTEST_READS}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-c", os.devnull, f"--rootdir={ROOT}", *arguments],
        env={**elsewhere, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=False,
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    if exit_code not in (None, ran.returncode):
        raise ValueError(f"pytest {shlex.join(arguments)}: exit code {ran.returncode}, and the page says {exit_code}")
    return _SECONDS.sub("in … s", ran.stdout.strip("\n")) + "\n"


def page(text: str) -> str:
    """A page with every block as it must be now."""
    return _TABLE.sub(_table, _FENCED.sub(_fenced, text))


def _fenced(found: re.Match[str]) -> str:
    head, kind, what, _, tail = found.groups()
    match kind:
        case _ if kind.startswith("output of"):
            command, *limits = what.split(" | ")
            body = output_of(command, int(kind[-1]) if kind[-1].isdigit() else None)
            body = part(body, *limits) if limits else body
        case "plain":
            name, twin = what.split()
            (kernel,) = (each for each in PLAIN if each.name == name)
            body = _plain_output(kernel, f"pipesim check {name}.ptx", wrong=twin == "wrong")
            body = body[max(body.rfind("✗ 1 fault"), 0) :]
        case "diff":
            body = difference(*what.split())
        case "excerpt":
            body = excerpt(*what.split(" | "))
        case _:
            body = (ROOT / what).read_text(encoding="utf-8")
    return f"{head}{body}{tail}"


def excerpt(name: str, start: str, end: str) -> str:
    """A part of a file: C++ as far left as can be; Python as it is, so that it can be pasted into a function."""
    text = part((ROOT / name).read_text(encoding="utf-8"), start, end)
    return text if name.endswith(".py") else textwrap.dedent(text)


def part(text: str, start: str, end: str | None = None) -> str:
    """The lines from the only one with ``start`` to before the next with ``end``, or all that follow."""
    lines = text.splitlines()
    (first,) = (n for n, line in enumerate(lines) if start in line)
    after = None if end is None else next(n for n, line in enumerate(lines) if n > first and end in line)
    return "\n".join(lines[first:after]).strip("\n") + "\n"


def difference(before: str, after: str) -> str:
    """What makes one file of the other, with a line of context."""
    one, two = ((ROOT / name).read_text(encoding="utf-8").splitlines() for name in (before, after))
    return "\n".join(difflib.unified_diff(one, two, Path(before).name, Path(after).name, n=1, lineterm="")) + "\n"


def _table(found: re.Match[str]) -> str:
    head, kind, _ = found.groups()
    if kind == "protocols":
        return head + "".join(_protocols())
    if kind == "plain kernels":
        return head + "".join(_plain_kernels())
    if kind == "stated errors":
        return head + "".join(_stated_errors())
    if kind == "options":
        rows = [f"| `{name}` | {' '.join(f'`{option}`' for option in options)} |" for name, options in _options()]
        return head + "\n".join(["| command | options |", "|---|---|", *rows]) + "\n"
    if kind == "operations":
        rows = [
            f"| `{op.name}` | {op.value} | {', '.join(f'`{name}`' for name in names)} |"
            for op, names in OPERANDS.items()
        ]
        return head + "\n".join(["| operation | code | operands |", "|---|---|---|", *rows]) + "\n"
    named = WORK_CLASSES if kind == "work classes" else FIELDS
    rows = [f"| `{name}` | {meaning} |" for name, meaning in named.items()]
    return head + "\n".join(["| name | meaning |", "|---|---|", *rows]) + "\n"


def _options() -> Iterator[tuple[str, list[str]]]:
    """Each command with its arguments, without those that every command has."""
    for command in COMMANDS:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        every = parser._actions  # noqa: SLF001  # argparse has no other list of them
        named = [action.option_strings[-1] if action.option_strings else _place(action) for action in every]
        alike = ["--strict-…" if name.startswith("--strict-") else name for name in named]
        yield command.name, [name for name in dict.fromkeys(alike) if name not in ("--help", "--json", "--time-limit")]


def _place(action: argparse.Action) -> str:
    return str(action.metavar or action.dest).upper()


def _plain_output(kernel: PlainKernel, command: str, *, wrong: bool) -> str:
    """What a command prints of a kernel in the current folder."""
    with tempfile.TemporaryDirectory() as folder:
        kernel.write(Path(folder), wrong=wrong)
        return output_of(command, folder=Path(folder))


def _plain_kernels() -> Iterator[str]:
    """A table of the kernels without mbarriers: the mistake of each, and what is said of it."""
    yield "| kernel | its mistake | right | with the mistake | at | likely correction |\n|---|---|---|---|---|---|\n"
    for each in PLAIN:
        command = f"pipesim check {each.name}.ptx --format brief"
        right, wrong = (
            json.loads(_plain_output(each, f"{command}{' --quick' * (not wrong)}", wrong=wrong))["protocols"][
                f"{each.name}.ptx"
            ]["brief"]
            for wrong in (False, True)
        )
        link = f"[`{each.name}`](../tests/plain_cuda/{each.name}.cu)"
        cells = [link, each.mistake, right["verdict"], f"{wrong['verdict']}: `{wrong['kind']}`"]
        yield f"| {' | '.join([*cells, ', '.join(wrong['places']), wrong['correction'] or 'none'])} |\n"


def _stated_errors() -> Iterator[str]:
    """A table of what the built-in profiles state of their own error."""
    yield "| profile | kernel | figure | CTAs | configurations | median | worst |\n|---|---|---|---|---|---|---|\n"
    for name in profile_names():
        for each in load_profile(name).errors:
            ctas = " to ".join(map(str, dict.fromkeys(each.ctas)))
            figures = f"{percent(each.median_permille)} | {percent(each.worst_permille)}"
            yield f"| `{name}` | `{each.kernel}` | {each.figure} | {ctas} | {each.configurations} | {figures} |\n"


def _protocols() -> Iterator[str]:
    """A table with a row for each of ``pipesim list``."""
    yield "| protocol | what it is | roles of a CTA | CTAs |\n|---|---|---|---|\n"
    for found in json.loads(output_of("pipesim list --json", 0))["protocols"]:
        roles = " · ".join(f"{warps} {role}" for role, warps in found["roles"])
        link = f"[`{found['name']}`](protocols/{found['name']}.md)"
        yield f"| {link} | {found['summary'].rstrip('.')} | {roles} | {found['ctas']} |\n"


def main(argv: list[str] | None = None) -> int:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these, for example docs/check.md")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page is stale")
    options = parser.parse_args(argv)
    unknown = [name for name in options.pages if name not in PAGES]
    if unknown:
        parser.error(f"no page with blocks: {', '.join(unknown)}")
    stale = 0
    for name in options.pages or PAGES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = page(python_blocks.filled(before, name) if name in python_blocks.PAGES else before)
        if after == before:
            continue
        stale += 1
        if options.check:
            print(f"stale: {name}; run python tools/docs_output.py")
        else:
            path.write_text(after, encoding="utf-8")
            print(f"rewrote {name}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
