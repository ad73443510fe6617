"""Where the commands meet the person: reports and JSON on standard output, progress and errors on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipesim.errors import PipesimError

if TYPE_CHECKING:
    from rich.console import Console

    from pipesim.model.finding import Finding
    from pipesim.report.view import RunReport, VerifyReport


def show(
    options: argparse.Namespace, report: RunReport | VerifyReport, code: int, findings: Sequence[Finding] = ()
) -> None:
    """Print a report: as JSON ``{"exit_code", "findings", "report"}`` if asked for, else painted.

    The findings stand before a report of ``verify``; that of ``run`` shows its own.
    """
    from pipesim.report.view import RunReport

    def paint(console: Console) -> None:
        if isinstance(report, RunReport):
            from pipesim.report.run import paint_run

            paint_run(console, report)
            return
        from pipesim.report.finding import paint_findings
        from pipesim.report.verify import paint_verify

        if findings:
            paint_findings(console, findings)
            console.print()
        paint_verify(console, report)

    emit(options, {"exit_code": code, "findings": findings, "report": report}, paint)


def emit(options: argparse.Namespace, value: object, paint: Callable[[Console], None]) -> None:
    """Print ``value`` as JSON if ``--json`` was given, else let ``paint`` write.

    A reader that has gone (``| head``) is no error and must not change the exit code, so the rest is dropped.
    """
    from pipesim.cli.as_json import as_json
    from pipesim.report.console import make_console

    try:
        if options.json:
            print(as_json(value))  # the command's output
        else:
            paint(make_console())
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the first into the second
        discard_output()


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter does not trip over it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(error: PipesimError) -> None:
    """An error on standard error: fact, place, probable cause, correction."""
    print(f"pipesim: {error}", file=sys.stderr)  # the one place where errors reach a person


@contextmanager
def progress(what: str) -> Iterator[None]:
    """While the block runs, a line on standard error that says ``what``, if that is a terminal; nothing remains."""
    if not sys.stderr.isatty():
        yield
        return
    from pipesim.report.console import make_console

    with make_console(sys.stderr).status(f"{what} ...", spinner="line"):  # ASCII: any terminal prints it
        yield
