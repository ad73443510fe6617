"""``pipesim check --redundant``: what a protocol does not need."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pipesim.cli.arguments import build_target, params_of
from pipesim.cli.limits import start
from pipesim.cli.output import show_answer
from pipesim.errors import ParameterError


def carry_out_redundant(options: argparse.Namespace, names: list[str], launch_of: Callable[[str], str]) -> int:
    """Look for what one protocol does not need; the exit code. ParameterError for several, or other questions.

    Levels and waivers are other questions: what has a finding, waived or not, is not proved without anything.
    """
    if len(names) > 1:
        raise ParameterError("--redundant takes one protocol", correction="name only that one")
    others = (
        ("--quick", options.quick),
        ("--replay", options.replay is not None),
        ("--sarif", options.sarif is not None),
        ("--fix", options.fix),
        ("--fail-on", options.fail_on is not None),
        ("--ignore", options.ignore),
        ("--baseline", options.baseline is not None or options.update_baseline),
    )
    for name, given in others:
        if given:
            raise ParameterError(f"--redundant and {name}", correction="give one of them")
    if options.format not in (None, "text", "json"):
        raise ParameterError(f"--redundant and --format {options.format}", correction="use --format text or json")

    start(options)
    target, program = build_target(options, names[0], launch_of(names[0]))

    from pipesim.answers.budget import Budget, states_of
    from pipesim.answers.redundant import redundant
    from pipesim.cli.progress import TerminalProgress
    from pipesim.formats.documents import document, exit_code
    from pipesim.report.pages.redundant import redundant_lines

    report = redundant(
        target, params_of(options), program=program, ctas=options.ctas,
        max_states=states_of(options.max_states, program),
        budget=Budget(options.time_limit), progress=TerminalProgress(),
    )  # fmt: skip
    made = document("check-redundant", exit_code(report), redundant=report)
    return show_answer(options, made, lambda width: redundant_lines(report, width))
