"""The command ``pipesim``: parses, hands over to one command, turns errors into exit codes.

0 agrees or safe; 1 findings or divergence; 2 usage; 3 unknown, untrustworthy or nothing to compare with; 4 outside the
tolerance. Only the modules of arguments are imported before a command is known, so that ``--help`` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pipesim.cli import capture, check, completion, diff, export, list_, new, run, show, table, verify
from pipesim.cli.arguments import Command
from pipesim.cli.completion import complete_if_asked
from pipesim.cli.output import complain, discard_output, refuse
from pipesim.cli.parser import HELP, Parser, make_parser, parse, require_command
from pipesim.errors import PipesimError, UsageError

COMMANDS: tuple[Command, ...] = (
    list_.COMMAND,
    show.COMMAND,
    new.COMMAND,
    check.COMMAND,
    run.COMMAND,
    export.COMMAND,
    table.COMMAND,
    capture.COMMAND,
    diff.COMMAND,
    verify.COMMAND,
    completion.COMMAND,
)
INTERRUPTED = 130  #: as a shell reports a command that Ctrl-C ended


def parser() -> Parser:
    """The parser of the whole command line."""
    return make_parser(COMMANDS, _version())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. As in argparse, SystemExit for ``--help`` and a line that cannot be parsed.

    Without any command the help goes to standard error, with the exit code of a usage error: a script that lost its
    words fails.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    top = parser()
    complete_if_asked(top)
    if sys.stdout is None:  # closed by the caller: there is nobody to report to
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # it lives as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if not words:
        top.print_help(sys.stderr)
        return UsageError.exit_code
    try:
        return _carry_out(top, words)
    except OSError as error:  # standard output is a full disk, or a file vanished under our hands
        complain(UsageError(error.strerror or str(error), place=str(error.filename or "")))
        discard_output()
        return UsageError.exit_code
    except KeyboardInterrupt:
        print("pipesim: interrupted", file=sys.stderr)  # there is no PipesimError to complain about
        return INTERRUPTED


def _carry_out(top: Parser, words: list[str]) -> int:
    if words[0] == HELP:
        words = [*words[1:2], "--help"]
    try:
        if not words[0].startswith("-"):
            require_command(words[0], [command.name for command in COMMANDS] + [HELP])
    except UsageError as error:
        complain(error)
        return error.exit_code
    options = parse(top, words)
    try:
        return int(options.carry_out(options))
    except PipesimError as error:
        refuse(options, error)
        return error.exit_code


def _version() -> str:
    from pipesim import __version__

    return f"pipesim {__version__}"
