"""``pipesim check``: judge a protocol for every schedule."""

from __future__ import annotations

import argparse

from pipesim.cli.arguments import Command, add_output, add_protocol, params_of
from pipesim.cli.output import emit, progress
from pipesim.errors import ParameterError

_MOST_STATES = 200_000


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    parser.add_argument(
        "--max-states", type=int, default=_MOST_STATES, metavar="N",
        help=f"states to search where one run does not decide (default {_MOST_STATES:,})",
    )  # fmt: skip
    parser.add_argument("--replay", metavar="TEXT", help="walk one schedule again: the line under replay in the JSON")
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.max_states < 1:
        raise ParameterError(f"--max-states {options.max_states}", correction="give 1 or more")

    from pipesim.cli.assemble import AGREES, FINDINGS, UNKNOWN
    from pipesim.judgement import judge, replay
    from pipesim.model.finding import Verdict
    from pipesim.protocols.catalog import find
    from pipesim.report.check import paint_check

    with progress(f"flattening {options.protocol}"):
        target = find(options.protocol)
        program = target.build(params_of(options), grid=options.ctas)
    with progress(f"checking {program.name}"):
        if options.replay is not None:
            report = replay(program, options.replay)
        else:
            report = judge(target, params_of(options), program, options.max_states, options.ctas)
    code = {Verdict.PROVED: AGREES, Verdict.REFUTED: FINDINGS, Verdict.UNKNOWN: UNKNOWN}[report.verdict]
    findings = tuple(shown.finding for shown in report.refutations)
    document = {"exit_code": code, "findings": findings, "report": report}
    emit(options, document, lambda console: paint_check(console, report))
    return code


COMMAND = Command(
    "check",
    "judge a protocol for every schedule",
    "Judge a protocol for every schedule, not for one: proved, refuted with a schedule that shows it, or unknown.",
    _arguments,
    _carry_out,
)
