"""``pipesim check``: check protocols for every schedule."""

import argparse
from dataclasses import replace
from pathlib import Path

from pipesim.cli import arguments as given
from pipesim.cli.checks.check_protocols import Checks, check_all
from pipesim.cli.completers import protocols
from pipesim.errors import ParameterError


def _arguments(parser: argparse.ArgumentParser) -> None:
    from pipesim.answers.budget import LEAST_OF_A_KERNEL, MOST_OF_A_KERNEL, USUAL_STATES

    named = (
        "built-in names (see `pipesim list`), file.py (all of its protocols), file.py:function (a protocol, or a "
        "kernel of Triton or Gluon; the file is run), programs' .json, kernels' .ptx; a folder, a program, a library, "
        "an object: all kernels with PTX in it"
    )
    given.add_chosen(parser, named=named, every="check every built-in protocol")
    given.add_params(parser, "a parameter of every protocol named; may be repeated")
    given.add_ctas(parser)
    given.add_launch(parser)
    given.add_found(parser)
    text = (
        "a word of a .ptx kernel's parameters, named as --set does it, that may have any value from LOW (1) to "
        "HIGH (what its type holds) in steps of STEP (1), as K=64..:64, or a trip count of a protocol, also with "
        "--quick; may be repeated"
    )
    given.add_values(parser, "--any", "NAME[=LOW..[HIGH][:STEP]]", text)
    text = (
        "limit of the search, in states, where one run does not decide "
        f"(default {USUAL_STATES:,}; of a kernel's PTX {LEAST_OF_A_KERNEL:,} to {MOST_OF_A_KERNEL:,}, by its length)"
    )
    given.add_value(parser, "--max-states", "N", text, int)
    given.add_flag(
        parser, "--quick", "the verdict alone: no smallest size, shorter schedule, corrections or other sizes"
    )
    _add_questions(parser)
    given.add_strict(parser)
    _add_levels(parser)
    given.add_untrusted(parser)
    _add_outputs(parser)
    given.add_force(parser)


def _add_questions(parser: argparse.ArgumentParser) -> None:
    text = "which waits, fences, arrives and barriers of one proved protocol could be removed"
    given.add_flag(parser, "--redundant", text)
    text = "the launches of a launches.json in their order: bytes that two of them access, and what orders them"
    given.add_value(parser, "--sequence", "FILE", text, Path)
    text = (
        "compare one protocol with an older version of it, checked with the same options: findings that are new, "
        "gone or unchanged, and what is synchronised otherwise; exit code 1 if a finding is new, else 3 if the newer "
        "version is unknown, else 0"
    )
    given.complete(given.add_value(parser, "--against", "OLD", text), protocols)
    text = "replay one schedule: the line at the end of a finding, or @FILE[:N] of a --json"
    given.add_value(parser, "--replay", "TEXT", text)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("text", "json", "brief", "github", "junit", "sarif"),
        help="a report, JSON, the verdict and the first finding of each as JSON of at most 2 kB, annotations for a "
        "GitHub workflow, JUnit XML, or SARIF 2.1.0 (default text)",
    )  # fmt: skip
    text = (
        "a report to be shown to others: without source lines, parameters, what these were compared with, and folders"
    )
    given.add_flag(parser, "--redact", text)
    given.add_flag(parser, "--fix", "print the first correction that is an edit of one source line, as a diff")
    given.add_flag(parser, "--write", "with --fix: write it, where the file is below the current folder")
    given.add_value(parser, "--sarif", "FILE", "write the findings to FILE as SARIF 2.1.0, too", Path)


def _add_levels(parser: argparse.ArgumentParser) -> None:
    from pipesim.answers.views.conclusion import Basis

    levels = parser.add_argument_group(
        "what fails", "beside `# pipesim: ignore[KIND] reason` at a line, and [tool.pipesim] of pyproject.toml"
    )
    levels.add_argument(
        "--fail-on", choices=[basis.value for basis in Basis],
        help="findings as sure as this fail: in every schedule, in one that PTX permits, or that PTX leaves undefined "
        "(default possible, with --strict or --strict-NAME letter); all are shown",
    )  # fmt: skip
    text = "waive findings of a kind, where a barrier, role, function or file matches; may be repeated"
    given.add_values(levels, "--ignore", "KIND[:PATTERN]", text)
    given.add_value(levels, "--baseline", "FILE", "fail on findings only that are not in FILE", Path)
    given.add_flag(levels, "--update-baseline", "write what is found to the file of --baseline")


def _carry_out(options: argparse.Namespace) -> int:
    if options.sequence is not None:
        from pipesim.cli.checks.check_modes import carry_out_sequence

        return carry_out_sequence(options)
    from pipesim.answers.project_settings import policy_of, read_settings

    settings = read_settings(Path.cwd())
    settings = replace(settings, launches={}) if options.launch else settings
    whole = not options.protocol and not options.all
    if whole:
        options.protocol = list(settings.targets)
    _require_fitting(options)
    names = _names(options)
    strict = bool(options.strict or options.strict_names)
    policy = policy_of(
        settings, fail_on=options.fail_on, strict=strict, ignores=options.ignore, baseline=options.baseline,
        update=options.update_baseline, whole=whole,
    )  # fmt: skip
    if any(given.has_kernels(options, name) for name in names) or any(getattr(options, each) for each in given.FOUND):
        from pipesim.cli.checks.check_kernels import carry_out_kernels

        code = carry_out_kernels(options, names, policy)
        if code is not None:
            return code
    if options.redundant and options.against is None:
        from pipesim.cli.checks.check_modes import carry_out_redundant

        return carry_out_redundant(options, names, settings.launch_of)
    if options.sarif is not None and options.against is None:
        given.require_output(options.sarif, force=options.force)
    if options.against is not None:
        from pipesim.cli.checks.check_modes import carry_out_against

        checks = Checks(options, policy, paints=False)
        return carry_out_against(options, names, lambda name: checks.check(name, settings.launch_of(name)))
    return check_all(options, names, settings, policy)


def _require_fitting(options: argparse.Namespace) -> None:
    """ParameterError for options that exclude each other; ``--json`` is what a format of JSON asks for as well."""
    if options.json and options.format not in (None, "json", "brief"):
        raise ParameterError(f"--json and --format {options.format}", correction="give one of them")
    options.json = options.json or options.format in ("json", "brief")
    if options.write and not options.fix:
        raise ParameterError("--write without --fix", correction="give both")
    if options.fix and options.redact:
        raise ParameterError("--fix shows source lines", correction="leave it or --redact out")
    if options.fix and (options.json or options.format not in (None, "text")):
        raise ParameterError("--fix prints text", correction="give no other format")


def _names(options: argparse.Namespace) -> list[str]:
    """The protocols to check, each once. UsageError if there is none, or several for one schedule."""
    given.require_positive(options, "max_states")
    names = given.named_protocols(options, "check")
    if options.replay is not None and len(names) > 1:
        raise ParameterError("--replay takes the schedule of one protocol", correction="name only that one")
    return names


COMMAND = given.Command(
    "check",
    "prove kernels (kernel.ptx) and protocols in every schedule, or show where they fail",
    "Check kernels (kernel.ptx, with its launch file) and protocols in every schedule, not in one: proved, refuted "
    "with a counterexample, or unknown.",
    _arguments,
    _carry_out,
    (
        ("pipesim check kernel.ptx", "a kernel; pipesim new --ptx kernel.ptx writes its launch file"),
        ("pipesim check producer_consumer -p stages=2", "a built-in ring with two stages, for any number of tiles"),
        ("pipesim check my_kernel.py --quick", "the protocol of a file of your own, its verdict alone"),
        ("pipesim check my_kernel.py producer_consumer --format junit", "several, for a CI system"),
    ),
    in_steps=True,
)
