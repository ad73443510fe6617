"""``pipesim check --sequence FILE``: launches one after the other."""

from __future__ import annotations

import argparse

from pipesim.cli.limits import start
from pipesim.cli.output import show_answer
from pipesim.errors import ParameterError


def carry_out_sequence(options: argparse.Namespace) -> int:
    """Check what the launches of a file do to the same memory; the exit code. ParameterError beside other questions."""
    if options.protocol or options.launch or options.format not in (None, "text", "json"):
        raise ParameterError("--sequence and another question", correction="give --sequence FILE alone, or with --json")
    start(options)

    from pipesim.answers.launch_sequence.check import check_sequence
    from pipesim.formats.documents import document, exit_code
    from pipesim.report.pages.sequence import sequence_lines

    report = check_sequence(options.sequence)
    made = document("check-sequence", exit_code(report), report=report)
    return show_answer(options, made, lambda width: sequence_lines(report, width))
