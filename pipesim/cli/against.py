"""``pipesim check NEW --against OLD``: two versions compared."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipesim.cli.output import show_answer
from pipesim.errors import ParameterError

if TYPE_CHECKING:
    from pipesim.answers.views.check import CheckReport
    from pipesim.model.program import Program
    from pipesim.ptx.source_files import SourceFiles

Checked = tuple["CheckReport", "Program", "SourceFiles | None"]


def carry_out_against(options: argparse.Namespace, names: list[str], check: Callable[[str], Checked]) -> int:
    """Check the one protocol that is named and the older version, and compare them; the exit code.

    ``check`` gives the report, the program and the source files of one. ParameterError for several, or other questions.
    """
    if len(names) > 1:
        raise ParameterError("--against compares one protocol with its older version", correction="name only that one")
    others = (
        ("--replay", options.replay is not None),
        ("--redundant", options.redundant),
        ("--sarif", options.sarif is not None),
        ("--update-baseline", options.update_baseline),
    )
    for name, given in others:
        if given:
            raise ParameterError(f"--against and {name}", correction="give one of them")
    if options.format not in (None, "text", "json"):
        raise ParameterError(f"--against and --format {options.format}", correction="use --format text or json")

    old, old_program, _ = check(options.against)
    new, new_program, sources = check(names[0])

    from pipesim.answers.against import against
    from pipesim.formats.documents import document_of
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.pages.against import against_lines

    report = against(old, new, old_program, new_program)
    with lines_read_from(sources):
        return show_answer(options, document_of(report), lambda width: against_lines(report, width))
