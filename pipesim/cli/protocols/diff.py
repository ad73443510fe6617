"""``pipesim diff``: compare one recorded trace with its protocol, or compare two."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli import arguments as given
from pipesim.cli.completers import protocols
from pipesim.cli.output import progress, show_report
from pipesim.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from pipesim.model.program import Program
    from pipesim.targets import Target
    from pipesim.trace.schema import TraceMeta


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, help="a trace file (Parquet); with two, A")
    parser.add_argument("other", type=Path, nargs="?", help="B, to be compared with A instead of a protocol")
    text = "the protocol, or the kernel's .ptx, to compare it with (default: what the trace names)"
    given.complete(given.add_value(parser, "--protocol", None, text), protocols)
    given.add_launch(parser)
    given.add_params(parser, "a parameter of the protocol (default: the trace's); may be repeated")
    given.add_profile(parser, "latency profile (default: the one of the trace's device)")
    given.add_tolerance(parser, "; of two traces, B's period from A's")
    given.add_untrusted(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.other is not None:
        return _pair(options)

    from pipesim.answers.compare import compare_kernel, compare_long, compare_trace
    from pipesim.answers.recorded_program import LongRunError
    from pipesim.report.pages.protocols.verify import compare_lines
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import read_trace

    trace = read_trace(options.trace)
    meta = trace.meta
    if options.launch or options.sets or (options.protocol or "").endswith(".ptx"):
        kernel = _kernel(options)
        assert kernel.kernel is not None
        profile = load_profile(options.profile) if options.profile else None
        report = compare_kernel(kernel.kernel, trace, str(options.trace), profile)
        return show_report(options, report, compare_lines)
    profile = load_profile(options.profile) if options.profile else None
    asked = trace, str(options.trace), profile, options.tolerance
    try:
        with progress(f"flattening {options.protocol or meta.protocol}"):
            program = _program(options, meta, len(trace.events))
        with progress(f"comparing {options.trace.name} with {program.name}"):
            report = compare_trace(program, *asked)
    except LongRunError as long:
        with progress(f"comparing the laps of {options.trace.name}"):
            _, report = compare_long(long, *asked)
    return show_report(options, report, compare_lines)


def _pair(options: argparse.Namespace) -> int:
    """Two traces: behaviour first, then time. UsageError for an option that means something with one trace only."""
    for name, value in (
        ("--protocol", options.protocol), ("-p", options.param), ("--profile", options.profile),
        ("--launch", options.launch), ("--set and --box", options.sets),
    ):  # fmt: skip
        if value:
            raise UsageError(
                f"{name} has no effect with two traces",
                cause="two traces are compared with each other, not with a protocol or a simulation",
                correction=f"leave {name} out, or name one trace only",
            )

    from pipesim.answers.compare import compare_pair
    from pipesim.report.pages.protocols.pair import pair_lines
    from pipesim.trace.files import read_trace

    one, two = read_trace(options.trace), read_trace(options.other)
    with progress(f"comparing {options.trace.name} with {options.other.name}"):
        report = compare_pair(one, two, (str(options.trace), str(options.other)), options.tolerance)
    return show_report(options, report, pair_lines)


def _kernel(options: argparse.Namespace) -> Target:
    """The kernel that ``--protocol`` names. ParameterError for options that say nothing about it."""
    if given.params_of(options) or options.tolerance is not None:
        raise ParameterError(
            "a kernel's PTX has no parameters, and its recording no period to be compared",
            cause="-p and --tolerance are for a protocol",
            correction="leave them out",
        )
    if not options.protocol:
        raise ParameterError(
            "--launch, --set or --box is given, and no kernel", correction="name it with --protocol kernel.ptx"
        )
    with progress(f"reading {options.protocol}"):
        return given.target_of(options, options.protocol)


def _program(options: argparse.Namespace, meta: TraceMeta, records: int) -> Program:
    """What to compare the trace with: the protocol that is named, else the one that was recorded."""
    from pipesim.answers.recorded_program import NAME_IT, named_program, recorded_program
    from pipesim.protocol_process import find

    params, place = given.params_of(options), str(options.trace)
    if options.protocol is not None:
        return named_program(meta, find(options.protocol), params, place=place, records=records)
    how = f"{NAME_IT}: --protocol file.py:function, a program's .json or a kernel's .ptx"
    return recorded_program(meta, given=params, place=place, correction=how, records=records)


COMMAND = given.Command(
    "diff",
    "compare a trace with its protocol, or two traces with each other",
    "Compare a recorded trace with the protocol that it names, event by event and in time, or compare two traces: "
    "their behaviour, then where time was gained or lost.",
    _arguments,
    _carry_out,
    (
        ("pipesim diff gemm.parquet", "does the trace do what its protocol says, and how far off is its period?"),
        ("pipesim diff mine.parquet --protocol mine.py", "the same with your own protocol, or your kernel's .ptx"),
        ("pipesim diff before.parquet after.parquet --tolerance 2", "what a change did; exit code 4 beyond 2 %"),
    ),
)
