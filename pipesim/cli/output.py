"""Where the commands meet the person: reports and JSON on standard output, progress and errors on standard error."""

from __future__ import annotations

import argparse
import io
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from pipesim.answers.progress import Progress, Stage, Step
from pipesim.errors import EvidenceError, PipesimError, UsageError
from pipesim.report.sentences.stage import doing_words, done_words
from pipesim.report.text.words import inert_text, printable

if TYPE_CHECKING:
    from enum import Enum

    from rich.console import Console

    from pipesim.answers.progress import Unit
    from pipesim.answers.views.conclusion import Answer


Report = TypeVar("Report", bound="Answer")
_CAUSE = "  probable cause: "  # as PipesimError has it


def refuse(error: PipesimError, *, json: bool) -> int:
    """Say that a command cannot be carried out; ``json``: standard output also has the document of the error.

    The exit code, which is the error's, whether or not the document can be written.
    """
    complain(error)
    if json:
        from pipesim.formats.documents import document

        with suppress(UsageError):  # standard output may be what failed
            said = document("error", error.exit_code, error=error)
            emit(argparse.Namespace(json=True), said, lambda _: None)
    return error.exit_code


def emit(options: argparse.Namespace, value: object, paint: Callable[[Console], None]) -> None:
    """Print ``value`` as JSON if ``--json`` was given, else let ``paint`` write.

    A reader that has gone (``| head``) is not an error and must not change the exit code, so the rest is dropped.
    UsageError if standard output cannot be written.
    """
    if options.json:
        from pipesim.formats.documents import as_json
        from pipesim.report.pages.document import in_words

        text = as_json(value, in_words)
        write(lambda _: print(text))  # the command's output
    else:
        write(paint)


def show_answer(
    options: argparse.Namespace, document: Mapping[str, object], lines: Callable[[int], Sequence[str]]
) -> int:
    """Print an answer as JSON, or as the report that ``lines`` makes for a width; its exit code, 0 if it names none."""
    emit(options, document, lambda console: _paint(console, lines))
    code = document.get("exit_code", 0)
    assert isinstance(code, int)
    return code


def show_report(options: argparse.Namespace, report: Report, lines: Callable[[Report, int], Sequence[str]]) -> int:
    """The same of a report that has a document of its own."""
    from pipesim.formats.documents import document_of

    return show_answer(options, document_of(report), lambda width: lines(report, width))


def write_report(lines: Callable[[int], Sequence[str]]) -> None:
    """Write a report, or a part of one, to standard output now. Raises as emit does."""
    write(lambda console: _paint(console, lines))


def _paint(console: Console, lines: Callable[[int], Sequence[str]]) -> None:
    from pipesim.report.text.console import paint, width_of

    paint(console, lines(width_of(console)))


def write(paint: Callable[[Console], None]) -> None:
    """Let ``paint`` write to standard output now; what it writes is there before this returns. Raises as emit does."""
    from pipesim.report.text.console import make_console

    with _to_a_reader():
        paint(make_console())


@contextmanager
def _to_a_reader() -> Iterator[None]:
    """What is written to standard output inside is there afterwards, or dropped if its reader has gone."""
    try:
        yield
        sys.stdout.flush()
    except SystemExit:  # rich makes one of a broken pipe
        discard_output()
    except OSError as error:
        if error.filename is not None:  # another file than standard output
            raise
        drop_output(error)


def write_text(text: str) -> None:
    """A text for another tool, as it is, whatever the width; ``?`` for what the stream's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    with _to_a_reader():
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def show_text(options: argparse.Namespace, document: Mapping[str, object], text: str, use: str) -> int:
    """A text for another tool: in the file ``--output``, with a line that says how to ``use`` it, else as it is."""
    from pipesim.process.files import write_whole

    said = text
    if options.output is not None:
        write_whole(options.output, text.encode(), force=options.force)
        said = f"wrote {printable(str(options.output))}: {use}\n"
    emit(options, document, lambda _: write_text(said))
    return 0


def complain(error: PipesimError) -> None:
    """An error on standard error: fact, place, probable cause, correction. The cause is wrapped as reports are.

    The others are left alone: they have paths, commands to copy, and a compiler's log.
    """
    parts = {name: _indent(getattr(error, name)) for name in ("place", "correction")}
    cause = _wrap_cause(error.cause) if error.cause and "\n" not in error.cause else _indent(error.cause)
    remark_text("pipesim: " + str(PipesimError(_indent(error.fact), cause=cause, **parts)))


def remark(text: str) -> None:
    """A note of one line on standard error."""
    remark_text(f"pipesim: {printable(text)}")


def remark_text(text: str) -> None:
    """Lines on standard error: the one place where errors and notes reach a person."""
    print(inert_text(text), file=sys.stderr)


def _indent(text: str) -> str:
    """A part of an error. Its lines after the first stand below it, so that none of them looks like another part."""
    return text.replace("\n", "\n    ")


def _wrap_cause(cause: str) -> str:
    """The cause in lines of the terminal's width; words, such as paths, stay whole."""
    from pipesim.report.text.console import make_console, width_of

    wrapped = textwrap.fill(
        _CAUSE + cause,
        width_of(make_console(sys.stderr)),
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped.removeprefix(_CAUSE)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """While the block runs, a line on standard error that says ``what``, if that is a terminal; nothing remains.

    What a protocol prints meanwhile also goes to standard error: standard output is the report's.
    """
    with _line(what), redirect_stdout(sys.stderr):
        yield


@contextmanager
def step_line(what: str) -> Iterator[Callable[[str], None]]:
    """The same for work in steps that are not counted: the block calls what it is given with each."""
    with _line(what) as tell, redirect_stdout(sys.stderr):
        yield lambda said: tell(f"{what}: {said}")


@contextmanager
def step_counter(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """The same for work in ``total`` steps: the block calls what it is given after each, with a text."""
    with _line(f"{what}: 0 of {total:,} steps") as tell:
        steps = 0

        def advance(said: str) -> None:
            nonlocal steps
            steps += 1
            tell(f"{what}: {steps:,} of {total:,} steps, {said}")

        yield advance


@contextmanager
def counted_units(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line on standard error, if that is a terminal: ``what``, the elapsed time, and units of work done of how many.

    The block calls what it is given with both numbers, 0 for how many if it is not known.
    """
    with redirect_stdout(sys.stderr):
        if not sys.stderr.isatty():
            yield lambda done, of: None  # noqa: ARG005
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from pipesim.report.text.console import make_console

        columns = (SpinnerColumn("line"), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=make_console(sys.stderr), transient=True) as shown:
            task = shown.add_task(printable(what), total=None)

            def tell(done: int, of: int) -> None:
                counted = f": {done:,} of {of:,}" if of else f": {done:,} tried" if done else ""
                shown.update(task, description=printable(f"{what}{counted}"))

            yield tell


@contextmanager
def _line(what: str) -> Iterator[Callable[[str], None]]:
    """The line of progress; the block may change it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from pipesim.report.text.console import make_console

    shown = printable(what)
    with make_console(sys.stderr).status(f"{shown} ...", spinner="line") as status:  # ASCII: any terminal prints it
        yield lambda said: status.update(f"{printable(said)} ...")


# The process's own streams


@contextmanager
def lasting_streams() -> Iterator[None]:
    """While the block runs both streams are there, also where the caller closed them, and standard error takes all.

    Streams that are not the process's own, as a test or a notebook has them, are left alone.
    """
    if sys.stdout is None:  # closed by the caller: no report is expected
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    before = sys.stderr
    own = sys.__stderr__
    if own is None or before is not own:
        yield
        return
    raw = _Lossy(own.fileno(), "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), own.encoding, own.errors or "backslashreplace", line_buffering=True
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def _nowhere() -> TextIO:
    """A stream that drops everything, as long as the process lives."""
    raw = io.FileIO(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace")


class _Lossy(io.FileIO):
    """A stream whose disk may be full, or whose reader gone: what cannot be written is dropped."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # any buffer of bytes, as BufferedWriter gives it
        """The bytes, all of which count as written."""
        with suppress(OSError):
            super().write(data)
        return len(data)


def deliver() -> None:
    """Write what is left in the buffer of standard output. UsageError if it cannot be, unless its reader has gone."""
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_output(error)


def drop_output(error: OSError) -> None:
    """Standard output failed: the rest of it goes nowhere. UsageError, unless its reader has gone (``| head``)."""
    discard_output()
    if not isinstance(error, BrokenPipeError):
        raise UsageError(
            f"standard output cannot be written: {error.strerror or error}",
            cause="the disk is full, or the file was closed",
            correction="write to another file, or free space",
        ) from error


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter does not fail on it when it ends."""
    with suppress(OSError, ValueError):  # a file in memory has no number
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


_NAMED = 3  #: Parquet files of other programs that a note names


class TerminalProgress(Progress):
    """Shows what is being done on standard error."""

    def stage(self, stage: Stage, *names: str) -> AbstractContextManager[None]:
        """A line with the stage, while the block runs."""
        return progress(doing_words(stage, *names))

    @contextmanager
    def steps(self, protocols: int, steps: int) -> Iterator[Step]:
        """A line that counts the steps."""
        with step_counter(f"verifying {protocols} protocols", steps) as tell:

            def step(ended: int, protocol: str, stage: Stage, name: str) -> None:
                tell(f"{ended} of {protocols} done; last {protocol}, {done_words(stage, name)}")

            yield step

    def check_step(self, protocol: str, step: Enum) -> AbstractContextManager[Unit]:
        """A line with the step of a check, how far it is, and for how long it has run."""
        return counted_units(f"checking {protocol}: {step.value}")

    def configurations(self, protocol: str, number: int) -> AbstractContextManager[Unit]:
        """A line that counts the configurations that have an answer."""
        return counted_units(f"sweeping {protocol}, {number:,} configurations")

    def report_missing(self, error: EvidenceError) -> None:
        """The error, before the answer."""
        complain(error)

    def left_out(self, files: tuple[Path, ...]) -> None:
        """A note that names the first of them."""
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        what = "a Parquet file that is not a trace" if len(files) == 1 else "Parquet files that are not traces"
        remark(f"note: left out, {what}: {', '.join(map(str, files[:_NAMED]))}{more}")
