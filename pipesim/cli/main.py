"""The command ``pipesim``: parses, hands over to one command, turns errors into exit codes.

0 agrees or safe; 1 findings or divergence; 2 usage; 3 unknown, untrustworthy or nothing to compare with; 4 outside the
tolerance; 70 an internal error of pipesim. Only the modules of arguments are imported before a command is known, so
that ``--help`` is fast.
"""

import argparse
import difflib
import os
import re
import shlex
import sys
import textwrap
import traceback
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from pipesim.cli import completion, doctor, explain, schema
from pipesim.cli.agents import mcp, skill
from pipesim.cli.arguments import Command, Example, add_limits, complete, names_of
from pipesim.cli.checks import check, names
from pipesim.cli.limits import carry_out, interrupt_message
from pipesim.cli.output import complain, deliver, drop_output, lasting_streams, refuse, remark, remark_text
from pipesim.cli.programs import autopsy, capture, confirm, decode, hang, instrument, launches, record, stress, table
from pipesim.cli.protocols import advise, calibrate, diff, export, list_, new, run, show, sweep, verify
from pipesim.errors import TRACEBACK, LimitError, MissingExtraError, PipesimError, UsageError, internal_error
from pipesim.process.watch import exit_code_of
from pipesim.version import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


TITLE = (
    "Prove that the synchronisation of a GPU kernel (kernel.ptx) cannot hang or race in any schedule, or show the "
    "schedule and the line where it does; explain it, time it, and compare it with hardware."
)
HELP = "help"  #: ``pipesim help COMMAND`` is ``pipesim COMMAND --help``
EXIT_CODES = (
    "exit codes: 0 agrees; 1 findings or divergence; 2 usage; 3 unknown or nothing to compare with; "
    "4 outside --tolerance; 5 hang: it hung; 70 an internal error of pipesim; 130 interrupted"
)
EXAMPLES: tuple[Example, ...] = (
    ("pipesim check kernel.ptx", "every schedule of a kernel; pipesim new --ptx kernel.ptx writes its launch file"),
    ("pipesim hang -- ./program", "a program that hangs today: who waits for whom"),
    ("pipesim check producer_consumer -p stages=2", "every schedule of a built-in protocol: proved, or one that fails"),
    ("pipesim new my_kernel.py", "a protocol file to start from, checked with: pipesim check my_kernel.py"),
    ("pipesim verify producer_consumer --recorded", "prove, simulate, compare with traces of an H100 and an H200"),
)


class Parser(argparse.ArgumentParser):
    """A parser that refuses as every error of pipesim's does, and proposes the option that was meant."""

    def flags(self) -> list[str]:
        """The options that it knows, as they are written."""
        return list(self._option_string_actions)

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Write a help or a version. argparse ignores a disk that is full: UsageError."""
        try:
            (file or sys.stderr).write(message)
        except OSError as error:
            drop_output(error)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the line, and end with the exit code of a usage error."""
        flag = re.fullmatch(r"unrecognized arguments: (-\S+).*", message)
        near = difflib.get_close_matches(flag[1].partition("=")[0], self.flags(), n=1) if flag else []
        correction = f"did you mean {near[0]}?" if near else f"`{self.prog} --help` says what it takes"
        command = self.prog.removeprefix("pipesim").strip()
        complain(UsageError(f"{command}: {message}" if command else message, correction=correction))
        self.exit(UsageError.exit_code)


class _Help(argparse.HelpFormatter):
    """Paragraphs are wrapped; a line that begins with a space stays as it is, to be copied."""

    def add_argument(self, action: argparse.Action) -> None:
        """The column of the help begins after the longest command, whose indent argparse forgets."""
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            indent + line if line.startswith(" ") or not line else textwrap.fill(line, width, initial_indent=indent)
            for line in text.splitlines()
        )


def make_parser(commands: Sequence[Command], version: str, words: Collection[str] | None = None) -> Parser:
    """The parser of the whole command line. What it parses has ``carry_out``, and ``parser``, that of the command.

    ``words``: the line that it is for, which needs the options of no command but those that it names; None: any line.
    """
    top = Parser(prog="pipesim", description=TITLE, epilog=f"{_tail(EXAMPLES)}\n\n{EXIT_CODES}", formatter_class=_Help)
    top.add_argument("--version", action="version", version=version)
    below = top.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")
    for command in commands:
        is_needed = words is None or command.name in words
        sub = below.add_parser(
            command.name,
            help=command.summary,
            description=command.description,
            epilog=_tail(command.examples),
            formatter_class=_Help,
            add_help=is_needed,
        )
        if is_needed:
            command.add_arguments(sub)
            add_limits(sub, in_steps=command.in_steps)
        sub.set_defaults(carry_out=command.carry_out, parser=sub, in_steps=command.in_steps)
    about = below.add_parser(HELP, help="this help, or that of a command").add_argument("about", nargs="?")
    complete(about, names_of(command.name for command in commands))
    return top


def is_asked_to_complete() -> bool:
    """True if it is the shell that calls: argcomplete's marker is in the environment."""
    return "_ARGCOMPLETE" in os.environ


def complete_if_asked(top: argparse.ArgumentParser) -> None:
    """Answer the shell, and end, if it is the shell that calls."""
    if is_asked_to_complete():
        import argcomplete

        argcomplete.autocomplete(top, always_complete_options="long")


def parse(top: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """The options of a command line. As in argparse, SystemExit for ``--help`` and a line that cannot be parsed."""
    options, rest = top.parse_known_args(argv)
    if rest:
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def require_command(name: str, known: Sequence[str]) -> None:
    """UsageError, with the nearest names, if there is no such command."""
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    raise UsageError(
        f"there is no command {name!r}",
        cause="a protocol is named after a command" if _names_a_protocol(name) else "",
        correction=f"did you mean {' or '.join(near)}?"
        if near
        else f"pipesim check {shlex.quote(name)}"
        if _names_a_protocol(name)
        else "`pipesim help` names them all",
    )


def _names_a_protocol(word: str) -> bool:
    from pipesim.protocols.catalog import BUILT_IN

    return word in BUILT_IN or any(f"{end}:" in f"{word}:" for end in (".py", ".json"))


def _tail(examples: Iterable[Example]) -> str:
    """The end of a help: each example in a line of its own, and below it what it is for."""
    lines = [f"  {command}\n      {purpose}" for command, purpose in examples]
    return "\n".join(["examples:", *lines]) if lines else ""


_MODULES = (
    list_, show, new, names, check, run, sweep, advise, calibrate, export, table, capture, launches, record, hang,
    instrument, confirm, stress, decode, autopsy, diff, verify, explain, schema, doctor, completion, mcp, skill,
)  # fmt: skip
COMMANDS: tuple[Command, ...] = tuple(each.COMMAND for each in _MODULES)


def parser(words: Sequence[str] | None = None) -> Parser:
    """The parser of the whole command line, or of no more than these words need."""
    return make_parser(COMMANDS, f"pipesim {__version__}", words)


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
        case ModuleNotFoundError(name=str(name)) if not name.startswith("pipesim"):
            package = name.partition(".")[0]
            return MissingExtraError(
                f"this command needs the package {package}, which is not installed", correction=f"pip install {package}"
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
