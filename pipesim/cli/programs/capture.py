"""``pipesim capture``: run the CUDA kernel of a protocol on the GPU of this machine and record a trace."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_force, add_protocol, add_value, add_window, params_of, require_output
from pipesim.cli.output import progress, show_report
from pipesim.cli.programs.capture_kernel import (
    DEADLINE_MS,
    add_kernel,
    capture_kernel,
    empty_meta,
    refuse_kernel_options,
    require_gpu_or,
    usual_name,
)

if TYPE_CHECKING:
    from hwkernels.capture.request import CaptureRequest
    from pipesim.model.program import Program
    from pipesim.targets import Target


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser, optional=True)
    text = "the trace's file (default: named after the configuration, in this folder)"
    add_value(parser, "-o --output", "FILE", text, Path)
    text = "clock for the timestamps of the records (default clock)"
    parser.add_argument("--clock", choices=("clock", "globaltimer", "both"), default="clock", help=text)
    add_window(parser, "record only the iterations A to B - 1 of every role")
    text = "where records are stored while the kernel runs (default: shared memory if the ring leaves room)"
    parser.add_argument("--memory", choices=("shared", "device"), default="", help=text)
    text = "encoding of a record: docs/hopper.md (default: the cheapest that this capture can have)"
    parser.add_argument("--encoding", choices=("tagged", "full", "positional"), default="", help=text)
    text = "inject a fault at one iteration (runs in a separate process); docs/diagnosis.md lists the kinds"
    add_value(parser, "--fault", "KIND@ITERATION", text)
    for name, default, metavar, text in (
        ("--repetitions", 5, "N", "number of pairs of a traced and an untraced launch"),
        ("--record-ctas", 8, "N", "number of CTAs whose events are kept"),
        ("--deadline-ms", DEADLINE_MS, "MS", "time after which a wait of the kernel gives up"),
        ("--seed", 0, "N", "seed of the random data"),
    ):
        add_value(parser, name, metavar, f"{text} (default {default})", int, default)
    add_force(parser)
    add_kernel(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.kernel is not None:
        return capture_kernel(options)
    refuse_kernel_options(options)

    from pipesim.answers.compare import compare_trace
    from pipesim.answers.evidence import capture_trace
    from pipesim.protocol_process import find
    from pipesim.report.pages.protocols.verify import compare_lines
    from pipesim.trace.files import write_trace

    require_output(options.output, force=options.force)
    with progress(f"flattening {options.protocol}"):
        target = find(options.protocol)
        program = target.build(params_of(options), grid=options.ctas)
    request = _request(target, program, options)
    path = options.output or _usual_name(request)
    require_output(path, force=options.force)
    require_gpu_or("capture on a machine with an H100 or H200; `pipesim verify` needs none: it uses recorded traces")
    with progress(f"capturing {program.name}"):
        trace = capture_trace(request)
    write_trace(trace, path, force=options.force)
    with progress("comparing with the protocol"):
        report = compare_trace(program, trace, str(path), captured=True)
    return show_report(options, report, compare_lines)


def _request(target: Target, program: Program, options: argparse.Namespace) -> CaptureRequest:
    """The request of a command line; UsageError for a kernel's PTX, ParameterError for a value out of range."""
    from hwkernels.capture.request import check_request
    from hwkernels.twins.fault import parse_fault
    from pipesim.answers.evidence import has_kernel, interpreted_request, plain_request
    from pipesim.errors import UsageError

    if target.kernel is not None:
        raise UsageError(
            f"{target.name} is a kernel, not a description",
            correction="record it where it is launched: pipesim record -- PROGRAM",
        )
    request = replace(
        plain_request(program) if has_kernel(target) else interpreted_request(program),
        clock=options.clock,
        repetitions=options.repetitions,
        record_ctas=options.record_ctas,
        deadline_ms=options.deadline_ms,
        seed=options.seed,
        memory=options.memory,
        encoding=options.encoding,
        window=options.window or (),
        fault=parse_fault(options.fault) if options.fault is not None else None,
    )
    check_request(request)
    return request


def _usual_name(request: CaptureRequest) -> Path:
    """The name that the trace would have in the library, in this folder: known before anything is recorded."""
    from hwkernels.capture.plan import plan

    meta = empty_meta(request.subject.protocol, dict(request.params), request.ctas, request.clock)
    fault, memory = str(request.fault or ""), plan(request).memory
    return usual_name(replace(meta, window=request.window, memory=memory, fault=fault))


COMMAND = Command(
    "capture",
    "record a trace on a GPU",
    "Run the CUDA kernel of a protocol, or one of your own, on this machine's GPU and record its events. A "
    "protocol without a kernel is interpreted.",
    _arguments,
    _carry_out,
    (
        ("pipesim capture producer_consumer -o ring.parquet", "record a built-in protocol's kernel (needs a GPU)"),
        ("pipesim capture my_kernel.py", "run a described protocol, which needs no kernel (needs a GPU)"),
        (
            "pipesim capture --kernel my.cu --protocol my_kernel.py --block 128",
            "record a kernel of your own, see docs/own-kernel.md (needs a GPU)",
        ),
    ),
)
