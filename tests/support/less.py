"""Another system than Linux, simulated: `pytest -p tests.support.less` runs the tests with what it lacks taken away.

Packages that no proof needs are taken away by `-p tests.support.no_packages`.
"""

import os
import signal
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGES = ("numpy", "pyarrow", "scipy", "simpy")  #: those without which a proof is made


class Absent:
    """Modules that cannot be imported."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for other modules, which are looked for elsewhere. ModuleNotFoundError for these."""
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def take_modules(*names: str) -> None:
    """From here on they are not installed, also where they were imported."""
    sys.meta_path.insert(0, Absent(names))
    for module in [each for each in sys.modules if each.partition(".")[0] in names]:
        del sys.modules[module]


def take_names() -> None:
    """What neither Windows nor a browser has of the modules `signal` and `os`."""
    for module, names in (
        (signal, "SIGHUP SIGALRM SIGQUIT SIGKILL SIGSTOP setitimer pthread_sigmask pthread_kill"),
        (os, "fork register_at_fork sysconf mkfifo sched_getaffinity getppid O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_NOCTTY"),
    ):
        for name in names.split():
            delattr(module, name)


def pytest_load_initial_conftests() -> None:
    """Before any module of pipesim or of the tests is imported, in the worker processes as well."""
    take_modules("resource", "fcntl")
    del signal.SIGHUP
