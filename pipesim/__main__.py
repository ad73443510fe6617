"""``python -m pipesim``, and the command ``pipesim``: the command line."""

import gc
import os
import sys

_INTERRUPTED = 130  #: as a shell reports what Ctrl-C ended
_ALLOCATIONS = (
    20_000  #: until cycles are looked for, of which there are few: with Python's 700 it takes 8 % of the time
)


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
    """Run the command line; its exit code. Ctrl-C prints no traceback while modules are imported, nor at the end."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
        gc.set_threshold(_ALLOCATIONS)
        from pipesim.cli.main import main  # takes longer than some commands

        code = main()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        _end()
    return code


def _end(*_: object) -> None:
    """Outside a command there is nothing to clean up; and of what is raised, an import may make another exception."""
    os.write(2, b"pipesim: interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    _leave_current_folder()
    sys.exit(run())
