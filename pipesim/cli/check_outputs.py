"""What ``pipesim check`` writes: the report that was not painted yet, a document, SARIF, and corrections as a diff."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.output import emit, remark, write_text
from pipesim.errors import LimitError, PipesimError
from pipesim.inputs import source_roots
from pipesim.process.watch import exit_code_of
from pipesim.trace.whole import write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from pipesim.answers.views.check import CheckReport
    from pipesim.ptx.source_files import SourceFiles
    from pipesim.report.text.source_fix import SourceFix


def quoting(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Where a report is written: with --redact no source line is read."""
    return source_roots(None) if options.redact else nullcontext()


def write_answers(
    options: argparse.Namespace,
    reports: dict[str, CheckReport],
    sources: dict[str, SourceFiles | None],
    failed: dict[str, PipesimError],
    stopped: KeyboardInterrupt | None,
) -> int:
    """Write what was not painted yet; the exit code. ``failed``: why some were not built; ``stopped``: by which signal.

    ``sources``: of each report, where a kernel's lines are read.
    """
    from pipesim.formats.documents import exit_code

    with quoting(options):
        if options.sarif is not None and stopped is not None:
            remark(f"not written: {options.sarif}")  # nor in the way of the same command
        elif options.sarif is not None:
            write_whole(options.sarif, _sarif(reports, sources, failed).encode("ascii"), force=options.force)
        code = _worst(exit_code(*reports.values()), {error.exit_code for error in failed.values()})
        code = code if stopped is None else exit_code_of(stopped)
        said = (_briefs if options.format == "brief" else _document)(reports, failed, code) if options.json else None
        emit(options, said, lambda console: _paint(options, console, reports, sources, failed))
    if options.fix:
        _fix(reports, sources, write=options.write)
    return code


def _worst(known: int, failed: set[int]) -> int:
    """The exit code where some protocols were not built: usage, then a finding, then what is not known."""
    if failed - {LimitError.exit_code}:
        return PipesimError.exit_code
    return LimitError.exit_code if failed and known == 0 else known


def _fix(reports: dict[str, CheckReport], sources: dict[str, SourceFiles | None], *, write: bool) -> None:
    """Show the correction of each finding that is an edit of one line of its source, or that none is; write them."""
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.text.source_fix import source_fix, writable

    found: dict[tuple[Path, int], SourceFix] = {}
    for name, report in reports.items():
        with lines_read_from(sources[name]):
            for shown in report.refutations:
                some = bool(shown.kinds)  # other CTAs do something else
                first = next((fix for c in shown.corrections if (fix := source_fix(c, of_some_ctas=some))), None)
                if first is not None:
                    found.setdefault((first.path, first.number), first)
    fixes = sorted(found.values(), key=lambda fix: (fix.path, -fix.number))  # a line that is deleted moves none of them
    said = [line for fix in fixes for line in fix.diff()]
    none = "no correction is an edit of one line of a source that can be read"
    write_text("".join(f"{line}\n" for line in said or [none]))
    if write and any(fix.proposed for fix in fixes):
        remark("what is a proposal, or proved in one CTA where others do something else, is not written")
    for fix in writable(fixes) if write else ():
        write_whole(fix.path, fix.texts[1].encode(), force=True)


def _document(reports: dict[str, CheckReport], failed: dict[str, PipesimError], code: int) -> dict[str, object]:
    """The JSON: of one protocol its findings and its report, of several those of each, or its error, under its name."""
    from pipesim.formats.documents import document

    each: dict[str, dict[str, object]] = {
        name: {"findings": report.findings, "report": report} for name, report in reports.items()
    }
    each |= {name: {"error": error} for name, error in failed.items()}
    if len(each) == 1:
        return document("check" if reports else "error", code, **next(iter(each.values())))
    return document("check-several", code, protocols=each)


def _briefs(reports: dict[str, CheckReport], failed: dict[str, PipesimError], code: int) -> dict[str, object]:
    """The JSON of the briefs: each under the name of its protocol, one alone as well."""
    from pipesim.formats.documents import document
    from pipesim.report.findings.brief import brief_of

    each: dict[str, object] = {name: {"brief": brief_of(report)} for name, report in reports.items()}
    return document("check-brief", code, protocols=each | {name: {"error": error} for name, error in failed.items()})


def _sarif(
    reports: dict[str, CheckReport], sources: dict[str, SourceFiles | None], failed: dict[str, PipesimError]
) -> str:
    from pipesim import __version__
    from pipesim.report.pages.sarif import sarif_text

    return sarif_text(reports, failed, __version__, sources)


def _paint(
    options: argparse.Namespace,
    console: Console,
    reports: dict[str, CheckReport],
    sources: dict[str, SourceFiles | None],
    failed: dict[str, PipesimError],
) -> None:
    from pipesim.report.pages.check import verdict_list
    from pipesim.report.pages.sarif import github_lines, junit_text
    from pipesim.report.text.console import paint, paint_commands

    match options.format:
        case "github":
            paint_commands(console, github_lines(reports, failed, sources))
        case "junit":
            print(junit_text(reports, failed, sources))
        case "sarif":
            write_text(_sarif(reports, sources, failed))
        case _:
            if reports and len(reports) + len(failed) > 1:
                paint(console, ["", *verdict_list(reports, failed)])
