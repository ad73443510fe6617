"""A command within its limits of time and memory, and what it says where it reaches one before it has an answer.

A command about files of strangers (``--untrusted``) is confined before it opens one.
The one place where limits and signals meet the commands; those that can keep what they know do so where they work.
"""

import argparse
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from pipesim.cli.arguments import WHOLE_TIME
from pipesim.cli.output import refuse, remark
from pipesim.errors import UsageError
from pipesim.inputs import source_roots
from pipesim.process.limits import Limit, LimitReachedError, limit_error
from pipesim.process.system import NO_MEMORY_LIMIT, resident_bytes, usual_bytes
from pipesim.process.watch import Reason, SignalError, Watch, current, signal_of


def carry_out(options: argparse.Namespace) -> int:
    """Carry out the command; its exit code. LimitError where a limit is reached before it has an answer.

    Raises what the command raises, and KeyboardInterrupt with its number for a signal.
    """
    if getattr(options, "untrusted", False):
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


_OUTPUTS = ("sarif", "svg", "html", "output", "save_launch")  #: options that name what is written
#: Options that do what an untrusted file must not cause, and what each does.
_REFUSED = {
    "open": "--open starts a browser",
    "pid": "--pid starts a debugger",
    "write": "--write edits a source file",
    "update_baseline": "--update-baseline writes a file that is read again",
}


def confine_command(options: argparse.Namespace) -> None:
    """Confine this process to what the line names. UsageError for an option that goes beyond."""
    from pipesim.process.sandbox import confine

    for name, does in _REFUSED.items():
        if getattr(options, name, None):
            raise UsageError(f"--untrusted: {does}", correction="leave one of them out")
    if getattr(options, "core", None) is not None and (options.check or options.ptx) and options.save_launch is None:
        raise UsageError(
            "--untrusted: --check writes the launch to a folder", correction="add --save-launch FOLDER, one that exists"
        )
    inputs = (Path.cwd(), *_inputs(options))
    outputs = [given.absolute() for name in _OUTPUTS if (given := getattr(options, name, None)) is not None]
    writes = [given if given.is_dir() else given.parent for given in outputs]
    for link in (each for place in writes for each in (place, *place.parents) if each.is_symlink()):
        if any(link.parent.resolve().is_relative_to(folder.resolve()) for folder in inputs):
            fact = f"--untrusted: {link} is a link beside the inputs, which may lead an output anywhere"
            raise UsageError(fact, correction="name the folder that it leads to")
    if getattr(options, "to", "promela") != "promela" and options.output is None:
        writes.append(Path.cwd())  # under a name of its own
    for lack in confine(inputs, writes):
        remark(f"--untrusted: {lack}")


def _inputs(options: argparse.Namespace) -> Iterator[Path]:
    """The folders of the files that the line names, where their launch files and sources lie, and the source roots."""
    for given in vars(options).values():
        for each in given if isinstance(given, list) else [given]:
            named = re.sub(r"\A@|:\d+\Z", "", str(each)) if str(each).startswith("@") else str(each)
            path = Path(named) if isinstance(each, str | Path) and "\0" not in named else None
            if path is not None and named and path.exists():
                yield from (path,) if path.is_dir() else (path.absolute().parent, path.resolve())
