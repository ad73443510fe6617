"""``pipesim capture``: run the CUDA kernel of a protocol on the GPU of this machine and record a trace."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_force, add_output, add_protocol, params_of, require_free

if TYPE_CHECKING:
    from pipesim.protocols.catalog import Target
    from pipesim.trace.schema import Trace


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the trace's file (default: named after the configuration, here)")
    parser.add_argument("--clock", choices=("clock", "globaltimer", "both"), default="clock", help="what stamps the records (default clock)")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N", help="pairs of a traced and an untraced launch (default 5)")
    parser.add_argument("--record-ctas", type=int, default=8, metavar="N", help="CTAs whose events are kept (default 8)")
    parser.add_argument("--deadline-ms", type=int, default=250, metavar="MS", help="when a wait of the kernel gives up (default 250)")
    parser.add_argument("--seed", type=int, default=0, help="of the random data (default 0)")
    add_force(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.assemble import heading, hold
    from pipesim.protocols.catalog import find
    from pipesim.report.view import VerifyReport
    from pipesim.trace.files import write_trace
    from pipesim.trace.library import trace_name

    if options.output is not None:
        require_free(options.output, force=options.force)
    target = find(options.protocol)
    params = params_of(options)
    program = target.build(params, grid=options.ctas)
    trace = record(target, params, options.ctas, options)
    path = options.output or Path(Path(trace_name(trace.meta)).name)
    require_free(path, force=options.force)
    write_trace(trace, path, force=options.force)
    held = hold(program, trace, str(path), None, None)
    verdict = f"recorded {len(trace.events):,} events in {path}" + (f"; {held.why}" if held.why else "")
    report = VerifyReport(heading(program), (), (held.block,), verdict, _ok(held.code))
    if options.json:
        from pipesim.cli.as_json import print_json

        print_json(report)
    else:
        from pipesim.report.console import make_console
        from pipesim.report.verify import paint_verify

        paint_verify(make_console(), report)
    return held.code


def record(target: Target, params: dict[str, int], grid: int, options: argparse.Namespace | None = None) -> Trace:
    """Capture ``target`` with these parameters (defaults for the rest) on this machine's GPU."""
    from hwkernels.capture import capture
    from hwkernels.request import PROTOCOL, CaptureRequest
    from pipesim.errors import UsageError

    if target.name != PROTOCOL:
        raise UsageError(f"there is no CUDA kernel of {target.name}", correction=f"kernels exist of {PROTOCOL}")
    request = CaptureRequest(target.defaults | params, grid)
    if options is not None:
        request = CaptureRequest(
            request.params, grid, options.clock, options.repetitions, options.record_ctas, options.deadline_ms, options.seed
        )
    return capture(request)


def _ok(code: int) -> bool | None:
    return None if code == 3 else code == 0


COMMAND = Command(
    "capture", "record a trace on a GPU", "Run the CUDA kernel of a protocol on this machine's GPU and record its events.", _arguments, _carry_out
)
