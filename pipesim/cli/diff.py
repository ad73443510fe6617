"""``pipesim diff``: hold one recorded trace against its protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipesim.cli.arguments import Command, add_output, add_tolerance, params_of


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, help="a trace file (Parquet)")
    parser.add_argument("--protocol", help="the protocol to hold it against (default: the one that the trace names)")
    parser.add_argument("-p", "--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter (default: the trace's)")
    parser.add_argument("--profile", help="latency profile (default: the one of the trace's device)")
    add_tolerance(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.assemble import heading, hold
    from pipesim.protocols.catalog import find
    from pipesim.report.view import VerifyReport
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import read_trace

    trace = read_trace(options.trace)
    target = find(options.protocol or trace.meta.protocol)
    theirs = {} if target.program is not None else {n: v for n, v in trace.meta.params.items() if n in target.defaults}
    program = target.build(theirs | params_of(options), grid=trace.meta.grid)
    held = hold(program, trace, str(options.trace), load_profile(options.profile) if options.profile else None, options.tolerance)
    verdict = held.why or f"the hardware does what the protocol says ({trace.meta.device.name})"
    report = VerifyReport(heading(program), (), (held.block,), verdict, None if held.code == 3 else held.code == 0)
    if options.json:
        from pipesim.cli.as_json import print_json

        print_json(report)
    else:
        from pipesim.report.console import make_console
        from pipesim.report.verify import paint_verify

        paint_verify(make_console(), report)
    return held.code


COMMAND = Command(
    "diff", "hold a trace against its protocol", "Hold a recorded trace against the protocol that it names, event by event and in time.", _arguments, _carry_out
)
