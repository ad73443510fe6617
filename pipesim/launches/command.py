"""A command that runs with its launches observed: its streams and signals are its own, its records go to a spool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pipesim.bounds import MAX_RECORDS, MAX_SPOOL_BYTES
from pipesim.errors import ParameterError, UsageError
from pipesim.launches import observe
from pipesim.launches.observe.limits import SPOOL, Limits
from pipesim.process.watch import current

_SITE = Path(observe.__file__).with_name("site")  #: its ``sitecustomize`` begins to observe a Python process
_PATIENCE = 3  #: SIGINTs until a program is killed that does not end


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. ``status`` is as a shell has it: 128 and the number of a signal that ended it.

    ``signals``: the numbers of those that this process got meanwhile, and passed on.
    """

    status: int
    signals: tuple[int, ...] = ()


def limits_of(patterns: Sequence[str], launches: int, nbytes: int, *, once: bool) -> Limits:
    """What a person asks to be recorded. ParameterError for a number that is not from 1 to what is read."""
    for name, value, most in (("launches", launches, MAX_RECORDS), ("bytes", nbytes, MAX_SPOOL_BYTES)):
        if not 1 <= value <= most:
            raise ParameterError(f"a limit of {value:,} {name}", correction=f"use 1 to {most:,}")
    return Limits(tuple(patterns), once, launches, nbytes)


@contextmanager
def spool_folder() -> Iterator[Path]:
    """A folder for records that no other user can read or write; it is removed with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="pipesim-launches-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def observed_environment(
    spool: Path,
    limits: Limits,
    environment: Mapping[str, str] = os.environ,
    *,
    inject: bool = False,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a command whose Python processes write records to ``spool``, and so do their children.

    ``inject``: so do processes that are not Python. ``more``: other variables for them. Raises as
    :func:`pipesim.launches.inject.injection_environment`.
    """
    path = environment.get("PYTHONPATH")
    paths = [str(_SITE), *([path] if path else [])]
    others = {}
    if inject:
        from pipesim.launches.inject import injection_environment

        others = injection_environment(spool, limits, environment)
    mine = {**limits.to_environment(), **(more or {}), SPOOL: str(spool), "PYTHONPATH": os.pathsep.join(paths)}
    return {**environment, **others, **mine}


def run_observed(command: Sequence[str], environment: Mapping[str, str], *, to_stderr: bool = False) -> CommandEnd:
    """Run a command to its end, however long it takes: a limit of time or memory is not its own.

    ``environment``: of :func:`observed_environment`. The command has the standard streams of this process; with
    ``to_stderr`` its output goes to standard error. SIGINT, SIGTERM and SIGHUP are passed on to it, and it is waited
    for; the third SIGINT kills it, because Python in a call of the driver that does not return reacts to none.
    UsageError if it cannot be started.
    """
    current().stop()
    current().allow_reserving()  # a child inherits the kernel's limit of memory
    sys.stdout.flush()
    signals: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def got(number: int) -> None:
        signals.append(number)
        for process in started:
            _pass_on(process, number, last=signals.count(signal.SIGINT) >= _PATIENCE)

    with current().given_to(got):
        started.append(_start(command, environment, to_stderr=to_stderr))
        for number in tuple(signals):  # those that came before
            _pass_on(started[0], number, last=False)
        code = started[0].wait()
    return CommandEnd(code if code >= 0 else 128 - code, tuple(signals))


def _start(command: Sequence[str], environment: Mapping[str, str], *, to_stderr: bool) -> subprocess.Popen[bytes]:
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


def _pass_on(process: subprocess.Popen[bytes], number: int, *, last: bool) -> None:
    """Send a signal on, unless the terminal has sent it to the command as well; the last one kills."""
    with suppress(ProcessLookupError):
        if last:
            process.kill()
        elif number != signal.SIGINT or not os.isatty(0):
            process.send_signal(number)
