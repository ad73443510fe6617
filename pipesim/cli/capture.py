"""``pipesim capture``: run the CUDA kernel of a protocol on the GPU of this machine and record a trace."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_force, add_output, add_protocol, add_window, params_of, require_output
from pipesim.cli.capture_kernel import DEADLINE_MS, add_kernel, capture_kernel, refuse_kernel_options
from pipesim.cli.output import progress, show
from pipesim.cli.recording import empty_meta, require_gpu_or, usual_name

if TYPE_CHECKING:
    from hwkernels.capture.request import CaptureRequest
    from hwkernels.capture.twin_request import KernelRequest
    from pipesim.model.program import Program
    from pipesim.targets import Target
    from pipesim.trace.schema import Trace

    Request = CaptureRequest | KernelRequest


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser, optional=True)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the trace's file (default: named after the configuration, in this folder)",
    )
    parser.add_argument(
        "--clock",
        choices=("clock", "globaltimer", "both"),
        default="clock",
        help="clock for the timestamps of the records (default clock)",
    )
    add_window(parser, "record only the iterations A to B - 1 of every role")
    parser.add_argument(
        "--memory",
        choices=("shared", "device"),
        default="",
        help="where records are stored while the kernel runs (default: shared memory if the ring leaves room)",
    )
    parser.add_argument(
        "--fault",
        metavar="KIND@ITERATION",
        help="inject a fault at one iteration (runs in a separate process); docs/diagnosis.md lists the kinds",
    )
    for name, default, metavar, text in (
        ("--repetitions", 5, "N", "number of pairs of a traced and an untraced launch"),
        ("--record-ctas", 8, "N", "number of CTAs whose events are kept"),
        ("--deadline-ms", DEADLINE_MS, "MS", "time after which a wait of the kernel gives up"),
        ("--seed", 0, "N", "seed of the random data"),
    ):
        parser.add_argument(name, type=int, default=default, metavar=metavar, help=f"{text} (default {default})")
    add_force(parser)
    add_output(parser)
    add_kernel(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.kernel is not None:
        return capture_kernel(options)
    refuse_kernel_options(options)

    from pipesim.answers.assemble import hold, mark_of
    from pipesim.answers.heading import heading
    from pipesim.answers.view import VerifyReport
    from pipesim.targets import find
    from pipesim.trace.files import write_trace

    if options.output is not None:
        require_output(options.output, force=options.force)
    with progress(f"flattening {options.protocol}"):
        target = find(options.protocol)
        program = target.build(params_of(options), grid=options.ctas)
    request = _request(target, program, options)
    path = options.output or _usual_name(request)
    require_output(path, force=options.force)
    require_gpu_or("capture on a machine with an H100 or H200; `pipesim verify` needs none: it uses recorded traces")
    with progress(f"capturing {program.name}"):
        trace = captured(request)
    write_trace(trace, path, force=options.force)
    with progress("comparing with the protocol"):
        held = hold(program, trace, str(path), None, None)
    verdict = f"recorded {len(trace.events):,} events in {path}" + (f"; {held.why}" if held.why else "")
    show(options, VerifyReport(heading(program), (), (held.block,), verdict, mark_of(held.code)), held.code)
    return held.code


def has_kernel(target: Target) -> bool:
    """Whether there is a CUDA kernel of what ``target`` names."""
    from hwkernels.twins import kernel_names

    return target.name in kernel_names()


def plain_request(program: Program) -> Request:
    """What to run for this program, everything else as usual."""
    from hwkernels.capture.request import PROTOCOL, CaptureRequest
    from hwkernels.capture.twin_request import KernelRequest

    if program.name == PROTOCOL:
        return CaptureRequest(program.params, program.grid)
    return KernelRequest(program.name, program.params, program.grid)


def captured(request: Request) -> Trace:
    """The trace of a request. Raises HardwareError without a GPU, and whatever the kernel's own capture raises."""
    from hwkernels.capture.trace import capture
    from hwkernels.capture.twin_request import KernelRequest
    from hwkernels.capture.twin_trace import capture_kernel_of

    return capture_kernel_of(request) if isinstance(request, KernelRequest) else capture(request)


def _request(target: Target, program: Program, options: argparse.Namespace) -> Request:
    """The request of a command line; UsageError if there is no kernel, ParameterError for a value out of range."""
    from hwkernels.capture.request import PROTOCOL
    from hwkernels.twins import kernel_names
    from pipesim.errors import UsageError

    if not has_kernel(target):
        raise UsageError(
            f"there is no CUDA kernel of {target.name}",
            correction=f"there are kernels of {', '.join(kernel_names())}; capture your own with --kernel",
        )
    return _own_request(program, options) if program.name == PROTOCOL else _kernel_request(program, options)


def _own_request(program: Program, options: argparse.Namespace) -> Request:
    """The request of the producer/consumer kernel, which alone can keep a window and be made wrong."""
    from hwkernels.capture.faults import parse_fault
    from hwkernels.capture.request import CaptureRequest, check_request

    request = CaptureRequest(
        program.params,
        program.grid,
        options.clock,
        options.repetitions,
        options.record_ctas,
        options.deadline_ms,
        options.seed,
        window=options.window or (),
        memory=options.memory,
        fault=parse_fault(options.fault) if options.fault is not None else None,
    )
    check_request(request)
    return request


def _kernel_request(program: Program, options: argparse.Namespace) -> Request:
    """The request of a kernel of the registry."""
    from hwkernels.capture.request import PROTOCOL
    from hwkernels.capture.twin_request import KernelRequest, check_kernel_request
    from pipesim.errors import UsageError

    for flag, value in (
        ("--window", options.window),
        ("--fault", options.fault),
    ):
        if value:
            raise UsageError(
                f"{flag} has no effect for {program.name}",
                cause=f"only the kernel of {PROTOCOL} has it",
                correction=f"leave {flag} out",
            )
    request = KernelRequest(
        program.name,
        program.params,
        program.grid,
        options.clock,
        options.repetitions,
        options.record_ctas,
        options.deadline_ms,
        options.seed,
        options.memory,
    )
    check_kernel_request(request)
    return request


def _usual_name(request: Request) -> Path:
    """The name that the trace would have in the library, in this folder: known before anything is recorded."""
    from hwkernels.capture.twin_request import KernelRequest, plan_kernel

    meta = empty_meta(request.protocol, dict(request.params), request.ctas, request.clock)
    if isinstance(request, KernelRequest):
        return usual_name(replace(meta, memory=plan_kernel(request).memory))
    return usual_name(replace(meta, window=request.window, memory=request.memory, fault=str(request.fault or "")))


COMMAND = Command(
    "capture",
    "record a trace on a GPU",
    "Run the CUDA kernel of a protocol, or one of your own, on this machine's GPU and record its events.",
    _arguments,
    _carry_out,
)
