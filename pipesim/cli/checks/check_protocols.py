"""Several protocols and kernels checked one after the other, each in steps: what ``pipesim check`` does and writes.

Reports as they are known, then a document, SARIF, and corrections as a diff.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import build_target, params_of, schedule_text
from pipesim.cli.limits import start
from pipesim.cli.output import complain, emit, progress, remark, write_report, write_text
from pipesim.errors import LimitError, PipesimError, SeveralProtocolsError
from pipesim.inputs import source_roots
from pipesim.process.files import write_whole
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.watch import current, exit_code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from pipesim.answers.project_settings import ProjectSettings, TriagePolicy
    from pipesim.answers.views.check import CheckReport
    from pipesim.model.program import Program
    from pipesim.ptx.source_files import SourceFiles
    from pipesim.report.text.source_fix import SourceFix
    from pipesim.targets import Target


def check_all(options: argparse.Namespace, names: list[str], settings: ProjectSettings, policy: TriagePolicy) -> int:
    """Check what each name is of, and write what is known of it; the exit code."""
    checks = Checks(options, policy, paints=options.format in (None, "text") and not options.json)
    try:
        made, failed = _build_all(options, names, settings)
    except KeyboardInterrupt:
        checks.say_stopped(names)
        raise
    if failed:
        checks.triage.give_up()
    checks.carry_out_all(made)
    if policy.update and policy.file is not None:
        write_whole(policy.file, checks.triage.baseline().encode("ascii"), force=True)
    return write_answers(options, checks.reports, checks.sources, failed, checks.stopped)


def _build_all(
    options: argparse.Namespace, names: list[str], settings: ProjectSettings
) -> tuple[dict[str, tuple[Target, Program]], dict[str, PipesimError]]:
    """The program of each name, of each protocol where a file has several, of each launch where a kernel has several,
    and the errors of those without one.

    The error of the only one is raised, unless another tool is to read of it.
    """
    made: dict[str, tuple[Target, Program]] = {}
    failed: dict[str, PipesimError] = {}
    left: list[tuple[str, str]] = []
    for name in names:
        several = options.replay is None and settings.launches_of(name)
        left += [(name, launch) for launch in several or [settings.launch_of(name)]]
    together = len(left) > 1 or options.sarif is not None or options.format in ("github", "junit", "sarif")
    while left:
        spelled, launch = left.pop(0)
        name = f"{spelled} --launch {launch}" if len(settings.launches_of(spelled)) > 1 else spelled
        if name in made or name in failed:  # a function of a file that is also named
            continue
        try:
            start(options)
            made[name] = build_target(options, spelled, launch)
        except SeveralProtocolsError:
            from pipesim.protocol_process import said_of

            if options.replay is not None:
                raise
            left = [
                (f"{name}:{function}", "") for function in said_of(name, "pipesim.protocol_files", "makers_of")
            ] + left
            together = True
        except (PipesimError, LimitReachedError) as raised:
            if not together:
                raise
            failed[name] = error = _dealt_with(raised)
            complain(error)  # now: the others may take long, and are checked nevertheless
    return made, failed


class Checks:
    """The checks of one command. A text report is written as it is known: the verdict, then the rest of it.

    Ctrl-C after a verdict ends what follows it; of the other protocols only the verdict is then looked for. Before a
    verdict it ends the whole. ``stopped``: by which signal; ``is_over``: before a verdict.
    """

    def __init__(self, options: argparse.Namespace, policy: TriagePolicy, *, paints: bool) -> None:
        from pipesim.answers.project_settings import Triage
        from pipesim.report.text.source import text_of, whole_text_of

        self.triage = Triage(policy, text_of, whole_text_of)
        self.reports: dict[str, CheckReport] = {}
        self.sources: dict[str, SourceFiles | None] = {}  #: of each, where a kernel's lines are read
        self._options = options
        self._paints = paints
        self._quick: bool = options.quick
        self.stopped: KeyboardInterrupt | None = None
        self.is_over = False

    def carry_out(self, name: str, target: Target, program: Program, *, last: bool) -> None:
        """Check one protocol; the report of the ``last`` one says which waivers match nothing."""
        from pipesim.answers.check import program_of_schedule, replay
        from pipesim.answers.views.redacted import without_folders
        from pipesim.ptx.source_files import lines_read_from
        from pipesim.report.pages.checks.check import check_lines

        if self.reports:
            self._write(lambda _: [""])
        with lines_read_from(target.sources):  # others were read since
            if self._options.replay is not None:
                with progress(f"checking {program.name}"):
                    text = schedule_text(self._options.replay)
                    report = replay(program_of_schedule(target, program, text, self._options.ctas), text)
                self._write(lambda width: check_lines(report, width))
            else:
                report = self._in_steps(target, program, last=last)
        name = without_folders(name) if self._options.redact else name
        self.reports[name], self.sources[name] = report, target.sources

    def carry_out_all(self, made: dict[str, tuple[Target, Program]]) -> None:
        """Check each that was made, which is then forgotten, until the whole is over."""
        while made and not self.is_over:
            name = next(iter(made))
            self.carry_out(name, *made.pop(name), last=not made)
        if made:
            remark(f"not checked: {', '.join(made)}")

    def check(self, name: str, launch: str) -> tuple[CheckReport, Program, SourceFiles | None]:
        """Build and check one of two versions: its report, its program, and where its lines are read."""
        target, program = build_target(self._options, name, launch)
        self.carry_out(name, target, program, last=False)
        if self.stopped is not None and self.is_over:
            raise self.stopped
        return self.reports[name], program, target.sources

    def _in_steps(self, target: Target, program: Program, *, last: bool) -> CheckReport:
        from pipesim.answers.budget import Budget, states_of
        from pipesim.answers.checking.failures import CheckQuestion
        from pipesim.answers.checking.stepped import SteppedCheck
        from pipesim.answers.every_size.classes import AnyWord
        from pipesim.cli.output import TerminalProgress
        from pipesim.model.finding import Verdict
        from pipesim.report.pages.checks.check import check_lines, detail_lines, verdict_lines

        options = self._options
        start(options)
        asked = CheckQuestion(
            target,
            params_of(options),
            program,
            options.ctas,
            max_states=states_of(options.max_states, program),
            quick=self._quick,
            any_words=tuple(map(AnyWord.read, options.any)),
        )
        checking = SteppedCheck(asked, Budget(options.time_limit), TerminalProgress())
        begun = False
        try:
            known = self._shown(checking.verdict())
            if begun := not (target.guessed and known.verdict is Verdict.REFUTED):  # what was found is not known yet
                self._write(lambda width: verdict_lines(known, width))
            checking.details()
        except KeyboardInterrupt as error:
            self.stopped, self.is_over, self._quick = error, not checking.has_verdict, True
            checking.interrupt()
            current().resume()
        beside = None if self._quick and self.stopped else checking.beside
        report = self.triage.of(checking.report(), program.sources, last=last, beside=beside)
        report = self._shown(report.with_guess(target.guessed, partial(_by_other_guesses, target, options)))
        self._write(lambda width: (detail_lines if begun else check_lines)(report, width))
        return report

    def _shown(self, report: CheckReport) -> CheckReport:
        from pipesim.answers.views.redacted import redacted

        return redacted(report) if self._options.redact else report

    def say_stopped(self, names: Sequence[str]) -> None:
        """The whole report where the programs of ``names`` were not even read."""
        from pipesim.report.text.console import mark
        from pipesim.report.text.layout import wrap

        said = f"unknown: stopped by the user while {', '.join(names)} was read"
        self._write(lambda width: wrap(said, width, f"{mark(None)} "))

    def _write(self, lines: Callable[[int], Sequence[str]]) -> None:
        if self._paints:
            with quoting(self._options):
                write_report(lines)


def _by_other_guesses(target: Target, options: argparse.Namespace) -> object:
    """The report on a kernel in a launch that is guessed otherwise, or why there is none."""
    from pipesim.answers.budget import Budget
    from pipesim.launches.checks import checked_target

    return target.other and checked_target(target.other, options.max_states, Budget(options.time_limit))


def _dealt_with(raised: PipesimError | LimitReachedError) -> PipesimError:
    """Why there is no program of one protocol; the others are built nevertheless."""
    if isinstance(raised, PipesimError):
        return raised
    current().resume()
    return limit_error(raised)


# what is written


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
    from pipesim.answers.views.conclusion import exit_code

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
    from pipesim.report.pages.checks.sarif import sarif_text
    from pipesim.version import __version__

    return sarif_text(reports, failed, __version__, sources)


def _paint(
    options: argparse.Namespace,
    console: Console,
    reports: dict[str, CheckReport],
    sources: dict[str, SourceFiles | None],
    failed: dict[str, PipesimError],
) -> None:
    from pipesim.report.pages.checks.check import verdict_list
    from pipesim.report.pages.checks.sarif import github_lines, junit_text
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
