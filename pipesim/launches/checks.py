"""Verdicts on launches that were caught: each is read from its two files, as ``pipesim check`` reads them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from pipesim.answers.budget import Budget, states_of
from pipesim.answers.check import check
from pipesim.answers.progress import SILENT, Progress
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.launches import CaughtKernel, CaughtLaunch, LaunchesReport
from pipesim.errors import PipesimError, internal_error
from pipesim.model.finding import Verdict
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.watch import current
from pipesim.report.findings.brief import in_one_line
from pipesim.targets import Target, find

Report = TypeVar("Report")


class BlockReport(Generic[Report]):
    """Files of a folder in the making. To ask for anything of it ends that, if it has not ended."""

    def __init__(self, folder: Path, finish: Callable[[], Report]) -> None:
        self._folder = folder
        self._finish = finish
        self._report: Report | None = None

    def stop(self) -> None:
        """End it and write the files; nothing if that was done. UsageError if they cannot be written."""
        if self._report is None:
            self._report = self._finish()

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    @property
    def report(self) -> Report:
        """Everything that was observed, as data; its fields may change between versions."""
        self.stop()
        assert self._report is not None
        return self._report


CheckOne = Callable[[Path, Path], tuple[Verdict, str]]  #: of a PTX file and a launch file: the verdict, and a line


def check_launch(
    ptx: Path, launch: Path, *, max_states: int | None = None, budget: Budget | None = None, progress: Progress = SILENT
) -> tuple[Verdict, str]:
    """The verdict on one launch, and a line about it. Unknown if it cannot be read in its limits.

    ``max_states``: as ``pipesim check --max-states``. Only the verdict is looked for, no smaller size or correction.
    """
    report = checked(ptx, launch, max_states=max_states, budget=budget, progress=progress)
    return (Verdict.UNKNOWN, report) if isinstance(report, str) else (report.verdict, in_one_line(report))


def checked(
    ptx: Path, launch: Path, *, max_states: int | None = None, budget: Budget | None = None, progress: Progress = SILENT
) -> CheckReport | str:
    """The answer about one launch, as :func:`check_launch` says it; a line where there is none."""
    made = checked_target(lambda: find(str(ptx), launch=str(launch)), max_states, budget, progress)
    return made if isinstance(made, CheckReport) else f"unknown: {made.fact.removeprefix('unknown: ')}"


def checked_target(
    make: Callable[[], Target], max_states: int | None, budget: Budget | None, progress: Progress = SILENT
) -> CheckReport | PipesimError:
    """The answer about what ``make`` gives; an error where that cannot be read, or a limit ended it."""
    try:
        target = make()
        program = target.build()
        most = states_of(max_states, program)
        return check(target, {}, max_states=most, program=program, quick=True, budget=budget, progress=progress)
    except PipesimError as error:
        return error
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
        return internal_error(error)
    except LimitReachedError as reached:
        current().resume()
        return limit_error(reached)


def check_launches(report: LaunchesReport, folder: Path, check_one: CheckOne = check_launch) -> LaunchesReport:
    """The report with a verdict on every launch that has a file; those that have none are unknown, for their reason."""
    kernels = tuple(
        replace(kernel, caught=tuple(_check_kernel(kernel, each, folder, check_one) for each in kernel.caught))
        for kernel in report.kernels
    )
    return replace(report, kernels=kernels, checked=True)


def _check_kernel(kernel: CaughtKernel, each: CaughtLaunch, folder: Path, check_one: CheckOne) -> CaughtLaunch:
    if not each.file:
        return replace(each, verdict=Verdict.UNKNOWN, said=f"unknown: {each.reason}")
    verdict, said = check_one(folder / kernel.ptx, folder / each.file)
    return replace(each, verdict=verdict, said=said)
