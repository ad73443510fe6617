"""``pipesim calibrate``: a latency profile from recordings, or from micro-kernels on the GPU of this machine."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_launch, add_output, require_output, target_of
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
    parser.add_argument(
        "--kernel", default="", metavar="FILE.ptx",
        help="measure the work of this kernel, whose recording is given, in place of estimates from its instructions",
    )  # fmt: skip
    add_launch(parser)
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
    if options.kernel or options.launch or options.sets:
        return _of_kernel(options)
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


def _of_kernel(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate_kernel import calibrate_kernel
    from pipesim.report.pages.calibrate import paint_calibration
    from pipesim.timed.choice import profile_for
    from pipesim.timed.profile import load_profile
    from pipesim.timed.profile_text import profile_text
    from pipesim.trace.files import read_trace
    from pipesim.trace.whole import write_whole

    if not options.kernel:
        raise UsageError("--launch and --set are given, and no kernel", correction="name it with --kernel kernel.ptx")
    if len(options.traces) != 1 or options.values or options.propose:
        raise UsageError(
            "--kernel takes one recording, and fits nothing",
            correction="give one trace, without --values and --propose",
        )
    if options.out is not None:
        require_output(options.out, force=options.force)
    (path,) = options.traces
    with progress(f"reading {options.kernel}"):
        kernel = target_of(options, options.kernel).kernel
    if kernel is None:
        raise UsageError(
            f"{options.kernel} is not a kernel's PTX", correction="name a .ptx file, its launch file beside it"
        )
    trace = read_trace(path)
    base = load_profile(options.base) if options.base else profile_for(trace.meta.device.name)
    name = options.name or (options.out.stem if options.out else "calibrated")
    with progress(f"measuring {path.name}"):
        found = calibrate_kernel(kernel, trace, f"{path.parent.name}/{path.name}", base, name)
    report = found.report
    if options.out is not None:
        text = profile_text(found.profile, found.how, report.inputs)
        write_whole(options.out, text.encode(), force=options.force)
        report = replace(report, written=str(options.out))
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
        ("pipesim calibrate k.parquet --kernel k.ptx --out k.json", "the work of a kernel read from PTX, as recorded"),
    ),
)
