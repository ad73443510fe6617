"""The command ``pipesim``: parses, hands over to one command, turns errors into exit codes.

0 agrees or safe; 1 findings or divergence; 2 usage; 3 unknown, untrustworthy or nothing to compare with; 4 outside the
tolerance. Only the modules of arguments are imported before a command is known, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pipesim.cli import capture, check, diff, export, list_, new, run, show, table, verify
from pipesim.cli.arguments import Command
from pipesim.cli.output import complain, discard_output, refuse
from pipesim.errors import PipesimError, UsageError

COMMANDS: tuple[Command, ...] = (
    list_.COMMAND,
    show.COMMAND,
    new.COMMAND,
    run.COMMAND,
    check.COMMAND,
    export.COMMAND,
    table.COMMAND,
    capture.COMMAND,
    diff.COMMAND,
    verify.COMMAND,
)
INTERRUPTED = 130  #: as a shell reports a command that Ctrl-C ended


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="pipesim",
        description="Verify, explain and time the mbarrier pipelines of warp-specialised GPU kernels.",
        epilog="exit codes: 0 agrees; 1 findings or divergence; 2 usage; 3 unknown or nothing to compare with; "
        "4 outside --tolerance",
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.summary, description=command.description)
        command.arguments(sub)
        sub.set_defaults(carry_out=command.carry_out)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. As in argparse, SystemExit for ``--help`` and a line that cannot be parsed."""
    options = parser().parse_args(argv)
    if sys.stdout is None:  # closed by the caller: there is nobody to report to
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # it lives as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        return _carry_out(options)
    except OSError as error:  # standard output is a full disk, or a file vanished under our hands
        complain(UsageError(error.strerror or str(error), place=str(error.filename or "")))
        discard_output()
        return UsageError.exit_code
    except KeyboardInterrupt:
        print("pipesim: interrupted", file=sys.stderr)  # there is no PipesimError to complain about
        return INTERRUPTED


def _carry_out(options: argparse.Namespace) -> int:
    try:
        return int(options.carry_out(options))
    except PipesimError as error:
        refuse(options, error)
        return error.exit_code


def _version() -> str:
    from pipesim import __version__

    return f"pipesim {__version__}"
