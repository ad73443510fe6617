"""``pipesim check``: check protocols for every schedule."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipesim.cli.arguments import (
    Command,
    add_ctas,
    add_output,
    add_params,
    add_strict,
    add_time_limit,
    params_of,
    strictness_of,
)
from pipesim.cli.completers import complete, protocols
from pipesim.cli.output import complain, emit, progress, write
from pipesim.errors import ParameterError, PipesimError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from pipesim.answers.views.check import CheckReport
    from pipesim.model.program import Program
    from pipesim.targets import Target

_MOST_STATES = 200_000


def _arguments(parser: argparse.ArgumentParser) -> None:
    named = parser.add_argument(
        "protocol", nargs="*",
        help="built-in names (see `pipesim list`), file.py, file.py:function, or programs' .json; each is checked",
    )  # fmt: skip
    complete(named, protocols)
    parser.add_argument("--all", action="store_true", help="check every built-in protocol")
    add_params(parser, "a parameter of every protocol named; may be repeated")
    add_ctas(parser)
    parser.add_argument(
        "--max-states", type=int, default=_MOST_STATES, metavar="N",
        help=f"limit of the search, in states, where one run does not decide (default {_MOST_STATES:,})",
    )  # fmt: skip
    add_time_limit(parser)
    parser.add_argument(
        "--quick", action="store_true",
        help="the verdict alone: no smallest size, shorter schedule, corrections or other sizes",
    )  # fmt: skip
    parser.add_argument("--replay", metavar="TEXT", help="replay one schedule: the line at the end of a finding")
    add_strict(parser)
    add_output(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "github", "junit"),
        help="a report, JSON, annotations for a GitHub workflow, or JUnit XML (default text)",
    )  # fmt: skip


def _carry_out(options: argparse.Namespace) -> int:
    if options.json and options.format not in (None, "json"):
        raise ParameterError(f"--json and --format {options.format}", correction="give one of them")
    options.json = options.json or options.format == "json"
    names = _names(options)
    together = len(names) > 1 or options.format in ("github", "junit")
    built: dict[str, tuple[Target, Program]] = {}
    failed: dict[str, PipesimError] = {}
    for name in names:
        try:
            built[name] = _built(options, name)
        except PipesimError as error:
            if not together:
                raise
            failed[name] = error
            complain(error)  # now: the others may take long, and are checked all the same
    checks = _Checks(options, paints=options.format in (None, "text") and not options.json)
    for name in [name for name in names if name in built]:
        checks.carry_out(name, *built.pop(name))

    from pipesim.export.exit_codes import exit_code

    reports = checks.reports
    code = PipesimError.exit_code if failed else exit_code(*reports.values())
    emit(options, _document(reports, failed, code), lambda console: _paint(options, console, reports, failed))
    return code


class _Checks:
    """The checks of one command. A text report is written as it is known: the verdict, then the rest of it.

    Ctrl-C after a verdict ends what follows it; of the other protocols only the verdict is then looked for.
    """

    def __init__(self, options: argparse.Namespace, *, paints: bool) -> None:
        self.reports: dict[str, CheckReport] = {}
        self._options = options
        self._paints = paints
        self._quick: bool = options.quick

    def carry_out(self, name: str, target: Target, program: Program) -> None:
        """Check one protocol."""
        from pipesim.answers.check import replay
        from pipesim.report.pages.check import paint_check

        if self.reports:
            self._write(lambda console: console.print())
        if self._options.replay is not None:
            with progress(f"checking {program.name}"):
                report = replay(program, self._options.replay)
            self._write(lambda console: paint_check(console, report))
        else:
            report = self._in_steps(target, program)
        self.reports[name] = report

    def _in_steps(self, target: Target, program: Program) -> CheckReport:
        from pipesim.answers.budget import budget_of
        from pipesim.answers.checking import Asked, Checking
        from pipesim.cli.progress import TerminalProgress
        from pipesim.report.pages.check import paint_check, paint_details, paint_verdict

        options = self._options
        asked = Asked(
            target, params_of(options), program, options.ctas, max_states=options.max_states, quick=self._quick
        )
        checking = Checking(asked, budget_of(options.time_limit), TerminalProgress())
        begun = False
        try:
            known = checking.verdict()
            begun = True
            self._write(lambda console: paint_verdict(console, known))
            checking.details()
        except KeyboardInterrupt:
            if not checking.has_verdict:
                raise
            checking.interrupted()
            self._quick = True
        report = checking.report()
        self._write(lambda console: (paint_details if begun else paint_check)(console, report))
        return report

    def _write(self, paint: Callable[[Console], None]) -> None:
        if self._paints:
            write(paint)


def _names(options: argparse.Namespace) -> list[str]:
    """The protocols to check, each once. ParameterError if there is none, or several for one schedule."""
    from pipesim.protocols.catalog import BUILT_IN

    if options.max_states < 1:
        raise ParameterError(f"--max-states {options.max_states}", correction="give 1 or more")
    names = list(dict.fromkeys([*options.protocol, *(sorted(BUILT_IN) if options.all else [])]))
    if not names:
        raise ParameterError("no protocol is named", correction="give one or several, or --all for the built-in ones")
    if options.replay is not None and len(names) > 1:
        raise ParameterError("--replay takes the schedule of one protocol", correction="name only that one")
    return names


def _built(options: argparse.Namespace, name: str) -> tuple[Target, Program]:
    from pipesim.targets import find

    with progress(f"flattening {name}"):
        target = find(name).judging(strictness_of(options))
        return target, target.build(params_of(options), grid=options.ctas)


def _document(reports: dict[str, CheckReport], failed: dict[str, PipesimError], code: int) -> dict[str, object]:
    """The JSON: of one protocol its findings and its report, of several those of each, or its error, under its name."""
    each: dict[str, dict[str, object]] = {
        name: {"findings": report.findings, "report": report} for name, report in reports.items()
    }
    each |= {name: {"error": error} for name, error in failed.items()}
    if len(each) == 1:
        return {"exit_code": code, **next(iter(each.values()))}
    return {"exit_code": code, "protocols": each}


def _paint(
    options: argparse.Namespace, console: Console, reports: dict[str, CheckReport], failed: dict[str, PipesimError]
) -> None:
    from pipesim.report.pages.annotations import github_lines, junit_text
    from pipesim.report.pages.check import paint_summary
    from pipesim.report.text.console import paint

    match options.format:
        case "github":
            paint(console, github_lines(reports, failed))
        case "junit":
            print(junit_text(reports, failed))
        case _:
            if reports and len(reports) + len(failed) > 1:
                console.print()
                paint_summary(console, reports, failed)


COMMAND = Command(
    "check",
    "check protocols for every schedule",
    "Check protocols for every schedule, not for one: proved, refuted with a counterexample, or unknown.",
    _arguments,
    _carry_out,
    (
        ("pipesim check producer_consumer -p stages=2", "a built-in ring with two stages, for any number of tiles"),
        ("pipesim check my_kernel.py --quick", "the protocol of a file of your own, its verdict alone"),
        ("pipesim check my_kernel.py producer_consumer --format junit", "several, for a CI system"),
    ),
)
