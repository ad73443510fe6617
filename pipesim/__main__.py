"""``python -m pipesim``, and the command ``pipesim``: the command line."""

import gc
import os
import sys

_ALLOCATIONS = 20_000  #: until cycles are looked for, of which there are few: Python's 700 take 8 % of the time


def _leave_current_folder() -> None:
    """``python -m`` looks in the current folder first, where a file may be called as a module that is imported here.

    Where pipesim itself lies in it, as in a checkout, it is looked into last.
    """
    here = os.getcwd()  # noqa: PTH109  # pathlib is not imported yet
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", here):
        del sys.path[0]
        if os.path.dirname(os.path.dirname(os.path.abspath(__file__))) == here:  # noqa: PTH100, PTH120
            sys.path.append(here)


def run() -> int:
    """Run the command line; its exit code.

    A signal is not a traceback, nor an end without a word, while modules are imported; at the end it changes nothing.
    """
    try:
        import signal

        names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last two are each of some systems
        ending = [signal.Signals[name] for name in names if hasattr(signal, name)]
        for number in ending:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not as under nohup
                signal.signal(number, _end)
        gc.set_threshold(_ALLOCATIONS)
        from pipesim.cli.main import main  # takes longer than some commands

        try:
            return main()
        finally:
            for number in ending:
                signal.signal(number, signal.SIG_IGN)  # the interpreter would take back a handler of its own
    except KeyboardInterrupt:
        _end()
        raise


def _end(number: int = 2, *_: object) -> None:
    """Outside a command there is nothing to clean up; and of what is raised, an import may make another exception."""
    import signal

    said = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    os.write(2, f"pipesim: {said}\n".encode())
    os._exit(128 + number)  # as a shell reports it


if __name__ == "__main__":
    _leave_current_folder()
    sys.exit(run())
