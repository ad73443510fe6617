"""``pipesim check`` with ``--redundant``, ``--sequence FILE`` or ``--against OLD``: other questions."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipesim.cli.arguments import build_target, params_of, refuse_beside
from pipesim.cli.limits import start
from pipesim.cli.output import show_answer
from pipesim.errors import ParameterError

if TYPE_CHECKING:
    from pipesim.answers.views.check import Brief, CheckReport
    from pipesim.model.program import Program
    from pipesim.ptx.source_files import SourceFiles


Checked = tuple["CheckReport", "Program", "SourceFiles | None"]


def carry_out_against(options: argparse.Namespace, names: list[str], check: Callable[[str], Checked]) -> int:
    """Check the one protocol that is named and the older version, and compare them; the exit code.

    ``check`` gives the report, the program and the source files of one. ParameterError for several, or other questions.
    """
    if len(names) > 1:
        raise ParameterError("--against compares one protocol with its older version", correction="name only that one")
    refuse_beside(options, "--against", "replay", "redundant", "sarif", "update_baseline")
    _require_plain_format(options, "--against")

    old, old_program, _ = check(options.against)
    new, new_program, sources = check(names[0])

    from pipesim.answers.check import against
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.formats.documents import document_of
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.pages.checks.against import against_brief, against_lines

    report = against(old, new, old_program, new_program)
    with lines_read_from(sources):
        made = _brief(options, names[0], against_brief(report), exit_code(report)) or document_of(report)
        return show_answer(options, made, lambda width: against_lines(report, width))


def _require_plain_format(options: argparse.Namespace, asked: str) -> None:
    if options.format not in (None, "text", "json", "brief"):
        correction = "use --format text, json or brief"
        raise ParameterError(f"{asked} and --format {options.format}", correction=correction)


def _brief(options: argparse.Namespace, name: str, brief: "Brief", code: int) -> dict[str, object] | None:
    """The document of a brief alone, if that is asked for."""
    from pipesim.formats.documents import document

    return document("check-brief", code, protocols={name: {"brief": brief}}) if options.format == "brief" else None


def carry_out_sequence(options: argparse.Namespace) -> int:
    """Check what the launches of a file do to the same memory; the exit code. ParameterError beside other questions."""
    if options.protocol or options.launch or options.format not in (None, "text", "json"):
        raise ParameterError("--sequence and another question", correction="give --sequence FILE alone, or with --json")
    start(options)

    from pipesim.answers.launch_sequence.check import check_sequence
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.formats.documents import document
    from pipesim.report.pages.checks.sequence import sequence_lines

    report = check_sequence(options.sequence)
    made = document("check-sequence", exit_code(report), report=report)
    return show_answer(options, made, lambda width: sequence_lines(report, width))


def carry_out_redundant(options: argparse.Namespace, names: list[str], launch_of: Callable[[str], str]) -> int:
    """Look for what one protocol does not need; the exit code. ParameterError for several, or other questions.

    Levels and waivers are other questions: what has a finding, waived or not, is not proved without anything.
    """
    if len(names) > 1:
        raise ParameterError("--redundant takes one protocol", correction="name only that one")
    asked = ("quick", "replay", "sarif", "fix", "fail_on", "ignore", "baseline", "update_baseline")
    refuse_beside(options, "--redundant", *asked)
    _require_plain_format(options, "--redundant")

    start(options)
    target, program = build_target(options, names[0], launch_of(names[0]))

    from pipesim.answers.budget import Budget, states_of
    from pipesim.answers.redundant import redundant
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.cli.output import TerminalProgress
    from pipesim.formats.documents import document
    from pipesim.report.pages.checks.redundant import redundant_brief, redundant_lines

    report = redundant(
        target, params_of(options), program=program, ctas=options.ctas,
        max_states=states_of(options.max_states, program),
        budget=Budget(options.time_limit), progress=TerminalProgress(),
    )  # fmt: skip
    made = _brief(options, names[0], redundant_brief(report), exit_code(report))
    made = made or document("check-redundant", exit_code(report), redundant=report)
    return show_answer(options, made, lambda width: redundant_lines(report, width))
