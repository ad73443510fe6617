"""``pipesim verify``: the main job. Simulate, hold against the hardware, report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_output, add_protocol, add_tolerance, params_of

if TYPE_CHECKING:
    from pipesim.cli.assemble import Held
    from pipesim.protocols.catalog import Target
    from pipesim.trace.schema import Trace


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    parser.add_argument("--no-hardware", action="store_true", help="leave the hardware out")
    parser.add_argument("--recorded", action="store_true", help="use the recorded traces even if this machine has a GPU")
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="where recorded traces are (default: those that came with pipesim)")
    parser.add_argument("--profile", help="latency profile (default: the one of each device)")
    add_tolerance(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.assemble import FINDINGS, UNKNOWN, heading, hold, simulation_line
    from pipesim.conform.steady import read
    from pipesim.protocols.catalog import find
    from pipesim.report.view import VerifyReport
    from pipesim.timed.choice import DEFAULT, profile_for
    from pipesim.timed.engine import Outcome, simulate
    from pipesim.timed.profile import load_profile
    from pipesim.unfold.faults import report_faults

    target = find(options.protocol)
    params = params_of(options)
    program = target.build(params, grid=options.ctas)
    chosen = load_profile(options.profile) if options.profile else None
    traces = [] if options.no_hardware else _evidence(target, params, options)
    held = [hold(program, trace, source, chosen, options.tolerance) for source, trace in traces]
    profiles = {p.name: p for p in ([chosen] if chosen else [profile_for(t.meta.device.name) for _, t in traces])}
    lines = []
    code, reason, findings = 0, "", []
    for profile in (profiles or {DEFAULT: load_profile(DEFAULT)}).values():
        result = simulate(program, profile)
        reading = read(result.trace)
        lines.append(simulation_line(result, reading.period_millicycles if reading else None))
        if result.outcome is Outcome.UNKNOWN:
            code, reason = UNKNOWN, "the simulation ran out of its step budget"
        elif result.outcome is not Outcome.FINISHED or result.faults:
            code, reason = FINDINGS, f"the simulation ends in {'a ' if result.outcome is Outcome.DEADLOCK else ''}{result.outcome.value if result.outcome is not Outcome.FINISHED else 'faults'}"
            findings = [*([result.deadlock] if result.deadlock else []), *report_faults(program, result.faults)]
    code, verdict = _verdict(code, reason, held, hardware=not options.no_hardware)
    report = VerifyReport(heading(program), tuple(lines), tuple(h.block for h in held), verdict, None if code == UNKNOWN else code == 0)
    if options.json:
        from pipesim.cli.as_json import print_json

        print_json({"exit_code": code, "findings": findings, "report": report})
    else:
        from pipesim.report.console import make_console
        from pipesim.report.finding import paint_findings
        from pipesim.report.verify import paint_verify

        console = make_console()
        if findings:
            paint_findings(console, findings)
        paint_verify(console, report)
    return code


def _evidence(target: Target, params: dict[str, int], options: argparse.Namespace) -> list[tuple[str, Trace]]:
    """A fresh trace if this machine has a GPU and the protocol a kernel, else the recorded ones, one for each device."""
    from hwkernels.request import PROTOCOL
    from pipesim.trace.files import read_trace
    from pipesim.trace.library import find_traces

    if target.name == PROTOCOL and not options.recorded and options.traces is None and _has_gpu():
        from pipesim.cli.capture import record

        return [("captured now", record(target, params, options.ctas))]
    paths = find_traces(target.name, target.defaults | params, options.ctas, options.traces)
    found: dict[str, tuple[str, Trace]] = {}
    for path in paths:
        trace = read_trace(path)
        if trace.meta.clock == "clock" or trace.meta.device.name not in found:
            found[trace.meta.device.name] = (f"{path.parent.name}/{path.name}", trace)
    return list(found.values())


def _has_gpu() -> bool:
    from hwkernels.launch import require_gpu
    from pipesim.errors import HardwareError, MissingExtraError

    try:
        require_gpu()
    except (HardwareError, MissingExtraError):
        return False
    return True


def _verdict(code: int, reason: str, held: list[Held], *, hardware: bool) -> tuple[int, str]:
    """The exit code and its sentence: a finding beats the unknown, the unknown beats the tolerance."""
    worst = [(1, reason)] if code == 1 else []
    worst += [(h.code, f"{h.block.device}: {h.why}") for h in held if h.code == 1]
    worst += [(3, reason)] if code == 3 else []
    worst += [(h.code, f"{h.block.device}: {h.why}") for h in held if h.code == 3]
    worst += [(h.code, f"{h.block.device}: {h.why}") for h in held if h.code == 4]
    if worst:
        return worst[0]
    if not hardware:
        return 0, "the simulation finishes without a finding (hardware left out)"
    return 0, f"the simulation finishes without a finding, and the hardware agrees ({', '.join(h.block.device for h in held)})"


COMMAND = Command(
    "verify", "simulate, compare with the hardware, report: the main job",
    "Simulate a protocol, hold it against real hardware (a GPU if there is one, else recorded traces), and report.",
    _arguments, _carry_out,
)  # fmt: skip
