"""``pipesim diff A B``: compare two traces, behaviour first, then time."""

from __future__ import annotations

import argparse

from pipesim.cli.output import progress, show_answer
from pipesim.errors import UsageError


def diff_pair(options: argparse.Namespace) -> int:
    """Carry out ``pipesim diff A B``; the exit code."""
    _refuse_options(options)

    from pipesim.answers.pair import compare_pair
    from pipesim.export.documents import document_of
    from pipesim.report.pages.pair import pair_lines
    from pipesim.trace.files import read_trace

    one, two = read_trace(options.trace), read_trace(options.other)
    with progress(f"comparing {options.trace.name} with {options.other.name}"):
        report = compare_pair(one, two, (str(options.trace), str(options.other)), options.tolerance)
    return show_answer(options, document_of(report), lambda width: pair_lines(report, width))


def _refuse_options(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that means something with one trace only."""
    given = (
        ("--protocol", options.protocol), ("-p", options.param), ("--profile", options.profile),
        ("--launch", options.launch), ("--set", options.sets),
    )  # fmt: skip
    for name, value in given:
        if value:
            raise UsageError(
                f"{name} has no effect with two traces",
                cause="two traces are compared with each other, not with a protocol or a simulation",
                correction=f"leave {name} out, or name one trace only",
            )
