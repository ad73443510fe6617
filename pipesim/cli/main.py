"""The command ``pipesim``: parses, hands over to one command, turns errors into exit codes.

0 agrees or safe; 1 findings or divergence; 2 usage; 3 unknown, untrustworthy or nothing to compare with; 4 outside the
tolerance; 70 an internal error of pipesim. Only the modules of arguments are imported before a command is known, so
that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from pipesim.cli import (
    advise,
    autopsy,
    calibrate,
    capture,
    check,
    completion,
    decode,
    diff,
    doctor,
    explain,
    export,
    hang,
    instrument,
    launches,
    list_,
    names,
    new,
    record,
    run,
    schema,
    show,
    sweep,
    table,
    verify,
)
from pipesim.cli.arguments import Command
from pipesim.cli.limits import carry_out, interrupt_message
from pipesim.cli.output import complain, deliver, lasting_streams, refuse, remark, remark_text
from pipesim.cli.parser import (
    HELP,
    Parser,
    complete_if_asked,
    is_asked_to_complete,
    make_parser,
    parse,
    require_command,
)
from pipesim.errors import TRACEBACK, LimitError, PipesimError, UsageError, internal_error
from pipesim.process.watch import exit_code_of

COMMANDS: tuple[Command, ...] = (
    list_.COMMAND,
    show.COMMAND,
    new.COMMAND,
    names.COMMAND,
    check.COMMAND,
    run.COMMAND,
    sweep.COMMAND,
    advise.COMMAND,
    calibrate.COMMAND,
    export.COMMAND,
    table.COMMAND,
    capture.COMMAND,
    launches.COMMAND,
    record.COMMAND,
    hang.COMMAND,
    instrument.COMMAND,
    decode.COMMAND,
    autopsy.COMMAND,
    diff.COMMAND,
    verify.COMMAND,
    explain.COMMAND,
    schema.COMMAND,
    doctor.COMMAND,
    completion.COMMAND,
)


def parser(words: Sequence[str] | None = None) -> Parser:
    """The parser of the whole command line, or of no more than these words need."""
    return make_parser(COMMANDS, _version(), words)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. As in argparse, SystemExit for ``--help`` and a line that cannot be parsed.

    Without any command the help goes to standard error, with the exit code of a usage error: a script that lost its
    words fails.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    with lasting_streams():
        try:
            return _flush_output(_carry_out(words))
        except SystemExit as error:  # argparse has printed a help, or refused the line
            raise SystemExit(_flush_output(error.code if isinstance(error.code, int) else 0)) from None


def _carry_out(words: list[str]) -> int:
    """Run one command, and turn whatever ends it into an exit code: the one place where that is done."""
    options = argparse.Namespace(json=False)
    try:
        top = parser(None if is_asked_to_complete() else words)
        complete_if_asked(top)
        if not words:
            top.print_help(sys.stderr)
            return UsageError.exit_code
        if words[0] == HELP:
            words = [*words[1:2], "--help"]
        if not words[0].startswith("-"):
            require_command(words[0], [command.name for command in COMMANDS] + [HELP])
        options = parse(top, words)
        return _run_command(options)
    except KeyboardInterrupt as error:
        remark(interrupt_message(error))  # there is no PipesimError to complain about
        return exit_code_of(error)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  # the net: a command ends with an error, never with a traceback
        if os.environ.get(TRACEBACK):
            remark_text("".join(traceback.format_exception(error)).rstrip())
        return refuse(_as_error(error), json=options.json)


def _run_command(options: argparse.Namespace) -> int:
    """The exit code of a command. A SystemExit of its own, such as that of an author's code, would hide its verdict."""
    try:
        return carry_out(options)
    except SystemExit as error:
        raise internal_error(error) from error


def _as_error(error: BaseException) -> PipesimError:
    """What ended a command, as an error that a person can act on."""
    match error:
        case PipesimError():
            return error
        case OSError():  # a file vanished under our hands, or there are too many of them
            said = error.strerror or str(error) or type(error).__name__
            return UsageError(said, place=str(error.filename or ""), cause="the operating system refused")
        case MemoryError():
            return LimitError(
                "there is not enough memory for this command",
                cause="the input is too large for this machine, or for the limit that the process was given",
                correction="use smaller parameters, fewer states (--max-states), or a machine with more memory",
            )
        case _:
            return internal_error(error)


def _flush_output(code: int) -> int:
    """The exit code, after what standard output still holds has been written; that of the error if it cannot be."""
    try:
        deliver()
    except UsageError as error:
        complain(error)
        return error.exit_code
    return code


def _version() -> str:
    from pipesim import __version__

    return f"pipesim {__version__}"
