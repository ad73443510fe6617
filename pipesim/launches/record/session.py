"""``pipesim.record``: the kernels of a part of this process, as traces with their PTX and launch files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipesim.answers.views.launches import RecordReport
from pipesim.bounds import MAX_SPOOL_BYTES
from pipesim.conform.agreement import Agreement
from pipesim.errors import ParameterError
from pipesim.formats.documents import as_json, document, record_exit_code
from pipesim.launches.checks import BlockReport
from pipesim.launches.files.gather import require_folder
from pipesim.launches.inject import counting_library, limits_of, spool_folder
from pipesim.launches.record.gather import gather_recording
from pipesim.launches.record.options import RecordOptions
from pipesim.launches.record.process import start_recording
from pipesim.launches.record.service import Preparation
from pipesim.model.ending import Ending
from pipesim.report.pages.document import in_words
from pipesim.report.pages.programs.launches import recording_lines
from pipesim.report.text.console import text_of

WIDTH = 100  #: cells of a report as text
MOST_DISTINCT = 4096  #: distinct launches of a process that are known by their parameters


@dataclass(frozen=True)
class RecordedTrace:
    """A launch that was recorded; or a launch or a kernel that was not, for a ``reason``.

    ``trace``, ``ptx`` and ``launch`` are the files that ``pipesim diff TRACE --protocol PTX --launch LAUNCH`` takes,
    None if there are none. ``agreement`` is None if the trace was not compared.
    """

    kernel: str
    trace: Path | None
    ptx: Path | None
    launch: Path | None
    events: int
    ending: Ending | None
    agreement: Agreement | None
    reason: str


class Recording(BlockReport[RecordReport]):
    """What :func:`record` yields. To ask for anything of it ends the recording, if it has not ended."""

    @property
    def traces(self) -> tuple[RecordedTrace, ...]:
        """Each launch that was to be recorded, and each kernel of which none was; in the order of first launches."""
        found: list[RecordedTrace] = []
        for kernel in self.report.kernels:
            for each in kernel.recorded:
                files = (self._path_of(each.trace), self._path_of(kernel.ptx), self._path_of(each.launch))
                found.append(RecordedTrace(kernel.name, *files, each.events, each.ending, each.agreement, each.reason))
            if not kernel.recorded:
                found.append(RecordedTrace(kernel.name, None, None, None, 0, None, None, kernel.reason))
        return tuple(found)

    def to_json(self) -> str:
        """The document that ``pipesim record --json`` prints."""
        return as_json(document("record", record_exit_code(self.report), report=self.report), in_words)

    def _path_of(self, name: str) -> Path | None:
        return self._folder / name if name else None

    def __repr__(self) -> str:
        state = "recording" if self._report is None else f"{len(self._report.traces):,} traces"
        return f"<Recording {self._folder}: {state}>"

    def __str__(self) -> str:
        return text_of(recording_lines(self.report, WIDTH))


@contextmanager
def record(
    folder: Path | str = "recording",
    *,
    kernels: Sequence[str] | str = (),
    launches: int = 1,
    skip: int = 0,
    deadline_s: float | None = None,
    waits_only: bool = False,
    cta: int = 0,
    compare: bool = False,
    max_bytes: int = MAX_SPOOL_BYTES,
    force: bool = False,
) -> Iterator[Recording]:
    """Record the kernels that this process loads and launches within the block, as traces of their PTX.

    ``kernels``: shell patterns ("gemm*"), of which a kernel's name must match one. ``launches`` of each kernel are
    recorded, after its first ``skip``. ``deadline_s``: a launch is stopped after this time in seconds. ``waits_only``:
    fewer records. ``cta``: the CTA that leaves records, with the others of its cluster. ``compare``: each trace is
    compared with the program of its PTX; one of a launch that did not end always is. ``max_bytes`` of records at most.
    The files are written where the block ends. Raises OutputExistsError if the folder has something in it, unless
    ``force``; MissingExtraError without CUPTI or a driver; CuptiError where another profiler observes the process;
    ParameterError for options out of their range.
    """
    patterns = (kernels,) if isinstance(kernels, str) else tuple(kernels)
    if not all(patterns):
        raise ParameterError("a pattern of kernels is empty", correction='give one as "gemm*", or none')
    limits = limits_of(patterns, MOST_DISTINCT, max_bytes, once=False)
    options = RecordOptions(launches, skip, deadline_s, waits_only, cta)
    into = Path(folder)
    require_folder(into, force=force)
    with spool_folder() as spool:
        preparation = Preparation(spool, options)
        process = start_recording(spool, limits, options, preparation.ready, counting_library())

        def finish() -> RecordReport:
            process.stop()
            preparation.close()
            report, files = gather_recording(spool, folder=str(into), patterns=limits.patterns, compare=compare)
            files.write(into, force=force)
            return report

        recording = Recording(into, finish)
        try:
            yield recording
        finally:
            recording.stop()
