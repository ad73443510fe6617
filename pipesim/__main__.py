"""``python -m pipesim``, and the command ``pipesim``: the command line."""

import os
import sys

_INTERRUPTED = 130  #: as a shell reports what Ctrl-C ended


def run() -> int:
    """Run the command line; its exit code. Ctrl-C prints no traceback while modules are imported, nor at the end."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
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
    sys.exit(run())
