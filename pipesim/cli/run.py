"""``pipesim run``: simulate a protocol on one profile."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_output, add_protocol, params_of, require_free


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    parser.add_argument("--profile", default="h100", help="latency profile: h100, h200 or a JSON file (default h100)")
    parser.add_argument("--recording", action="store_true", help="add what recording each event costs on the chip")
    parser.add_argument("--max-steps", type=int, default=None, metavar="N", help="give up (exit code 3) after N operations")
    parser.add_argument("--save-trace", type=Path, metavar="FILE", help="write the simulated events as a trace (Parquet)")
    parser.add_argument("--save-program", type=Path, metavar="FILE", help="write the flat program (JSON)")
    add_force(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.assemble import heading, simulation_line
    from pipesim.conform.steady import read
    from pipesim.errors import ParameterError
    from pipesim.model.program_json import dumps
    from pipesim.protocols.catalog import find
    from pipesim.report.view import RunReport
    from pipesim.timed.engine import DEFAULT_BUDGET, Outcome, simulate
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import write_trace
    from pipesim.unfold.faults import report_faults

    for path in (options.save_trace, options.save_program):
        if path is not None:
            require_free(path, force=options.force)
    budget = DEFAULT_BUDGET if options.max_steps is None else options.max_steps
    if budget < 1:
        raise ParameterError(f"--max-steps {budget}", correction="give 1 or more")
    profile = load_profile(options.profile)
    program = find(options.protocol).build(params_of(options), grid=options.ctas)
    result = simulate(program, profile, recording=options.recording, max_steps=budget)
    if options.save_trace is not None:
        write_trace(result.trace, options.save_trace, force=options.force)
    if options.save_program is not None:
        options.save_program.write_text(dumps(program), encoding="utf-8")
    reading = read(result.trace)
    report = RunReport(
        heading(program),
        simulation_line(result, reading.period_millicycles if reading else None),
        result.cycles,
        result.steps,
        reading.shares if reading else {},
        result.trace,
        result.deadlock,
        report_faults(program, result.faults),
    )
    if options.json:
        from pipesim.cli.as_json import print_json

        print_json(report)
    else:
        from pipesim.report.console import make_console
        from pipesim.report.run import paint_run

        paint_run(make_console(), report)
    if result.outcome is Outcome.UNKNOWN:
        return 3
    return 1 if result.outcome is not Outcome.FINISHED or result.faults else 0


COMMAND = Command(
    "run", "simulate a protocol", "Simulate a protocol on one device's latency profile and report what happened.", _arguments, _carry_out
)
