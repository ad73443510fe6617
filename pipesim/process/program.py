"""A person's program, run to its end: its streams and signals are its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipesim.errors import UsageError
from pipesim.process.watch import current

_PATIENCE = 3  #: SIGINTs until a program is killed that does not end
_LOOK_S = 0.1  #: between two looks at a program


#: Options and variables whose value is one, words that are one by their form, and passwords of URLs.
_SECRET_NAME = re.compile(r"(?i)[\w-]*(token|secret|passw(or)?d|passphrase|credentials?|api[-_]?key|access[-_]?key)")
_SECRET = re.compile(
    r"(hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|eyJ)[\w.-]{12,}|(?<=://)[^/@\s:]*:[^/@\s]+(?=@)"
)
MASK = "***"


def without_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """A command line as a file or a report has it: values that look like secrets are ``***``."""
    found: list[str] = []
    for word in command:
        name, equals, value = word.partition("=")
        before = found[-1] if found else ""
        if before.startswith("-") and "=" not in before and _SECRET_NAME.fullmatch(before) and word[:1] != "-":
            found.append(MASK)
        elif equals and value and _SECRET_NAME.fullmatch(name):
            found.append(f"{name}={MASK}")
        else:
            found.append(_SECRET.sub(MASK, word))
    return tuple(found)


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended. ``status`` is as a shell has it: 128 and the number of a signal that ended it.

    ``signals``: the numbers of those that this process got meanwhile, and passed on.
    """

    status: int
    signals: tuple[int, ...] = ()

    @property
    def ending(self) -> int | None:
        """The first of them that is to end this process too; a Ctrl-C was the program's."""
        return next((number for number in self.signals if number != signal.SIGINT), None)


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    to_stderr: bool = False,
    look: Callable[[int], None] | None = None,
    ask: Callable[[], None] | None = None,
) -> ProgramEnd:
    """Run a program to its end, however long it takes: a limit of time or memory is not its own.

    The program has the standard streams of this process; with ``to_stderr`` its output goes to standard error. SIGINT,
    SIGTERM and SIGHUP are passed on to it, and it is waited for; the third SIGINT kills it, because Python in a call of
    the driver that does not return reacts to none. ``look`` is called with the number of its process again and again
    while it runs. With ``ask`` the program ignores SIGQUIT (Ctrl-Backslash on a terminal), and ``ask`` is called.
    UsageError if it cannot be started.
    """
    current().stop()
    current().allow_reserving()  # a child inherits the kernel's limit of memory
    sys.stdout.flush()
    signals: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def got(number: int) -> None:
        if ask is not None and number == signal.SIGQUIT:
            ask()
            return
        signals.append(number)
        for process in started:
            _pass_on(process, number, last=signals.count(signal.SIGINT) >= _PATIENCE)

    with current().given_to(got, *([signal.SIGQUIT] if ask is not None else [])):
        started.append(_start(command, environment, to_stderr=to_stderr, ignores_quit=ask is not None))
        for number in tuple(signals):  # those that came before
            _pass_on(started[0], number, last=False)
        code = None
        while code is None:
            with suppress(subprocess.TimeoutExpired):
                code = started[0].wait(None if look is None else _LOOK_S)
            if code is None and look is not None:
                look(started[0].pid)
    return ProgramEnd(code if code >= 0 else 128 - code, tuple(signals))


def _start(
    command: Sequence[str], environment: Mapping[str, str], *, to_stderr: bool, ignores_quit: bool
) -> subprocess.Popen[bytes]:
    usual = signal.signal(signal.SIGQUIT, signal.SIG_IGN) if ignores_quit else None  # inherited
    try:
        return subprocess.Popen(  # noqa: S603  # the user's own command, as it was typed, without a shell
            list(command), env=dict(environment), stdout=2 if to_stderr else None
        )
    except (OSError, ValueError) as error:  # a word with a zero in it
        raise UsageError(
            f"the command {command[0]!r} cannot be run",
            cause=getattr(error, "strerror", None) or str(error),
            correction="give a program and its arguments after --",
        ) from error
    finally:
        if ignores_quit:
            signal.signal(signal.SIGQUIT, usual)


def _pass_on(process: subprocess.Popen[bytes], number: int, *, last: bool) -> None:
    """Send a signal on, unless the terminal has sent it to the command as well; the last one kills."""
    with suppress(ProcessLookupError):
        if last:
            process.kill()
        elif number != signal.SIGINT or not os.isatty(0):
            process.send_signal(number)
