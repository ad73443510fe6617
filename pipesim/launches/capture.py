"""``pipesim.capture_launches``: the launches of a part of this process, as PTX files and launch files, and verdicts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipesim.answers.budget import Budget
from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.launches import LaunchesReport
from pipesim.errors import ParameterError
from pipesim.formats.documents import as_json, document, launches_exit_code
from pipesim.launches.checks import BlockReport, check_launch, check_launches
from pipesim.launches.files.embedded_ptx import dumped_so_far
from pipesim.launches.files.gather import gather, require_folder, write_launches
from pipesim.launches.inject import counting_library, limits_of, spool_folder
from pipesim.launches.observe.limits import Limits
from pipesim.model.finding import Verdict
from pipesim.report.pages.document import in_words
from pipesim.report.pages.programs.launches import launches_lines
from pipesim.report.text.console import text_of
from pipesim.report.text.words import count

WIDTH = 100  #: cells of a report as text
_USUAL = Limits()


@dataclass(frozen=True)
class CapturedLaunch:
    """A launch of a kernel, of those that differ; or a kernel of which there is no launch file, for a ``reason``.

    ``ptx`` and ``launch`` are the files that ``pipesim check PTX --launch LAUNCH`` takes, None if there are none.
    ``verdict`` is None before ``check()``, and where there was nothing to check; ``said`` says it in a line.
    """

    kernel: str
    origin: str
    ptx: Path | None
    launch: Path | None
    reason: str
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None
    said: str = ""


class CapturedLaunches(BlockReport[LaunchesReport]):
    """What :func:`capture_launches` yields. To ask for anything of it ends the capture, if it has not ended."""

    @property
    def launches(self) -> tuple[CapturedLaunch, ...]:
        """Each distinct launch with its files, and each kernel that has none; in the order of their first launches."""
        return _launches(self.report, self._folder)

    def check(self, *, max_states: int | None = None, time_limit: float | None = None) -> "LaunchVerdicts":
        """The verdict on every launch that has a file.

        ``max_states``: states to search where one run does not decide, by default as ``pipesim check`` does.
        ``time_limit``: seconds of each step of a check.
        """
        budget = Budget(time_limit)
        one = partial(check_launch, max_states=max_states, budget=budget)
        return LaunchVerdicts(check_launches(self.report, self._folder, one), self._folder)

    def __repr__(self) -> str:
        state = "capturing" if self._report is None else count(len(self._report.written), "launch file")
        return f"<CapturedLaunches {self._folder}: {state}>"

    def __str__(self) -> str:
        return text_of(launches_lines(self.report, WIDTH))


@dataclass(frozen=True, repr=False)
class LaunchVerdicts:
    """The verdicts on the launches of a capture. True in a condition only if all are proved, and there is one.

    ``report`` is the whole answer as data; ``folder`` has the files.
    """

    report: LaunchesReport
    folder: Path

    @property
    def all_proved(self) -> bool:
        """Whether every launch of a kernel with barriers whose PTX is known is proved, and there was one.

        Kernels without PTX do not count: nothing is said about them.
        """
        return self.report.conclusion is Conclusion.AGREES

    @property
    def launches(self) -> tuple[CapturedLaunch, ...]:
        """Those of the capture, with their verdicts."""
        return _launches(self.report, self.folder)

    @property
    def refuted(self) -> tuple[CapturedLaunch, ...]:
        """The launches of which a schedule fails."""
        return tuple(each for each in self.launches if each.verdict is Verdict.REFUTED)

    @property
    def unknown(self) -> tuple[CapturedLaunch, ...]:
        """The launches that are neither proved nor refuted."""
        return tuple(each for each in self.launches if each.verdict is Verdict.UNKNOWN)

    def to_json(self) -> str:
        """The document that ``pipesim launches --check --json`` prints."""
        return as_json(document("launches", launches_exit_code(self.report), report=self.report), in_words)

    def __bool__(self) -> bool:
        return self.all_proved

    def __repr__(self) -> str:
        found = Counter(each.verdict for each in self.launches)
        parts = [f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict]]
        first = next((each.said for each in (*self.refuted, *self.unknown)), "")
        return f"<LaunchVerdicts {', '.join(parts) or 'no launch'}{f'; {first}' if first else ''}>"

    def __str__(self) -> str:
        return text_of(launches_lines(self.report, WIDTH))


@contextmanager
def capture_launches(
    folder: Path | str,
    *,
    kernels: Sequence[str] = (),
    once: bool = False,
    max_launches: int = _USUAL.launches,
    max_bytes: int = _USUAL.nbytes,
    ptx: Path | str | None = None,
    force: bool = False,
) -> Iterator[CapturedLaunches]:
    """Write the PTX and a launch file of every kernel with barriers that this process launches within the block.

    ``kernels``: shell patterns ("gemm*"), of which a kernel's name must match one. ``once``: each kernel's first launch
    only. ``max_launches`` distinct ones and ``max_bytes`` are recorded. ``ptx``: a folder of PTX files of a compiler's
    dump, for kernels whose PTX is not found. Prints nothing. The files are written where the block ends, also by an
    exception. Raises OutputExistsError if the folder has something in it, unless ``force``; MissingExtraError without
    CUPTI or a driver; CuptiError where another profiler observes the process.
    """
    if isinstance(kernels, str):
        raise ParameterError("kernels is one text", correction=f"give a list of patterns: [{kernels!r}]")
    limits = limits_of(kernels, max_launches, max_bytes, once=once)
    into = Path(folder)
    require_folder(into, force=force)
    with spool_folder() as spool:
        from pipesim.launches import observe

        observation = observe.start(spool, replace(limits, dump=ptx is not None), counting_library())

        def finish() -> LaunchesReport:
            observation.stop()
            dumped = dumped_so_far(Path(ptx) if ptx else None)
            report, texts = gather(spool, dumped, folder=str(into), patterns=limits.patterns)
            write_launches(report, texts, into, force=force)
            return report

        captured = CapturedLaunches(into, finish)
        try:
            yield captured
        finally:
            captured.stop()


def _launches(report: LaunchesReport, folder: Path) -> tuple[CapturedLaunch, ...]:
    found: list[CapturedLaunch] = []
    for kernel in report.kernels:
        ptx = folder / kernel.ptx if kernel.ptx else None
        found += [
            CapturedLaunch(
                kernel.name,
                kernel.origin,
                ptx if each.file else None,
                folder / each.file if each.file else None,
                each.reason,
                each.notes,
                each.verdict,
                each.said,
            )
            for each in kernel.caught
        ]
        if not kernel.caught:
            found.append(CapturedLaunch(kernel.name, kernel.origin, None, None, kernel.reason))
    return tuple(found)
