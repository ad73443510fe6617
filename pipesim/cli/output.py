"""Where the commands meet the person: reports and JSON on standard output, progress and errors on standard error."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from pipesim.errors import PipesimError

if TYPE_CHECKING:
    from rich.console import Console


_CAUSE = "  probable cause: "  # as PipesimError has it


def refuse(options: argparse.Namespace, error: PipesimError) -> None:
    """Say that a command cannot be carried out; with ``--json`` standard output has ``{"exit_code", "error"}`` too."""
    complain(error)
    if options.json:
        emit(options, {"exit_code": error.exit_code, "error": error}, lambda _: None)


def emit(options: argparse.Namespace, value: object, paint: Callable[[Console], None]) -> None:
    """Print ``value`` as JSON if ``--json`` was given, else let ``paint`` write.

    A reader that has gone (``| head``) is not an error and must not change the exit code, so the rest is dropped.
    """
    if options.json:
        from pipesim.export.as_json import as_json
        from pipesim.report.sentences.document import in_words

        write(lambda _: print(as_json(value, in_words)))  # the command's output
    else:
        write(paint)


def write(paint: Callable[[Console], None]) -> None:
    """Let ``paint`` write to standard output now; what it writes is there before this returns."""
    from pipesim.report.text.console import make_console

    try:
        paint(make_console())
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the first into the second
        discard_output()


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter does not fail on it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(error: PipesimError) -> None:
    """An error on standard error: fact, place, probable cause, correction. The cause is wrapped as reports are.

    The others are left alone: they have paths, commands to copy, and a compiler's log.
    """
    cause = _wrapped(error.cause)
    remark(str(PipesimError(error.fact, place=error.place, cause=cause, correction=error.correction)))


def remark(text: str) -> None:
    """A text on standard error, as pipesim's: the one place where errors and notes reach a person."""
    print(f"pipesim: {text}", file=sys.stderr)


def _wrapped(cause: str) -> str:
    """The cause in lines of the terminal's width; words, such as paths, stay whole."""
    if not cause or "\n" in cause:
        return cause
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

    What a protocol prints meanwhile goes to standard error, too: standard output is the report's.
    """
    with _line(what), redirect_stdout(sys.stderr):
        yield


@contextmanager
def counted(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """The same for work in ``total`` steps: the block calls what it is given after each, with a text."""
    with _line(f"{what}: 0 of {total:,} steps") as tell:
        steps = 0

        def done(said: str) -> None:
            nonlocal steps
            steps += 1
            tell(f"{what}: {steps:,} of {total:,} steps, {said}")

        yield done


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
            task = shown.add_task(what, total=None)

            def tell(done: int, of: int) -> None:
                counted = f": {done:,} of {of:,}" if of else f": {done:,} tried" if done else ""
                shown.update(task, description=f"{what}{counted}")

            yield tell


@contextmanager
def _line(what: str) -> Iterator[Callable[[str], None]]:
    """The line of progress; the block may change it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from pipesim.report.text.console import make_console

    with make_console(sys.stderr).status(f"{what} ...", spinner="line") as status:  # ASCII: any terminal prints it
        yield lambda said: status.update(f"{said} ...")
