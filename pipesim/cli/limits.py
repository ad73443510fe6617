"""A command within its limits of time and memory, and what it says where it reaches one before it has an answer.

The one place where limits and signals meet the commands; those that can keep what they know do so where they work.
"""

from __future__ import annotations

import argparse
import signal
import sys

from pipesim.cli.arguments import WHOLE_TIME
from pipesim.cli.output import refuse, remark
from pipesim.inputs import source_roots
from pipesim.process.limits import Limit, LimitReachedError, limit_error
from pipesim.process.system import NO_MEMORY_LIMIT, resident_bytes, usual_bytes
from pipesim.process.watch import Reason, SignalError, Watch, current, signal_of


def carry_out(options: argparse.Namespace) -> int:
    """Carry out the command; its exit code. LimitError where a limit is reached before it has an answer.

    Raises what the command raises, and KeyboardInterrupt with its number for a signal.
    """
    if getattr(options, "untrusted", False):
        from pipesim.cli.untrusted import confine_command

        confine_command(options)
    if options.max_memory and not resident_bytes():
        remark(NO_MEMORY_LIMIT)
    watch = Watch(options.max_memory or usual_bytes(), last_words=lambda reason: say(options, reason))
    with watch:
        try:
            start(options)
            with source_roots(getattr(options, "source_roots", ())):
                code = int(options.carry_out(options))
            watch.stop()
            if isinstance(watch.raised, SignalError):  # a library caught it, and did not deal with it
                raise watch.raised
            return code
        except MemoryError as error:
            raise limit_error(LimitReachedError(Limit.MEMORY, watch.most_bytes or 0)) from error
        except BaseException as error:  # noqa: BLE001  # raised again, as what it is
            reason = watch.raised or error  # what was raised may arrive as another error, of a module half imported
            if isinstance(reason, LimitReachedError):
                raise limit_error(reason) from None
            raise reason from None
        finally:
            _close_processes()


def start(options: argparse.Namespace) -> None:
    """The command begins, or the work on its next protocol, where the limit is that of its steps."""
    limit: float | None = options.time_limit
    if not options.in_steps:
        current().start(limit or WHOLE_TIME)
        return
    from pipesim.answers.budget import protocol_seconds

    current().start(protocol_seconds(limit))


def say(options: argparse.Namespace, reason: Reason) -> None:
    """Why a command ends without an answer."""
    if isinstance(reason, LimitReachedError):
        refuse(limit_error(reason), json=options.json)
    else:
        remark(interrupt_message(reason))


def interrupt_message(error: KeyboardInterrupt) -> str:
    """What a command says that a signal ended."""
    number = signal_of(error)
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def _close_processes() -> None:
    """End the processes of protocol files, if the module that starts them was needed."""
    if "pipesim.protocol_process" in sys.modules:
        from pipesim.protocol_process import close

        close()
