"""``pipesim calibrate``: a latency profile from recordings, or from micro-kernels on the GPU of this machine."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_output, require_output
from pipesim.cli.output import counted_units, emit, progress, remark
from pipesim.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces", nargs="*", type=Path, metavar="TRACE", help="recordings of one device, or folders of them"
    )
    parser.add_argument(
        "--device", action="store_true",
        help="instead: run micro-kernels and rings on the GPU of this machine, and fit to them (under 3 minutes)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the profile to this file")
    parser.add_argument(
        "--base", default=None, metavar="PROFILE",
        help="the profile whose values are kept where the recordings determine none: h100, h200 or a JSON file "
        "(default: of the device, else h100)",
    )  # fmt: skip
    parser.add_argument("--name", default=None, help="what the profile is called (default: the file's name)")
    parser.add_argument("--values", default="", metavar="A,B", help="fit these values only")
    parser.add_argument(
        "--no-split", action="store_true", help="also read recordings that a split.json beside them holds out"
    )
    parser.add_argument(
        "--propose", action="store_true", help="name the captures that would determine what is only assumed"
    )
    add_force(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate import calibrate, choose_inputs, with_proposals
    from pipesim.report.pages.calibrate import paint_calibration
    from pipesim.timed.choice import profile_for
    from pipesim.timed.profile import load_profile
    from pipesim.timed.profile_text import profile_text
    from pipesim.trace.files import read_meta
    from pipesim.trace.whole import write_whole

    if options.device:
        return _of_device(options)
    if not options.traces:
        raise UsageError("pipesim calibrate needs recordings", correction="give trace files, or folders of them")
    if options.out is not None:
        require_output(options.out, force=options.force)
    inputs = choose_inputs(options.traces, split=not options.no_split)
    device = read_meta(inputs.files[0][1]).device.name
    base = load_profile(options.base) if options.base else profile_for(device)
    name = options.name or (options.out.stem if options.out else "calibrated")
    only = frozenset(filter(None, options.values.split(",")))
    with progress("fitting a profile"):
        found, problem = calibrate(inputs, base, name, only)
    report = found.report
    if options.propose:
        with counted_units("simulating captures") as tell:
            report = with_proposals(found, problem, tell)
    if options.out is not None:
        text = profile_text(found.profile, found.how, report.inputs)
        write_whole(options.out, text.encode(), force=options.force)
        report = replace(report, written=str(options.out))
    if inputs.left_out:
        remark(f"note: {inputs.left_out} recordings are held out by split.json and were not read")
    emit(options, {"exit_code": 0, "report": report}, lambda console: paint_calibration(console, report))
    return 0


def _of_device(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate_device import calibrate_device
    from pipesim.cli.recording import require_gpu_or
    from pipesim.report.pages.calibrate import paint_calibration
    from pipesim.timed.profile import load_profile
    from pipesim.timed.profile_text import profile_text
    from pipesim.trace.whole import write_whole

    if options.traces or options.values or options.propose:
        raise UsageError("--device makes its own recordings", correction="leave out traces, --values and --propose")
    if options.out is not None:
        require_output(options.out, force=options.force)
    require_gpu_or("calibrate on the machine whose GPU the profile is to describe, or give recordings of it")
    name = options.name or (options.out.stem if options.out else "calibrated")
    with progress("measuring this machine's GPU"):
        found = calibrate_device(load_profile(options.base or "h100"), name)
    report = found.report
    if options.out is not None:
        text = profile_text(found.profile, found.how, report.inputs)
        write_whole(options.out, text.encode(), force=options.force)
        report = replace(report, written=str(options.out))
    emit(options, {"exit_code": 0, "report": report}, lambda console: paint_calibration(console, report))
    return 0


COMMAND = Command(
    "calibrate",
    "fit a latency profile to recordings",
    "Fit the values of a latency profile, and of the named work of kernels, to recordings: with confidence intervals, "
    "the errors before and after, and which values the recordings do not determine.",
    _arguments,
    _carry_out,
    (
        ("pipesim calibrate traces/h200 --out mine.json", "a profile of the device that recorded them"),
        ("pipesim calibrate --device --out here.json", "a profile of this machine's GPU (needs a GPU)"),
        ("pipesim calibrate ring.parquet --propose", "what to capture to determine the rest"),
    ),
)
