"""``pipesim capture --kernel``: record another author's kernel and compare it with a protocol."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import add_flag, add_value, add_values, complete, flag_of, params_of, require_output
from pipesim.cli.completers import protocols
from pipesim.cli.output import progress, show_report
from pipesim.errors import HardwareError, ParameterError, UsageError

if TYPE_CHECKING:
    from hwkernels.capture.request import CaptureRequest
    from pipesim.model.program import Program
    from pipesim.trace.schema import TraceMeta


def require_gpu_or(correction: str) -> None:
    """HardwareError that says what can be done without a GPU, if there is none."""
    from hwkernels.device.launch import require_gpu

    try:
        require_gpu()
    except HardwareError as error:
        raise HardwareError(error.fact, place=error.place, cause=error.cause, correction=correction) from error


def empty_meta(protocol: str, params: dict[str, int], grid: int, clock: str) -> TraceMeta:
    """What is known about a trace before anything is recorded: enough for its name."""
    from pipesim.trace.schema import Device, TraceMeta

    return TraceMeta("hardware", protocol, params, grid, Device(""), (), (), (), clock=clock)


def usual_name(meta: TraceMeta) -> Path:
    """The name that the trace would have in the library, in this folder."""
    from pipesim.trace.library import trace_name

    return Path(Path(trace_name(meta)).name)


DEADLINE_MS = 250  #: the usual ``--deadline-ms``, which only a kernel of ours takes
_FLAG = re.compile(r"[A-Za-z_]\w*(=.*)?", re.DOTALL)


def add_kernel(parser: argparse.ArgumentParser) -> None:
    """``--kernel`` and what belongs to it."""
    own = parser.add_argument_group("a kernel of your own (see docs/own-kernel.md)")
    add_value(own, "--kernel", "FILE.cu", "compile and launch this kernel, which includes recorder.cuh")
    against = add_value(own, "--protocol", "NAME", "the protocol to compare it with", dest="kernel_protocol")
    complete(against, protocols)
    for name, metavar, text in (
        ("--table", "FILE", "its roles, barriers and sites (default: FILE.table.h)"),
        ("--entry", "NAME", "the kernel in C++, as space::name<4>, if there are several"),
        ("--grid", "X[,Y[,Z]]", "grid size in CTAs (default 1)"),
        ("--block", "X[,Y[,Z]]", "threads per CTA"),
        ("--bytes", "N[,N...]", "bytes of EXPECT and COPY by their records' values 0, 1, ..., or parameters of them"),
        ("--marks", "A,B", "iterations between which the untraced period is taken (default: of the loop)"),
    ):
        add_value(own, name, metavar, text)
    for name, text in (
        ("--cluster", "CTAs per cluster (default: the protocol's)"),
        ("--smem", "bytes of dynamic shared memory (default 0)"),
        ("--capacity", "records kept per warp (default 16384)"),
        ("--timeout-s", "time limit of a launch in seconds (default 10)"),
    ):
        add_value(own, name, "N", text, int)
    text = "an argument, in order: u32:64, f32:1.5, buf:4096, npy:FILE, out:4096:NAME, map:FILE.npy,box=64x32"
    add_values(own, "--arg", "TYPE:VALUE", text)
    add_values(own, "--expect", "NAME=FILE.npy", "expected content of the output NAME, byte for byte")
    text = "passed to the compiler, as --nvrtc-option=-I/usr/local/cuda/include"
    add_values(own, "--nvrtc-option", "OPTION", text)
    add_values(own, "-D --define", "NAME[=VALUE]", "passed to the compiler")
    add_flag(own, "--may-hang", "record so that a hang leaves its records, from the first launch")


def refuse_kernel_options(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that means something with ``--kernel`` only."""
    for name in ("kernel_protocol", "table", "entry", "grid", "block", "bytes", "marks", "cluster", "smem", "capacity",
                 "timeout_s", "arg", "expect", "nvrtc_option", "define", "may_hang"):  # fmt: skip
        if getattr(options, name) not in (None, [], False):
            flag = flag_of({"kernel_protocol": "protocol"}.get(name, name))
            raise UsageError(f"{flag} has no effect without --kernel", correction="name your kernel: --kernel FILE.cu")
    if options.protocol is None:
        raise UsageError(
            "there is nothing to capture",
            correction="name a protocol (see `pipesim list`), or your own kernel: --kernel FILE.cu --protocol NAME",
        )


def capture_kernel(options: argparse.Namespace) -> int:
    """Carry out ``pipesim capture --kernel``; the exit code."""
    from hwkernels.capture import capture, compile_builds
    from hwkernels.capture.arguments import check_arguments, parse_argument
    from hwkernels.capture.request import check_request
    from pipesim.answers.compare import compare_trace
    from pipesim.protocol_process import find
    from pipesim.report.pages.protocols.verify import compare_lines
    from pipesim.trace.files import write_trace

    _refuse_others(options)
    require_output(options.output, force=options.force)
    named = _protocol(options)
    with progress(f"flattening {named}"):
        target = find(named)
        ctas = prod(_numbers("--grid", options.grid or "1", 3))
        program = target.build(params_of(options), grid=ctas)
        program = replace(program, grid=max(1, ctas // program.ctas))  # a grid counts clusters
    request = source_request(program, options)
    check_request(request)
    path = options.output or usual_name(empty_meta(program.name, dict(request.params), request.ctas, request.clock))
    require_output(path, force=options.force)
    with progress(f"compiling {options.kernel}"):
        builds = compile_builds(request)
    check_arguments([parse_argument(text, n) for n, text in enumerate(options.arg)], builds)
    require_gpu_or("the kernel compiles; launch it on a machine with an H100 or H200")
    with progress(f"capturing {options.kernel}"):
        trace = capture(request, builds)
    write_trace(trace, path, force=options.force)
    with progress("comparing with the protocol"):
        report = compare_trace(program, trace, str(path), captured=True)
    return show_report(options, report, compare_lines)


def source_request(program: Program, options: argparse.Namespace) -> CaptureRequest:
    """The request of a command line. ParameterError for a value that is malformed."""
    from hwkernels.capture import CaptureRequest, SourceSubject
    from hwkernels.capture.arguments import parse_argument

    if options.block is None:
        raise UsageError("the number of threads per CTA is missing", correction="give --block 128, for example")
    source = Path(options.kernel)
    subject = SourceSubject(
        source=str(source),
        table=options.table or str(source.with_suffix(".table.h")),
        protocol=program.name,
        grid=_numbers("--grid", options.grid or "1", 3),
        block=_numbers("--block", options.block, 3),
        arguments=tuple(parse_argument(text, position) for position, text in enumerate(options.arg)),
        entry=options.entry or "",
        defines=_defines(options.define),
        options=tuple(options.nvrtc_option),
        cluster=_cluster(program, options.cluster),
        smem_bytes=options.smem or 0,
        expected=_pairs("--expect", options.expect, "sums=sums.npy"),
        nbytes=_numbers("--bytes", options.bytes, 64, program.params) if options.bytes else (),
        timeout_s=10 if options.timeout_s is None else options.timeout_s,
        marks_at=_marks(program, options.marks),
    )
    return CaptureRequest(
        subject,
        dict(program.params),
        clock=options.clock,
        repetitions=options.repetitions,
        record_ctas=options.record_ctas,
        seed=options.seed,
        memory="host" if options.may_hang else "",
        capacity=options.capacity,
    )


def _cluster(program: Program, given: int | None) -> int:
    """CTAs of a cluster: the protocol's, which an option can only repeat unless the protocol is of one CTA."""
    if given is not None and program.ctas > 1 and given != program.ctas:
        raise ParameterError(
            f"--cluster {given}: {program.name} has clusters of {program.ctas} CTAs",
            correction="leave --cluster out, or give the protocol's parameter with -p",
        )
    return program.ctas if given is None else given


def _marks(program: Program, given: str | None) -> tuple[int, ...]:
    from pipesim.model.steady import marked_iterations

    if given is None:
        return marked_iterations(program) or ()
    marks = _numbers("--marks", given, 2)
    if len(marks) != 2:
        raise ParameterError(f"--marks {given}: expected two iterations", correction="for example --marks 8,24")
    return marks


def _refuse_others(options: argparse.Namespace) -> None:
    if options.ctas is not None:
        raise UsageError("--ctas has no effect with --kernel", correction=f"give --grid {options.ctas}")
    if options.deadline_ms != DEADLINE_MS:
        raise UsageError(
            "--deadline-ms has no effect with --kernel",
            cause="pipesim cannot bound the waits of your own kernel",
            correction="give --timeout-s, the time limit of the launch",
        )
    for flag, value, cause in (
        ("--fault", options.fault, "pipesim injects faults only into its own kernels; put the fault into the source"),
        ("--memory", options.memory, "such a kernel records to device memory, or to host memory if it hangs"),
        ("--encoding", options.encoding, "the records of your own kernel are tagged"),
        ("--window", options.window, "all iterations are recorded, up to --capacity"),
    ):
        if value:
            raise UsageError(f"{flag} has no effect with --kernel", cause=cause, correction=f"leave {flag} out")


def _protocol(options: argparse.Namespace) -> str:
    named = [text for text in (options.protocol, options.kernel_protocol) if text is not None]
    if len(named) != 1:
        raise UsageError(
            "two protocols are named" if named else "no protocol is named to compare the kernel with",
            correction="give one: --protocol file.py:function",
        )
    return str(named[0])


def _numbers(flag: str, text: str, most: int, names: object = None) -> tuple[int, ...]:
    """The whole numbers of a list with commas; a name represents its value in ``names``."""
    known = names if isinstance(names, dict) else {}
    parts = text.split(",")
    try:
        if len(parts) > most:
            raise ValueError
        return tuple(int(known[part]) if part in known else int(part, 0) for part in parts)
    except ValueError:
        example = "2 or 4,2,1" if most == 3 else "16384 or 16384,512"
        raise ParameterError(
            f"{flag} {text}: expected a list of whole numbers", correction=f"for example {flag} {example}"
        ) from None


def _pairs(flag: str, texts: list[str], example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise ParameterError(f"{flag} {text}: expected NAME=VALUE", correction=f"for example {flag} {example}")
        if name in pairs:
            raise ParameterError(f"{flag} {name} is given more than once", correction="give it once")
        pairs[name] = value
    return pairs


def _defines(texts: list[str]) -> dict[str, str]:
    for text in texts:
        if not _FLAG.fullmatch(text):
            raise ParameterError(f"-D {text}: expected a name to define", correction="for example -D STAGES=4")
    return _pairs("-D", [text if "=" in text else f"{text}=1" for text in texts], "STAGES=4")
