"""``pipesim calibrate``: a latency profile from recordings, or from micro-kernels on the GPU of this machine."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli import arguments as given
from pipesim.cli.output import TerminalProgress, counted_units, progress, remark, show_answer, step_line
from pipesim.errors import UsageError

if TYPE_CHECKING:
    from pipesim.answers.calibrate import Calibration
    from pipesim.answers.calibrate_inputs import Inputs
    from pipesim.answers.views.calibrate import CalibrationReport

_RECORDINGS = 3  #: of a kernel that are fitted: a fit takes hundreds of simulations of each


def _count(text: str) -> int:
    """A number, 0 or more."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of recordings, 0 for all")
    return int(text)


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = "recordings of one device, or folders of them"
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE", help=text)
    text = "instead: run micro-kernels and rings on the GPU of this machine, and fit to them (under 3 minutes)"
    given.add_flag(parser, "--device", text)
    given.add_value(parser, "--out", "FILE", "write the profile to this file", Path)
    text = (
        "the profile whose values are kept where the recordings determine none: h100, h200 or a JSON file "
        "(default: of the device, else h100)"
    )
    given.add_value(parser, "--base", "PROFILE", text)
    given.add_value(parser, "--name", None, "what the profile is called (default: the file's name)")
    given.add_value(parser, "--values", "A,B", "fit these values only")
    given.add_flag(parser, "--no-split", "also read recordings that a split.json beside them holds out")
    text = (
        "how many recordings of each kernel are fitted, chosen evenly from those given (0: all, which can take "
        f"hours; default {_RECORDINGS})"
    )
    given.add_value(parser, "--recordings", "N", text, _count, _RECORDINGS)
    given.add_flag(parser, "--propose", "name the captures that would determine what is only assumed")
    text = "measure the work of this kernel, whose recording is given, in place of estimates from its instructions"
    given.add_value(parser, "--kernel", "FILE.ptx", text, default="")
    text = "list every value that is assumed, and why"
    parser.add_argument("-v", "--verbose", action="store_true", help=text)
    given.add_launch(parser)
    given.add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate import calibrate, with_proposals
    from pipesim.answers.calibrate_inputs import choose_inputs
    from pipesim.timed.profile import load_profile, profile_for

    given.require_output(options.out, force=options.force)
    options.name = options.name or (options.out.stem if options.out else "calibrated")
    if options.device:
        return _of_device(options)
    if options.kernel or options.launch or options.sets:
        return _of_kernel(options)
    if not options.traces:
        raise UsageError("pipesim calibrate needs recordings", correction="give trace files, or folders of them")
    inputs = choose_inputs(options.traces, split=not options.no_split, each=options.recordings)
    device = inputs.files[0].meta.device.name
    base = load_profile(options.base) if options.base else profile_for(device)
    only = _values_of(options.values)
    with step_line("fitting a profile") as tell:
        found, problem = calibrate(inputs, base, options.name, only, tell)
    report = found.report
    if options.propose:
        with counted_units("simulating captures") as tell:
            report = with_proposals(found, problem, tell)
    _note(inputs)
    return _answer(options, found, report)


def _values_of(text: str | None) -> frozenset[str]:
    """The values that ``--values`` names; none if it is not given."""
    if text is None:
        return frozenset()
    names = frozenset(filter(None, map(str.strip, text.split(","))))
    if not names:
        raise UsageError(
            "--values names no value",
            cause="its text is empty, as of a variable that is not set",
            correction="name values, as --values wait.issue,copy.latency, or leave --values out to fit all",
        )
    return names


def _note(inputs: Inputs) -> None:
    """What was given and not read."""
    if inputs.left_out:
        remark(f"note: {inputs.left_out} recordings are held out by split.json and were not read")
    if inputs.repeated:
        remark(f"note: {inputs.repeated} recordings were given more than once and count once")
    if inputs.foreign:
        TerminalProgress().left_out(inputs.foreign)


def _of_kernel(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate_kernel import calibrate_kernel
    from pipesim.timed.profile import load_profile, profile_for
    from pipesim.trace.files import read_trace

    if not options.kernel:
        raise UsageError(
            "--launch, --set or --box is given, and no kernel", correction="name it with --kernel kernel.ptx"
        )
    if len(options.traces) != 1 or options.values is not None or options.propose:
        raise UsageError(
            "--kernel takes one recording, and fits nothing",
            correction="give one trace, without --values and --propose",
        )
    (path,) = options.traces
    with progress(f"reading {options.kernel}"):
        kernel = given.target_of(options, options.kernel).kernel
    if kernel is None:
        raise UsageError(
            f"{options.kernel} is not a kernel's PTX", correction="name a .ptx file, its launch file beside it"
        )
    trace = read_trace(path)
    base = load_profile(options.base) if options.base else profile_for(trace.meta.device.name)
    with progress(f"measuring {path.name}"):
        found = calibrate_kernel(kernel, trace, f"{path.parent.name}/{path.name}", base, options.name)
    return _answer(options, found, found.report)


def _of_device(options: argparse.Namespace) -> int:
    from pipesim.answers.calibrate import calibrate_device
    from pipesim.cli.programs.capture_kernel import require_gpu_or
    from pipesim.timed.profile import load_profile

    if options.traces or options.values is not None or options.propose:
        raise UsageError("--device makes its own recordings", correction="leave out traces, --values and --propose")
    require_gpu_or("calibrate on the machine whose GPU the profile is to describe, or give recordings of it")
    with progress("measuring this machine's GPU"):
        found = calibrate_device(load_profile(options.base) if options.base else None, options.name)
    return _answer(options, found, found.report)


def _answer(options: argparse.Namespace, found: Calibration, report: CalibrationReport) -> int:
    """Write the profile, if a file is named for it, and the report."""
    from pipesim.formats.documents import document
    from pipesim.process.files import write_whole
    from pipesim.report.pages.protocols.calibrate import calibration_lines
    from pipesim.timed.profile import profile_text

    if options.out is not None:
        text = profile_text(found.profile, found.how, report.inputs)
        write_whole(options.out, text.encode(), force=options.force)
        report = replace(report, written=str(options.out))
    made = document("calibrate", report=report)
    return show_answer(options, made, lambda width: calibration_lines(report, width, verbose=options.verbose))


COMMAND = given.Command(
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
