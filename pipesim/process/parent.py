"""A process that ends with the process that started it, however that one ends."""

import os
import signal
import sys

_VARIABLE = "PIPESIM_PARENT"  #: of the environment: the process that a child ends with
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def environment() -> dict[str, str]:
    """What the environment of a child needs beside this one's, for :func:`end_with_parent`."""
    return {_VARIABLE: str(os.getpid())}


def end_with_parent() -> None:
    """In a child that was given :func:`environment`: see :func:`end_with`. Nothing in a process that was not."""
    parent = os.environ.pop(_VARIABLE, "")
    if parent.isdecimal():
        end_with(int(parent))


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the thread of ``parent`` that started it ends (prctl(2), PDEATHSIG).

    Of another system than Linux nothing is asked; a parent that has ended already also ends this process there.
    """
    if sys.platform == "linux":
        import ctypes  # costs milliseconds, and only children need it

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # it ended before the request above, which looks at later ends only
    if hasattr(os, "getppid") and os.getppid() != parent:
        os._exit(1)


def end_forks() -> None:
    """From here on, whatever this process forks ends with it, and so on for what that forks."""
    forking = [os.getpid()]

    def note() -> None:  # of all threads of a process it is the same
        forking[0] = os.getpid()

    # its parent may have ended before the child asks who that is
    os.register_at_fork(before=note, after_in_child=lambda: end_with(forking[0]))
