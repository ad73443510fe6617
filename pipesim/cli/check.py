"""``pipesim check``: judge a protocol for every schedule."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_output, add_protocol, params_of
from pipesim.cli.output import emit, progress
from pipesim.errors import ParameterError

if TYPE_CHECKING:
    from pipesim.model.program import Program
    from pipesim.protocols.catalog import Target
    from pipesim.prove.check import Check
    from pipesim.report.check import CheckReport, Shown

_MOST_STATES = 200_000


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    parser.add_argument(
        "--max-states", type=int, default=_MOST_STATES, metavar="N",
        help=f"states to search where one run does not decide (default {_MOST_STATES:,})",
    )  # fmt: skip
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.max_states < 1:
        raise ParameterError(f"--max-states {options.max_states}", correction="give 1 or more")

    from pipesim.cli.assemble import AGREES, FINDINGS, UNKNOWN
    from pipesim.model.finding import Verdict
    from pipesim.protocols.catalog import find
    from pipesim.prove.check import check
    from pipesim.report.check import paint_check

    with progress(f"flattening {options.protocol}"):
        target = find(options.protocol)
        program = target.build(params_of(options), grid=options.ctas)
    with progress(f"checking {program.name}"):
        found = check(program, options.max_states)
        report = _report(program, found, _shown(target, params_of(options), program, found))
    code = {Verdict.PROVED: AGREES, Verdict.REFUTED: FINDINGS, Verdict.UNKNOWN: UNKNOWN}[found.verdict]
    findings = tuple(shown.finding for shown in report.refutations)
    document = {"exit_code": code, "findings": findings, "report": report}
    emit(options, document, lambda console: paint_check(console, report))
    return code


def _shown(target: Target, params: dict[str, int], program: Program, found: Check) -> tuple[Shown, ...]:
    """What is wrong, at the smallest sizes at which it still is."""
    from pipesim.cli.smallest import smallest
    from pipesim.prove.words import schedule_lines
    from pipesim.report.check import Shown
    from pipesim.unfold.faults import report_fault

    sizes, small, seen = params, program, found
    if found.refutations and target.program is None:
        sizes, small, seen = smallest(target, params, program, found)
    shown = []
    for refuted in seen.refutations:
        finding = report_fault(small, refuted.fault) if refuted.fault is not None else refuted.deadlock
        assert finding is not None
        lowered = {name: value for name, value in sizes.items() if params.get(name) != value}
        shown.append(Shown(finding, schedule_lines(small, refuted.schedule), lowered))
    return tuple(shown)


def _report(program: Program, found: Check, shown: tuple[Shown, ...]) -> CheckReport:
    from pipesim.cli.assemble import heading
    from pipesim.prove.words import doubt_line
    from pipesim.report.check import CheckReport

    return CheckReport(
        heading(program), found.verdict, found.how.value, found.operations, found.phases, found.states,
        tuple(doubt_line(program, doubt) for doubt in found.doubts), shown, _said(program, found),
    )  # fmt: skip


def _said(program: Program, found: Check) -> str:
    """The verdict in one line; it says for which sizes."""
    from pipesim.model.finding import Verdict

    match found.verdict:
        case Verdict.PROVED:
            return f"proved: no schedule of {program.name} at these parameters deadlocks or breaks a rule"
        case Verdict.REFUTED:
            return f"refuted: {program.name} goes wrong in the schedule above"
        case Verdict.UNKNOWN:
            return "unknown: one run does not stand for all, and the search reached its limit (--max-states)"


COMMAND = Command(
    "check",
    "judge a protocol for every schedule",
    "Judge a protocol for every schedule, not for one: proved, refuted with a schedule that shows it, or unknown.",
    _arguments,
    _carry_out,
)
