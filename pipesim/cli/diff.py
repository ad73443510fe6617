"""``pipesim diff``: compare one recorded trace with its protocol, or compare two."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_output, add_params, add_tolerance, params_of
from pipesim.cli.output import progress, show

if TYPE_CHECKING:
    from pipesim.targets import Target
    from pipesim.trace.schema import TraceMeta


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, help="a trace file (Parquet); with two, A")
    parser.add_argument("other", type=Path, nargs="?", help="B, to be compared with A instead of a protocol")
    parser.add_argument("--protocol", help="the protocol to compare it with (default: the one that the trace names)")
    add_params(parser, "a parameter of the protocol (default: the trace's); may be repeated")
    parser.add_argument("--profile", help="latency profile (default: the one of the trace's device)")
    add_tolerance(parser, "; of two traces, B's period from A's")
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.other is not None:
        from pipesim.cli.pair import compare_pair

        return compare_pair(options)

    from pipesim.answers.assemble import hold, mark_of
    from pipesim.answers.heading import heading
    from pipesim.answers.view import VerifyReport
    from pipesim.report.text.words import iterations
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import read_trace

    trace = read_trace(options.trace)
    meta = trace.meta
    with progress(f"flattening {options.protocol or meta.protocol}"):
        target = _target(options.protocol, meta)
        theirs = {} if target.program is not None else {n: v for n, v in meta.params.items() if n in target.defaults}
        program = target.build(theirs | params_of(options), grid=meta.grid)
    profile = load_profile(options.profile) if options.profile else None
    with progress(f"comparing {options.trace.name} with {program.name}"):
        held = hold(program, trace, str(options.trace), profile, options.tolerance)
    who = "simulated" if meta.source == "simulation" else "recorded"
    found = held.block.conformance
    part = f" in {iterations(found.window)}" if found.hides else ""
    verdict = held.why or f"the {who} trace conforms to the protocol{part} ({held.block.device})"
    show(options, VerifyReport(heading(program), (), (held.block,), verdict, mark_of(held.code)), held.code)
    return held.code


def _target(named: str | None, meta: TraceMeta) -> Target:
    """What to hold the trace against. A trace may name a built-in protocol only: it never makes us run a file."""
    from pipesim.errors import UnknownProtocolError
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.targets import find

    if named is None and meta.protocol not in BUILT_IN:
        raise UnknownProtocolError(
            f"the trace is of protocol {meta.protocol}, which is not built in",
            correction="name the protocol to compare it with: --protocol file.py:function, or a program's .json",
        )
    return find(named or meta.protocol)


COMMAND = Command(
    "diff",
    "compare a trace with its protocol, or two traces with each other",
    "Compare a recorded trace with the protocol that it names, event by event and in time, or compare two traces: "
    "their behaviour, then where time was gained or lost.",
    _arguments,
    _carry_out,
)
