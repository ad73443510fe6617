"""Hooks in the compilers of this process, and the folder in which they leave what was compiled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipesim.launches.hooks.compilers import Compiled

MODE = "PIPESIM"  #: ``check`` or ``strict``: what the environment asks for
FOLDER = "PIPESIM_COMPILED"  #: where kernels are left, for the processes that this one starts
_OFF = ("", "0", "off")


def start_by_environment() -> None:
    """As ``PIPESIM`` asks; called where Python starts, so that no error may come out of it."""
    mode = os.environ.get(MODE, "")
    if mode in ("check", "strict"):
        package = sys.modules["pipesim"]  # imported before pytest, which warns that it cannot change its assertions
        package.__doc__ = f"{package.__doc__}\nPYTEST_DONT_REWRITE\n"
        try:
            install(strict=mode == "strict")
        except Exception as error:  # noqa: BLE001  # the program is not ours
            sys.stderr.write(f"pipesim: kernels are not checked: {error}\n")
    elif mode not in _OFF:
        sys.stderr.write(f"pipesim: PIPESIM={mode[:20]} is not known: use check or strict\n")


def install(*, strict: bool = False) -> None:
    """Check every kernel that Triton, Gluon, Inductor or the CuTe DSL compiles from now on, in the background.

    A refuted kernel is a CompiledKernelWarning at the line of its source, once. ``strict``: the compiler waits
    for the verdict, and raises a RefutedKernelError. The same as ``PIPESIM=check`` and ``PIPESIM=strict``, which also
    hold for the Python processes that this one starts. A second call changes nothing but ``strict``.
    """
    from pipesim.launches.hooks.compilers import Compiled, changes
    from pipesim.launches.observe.compilers import watch_imports

    mode = "strict" if strict else "check"
    os.environ[MODE] = mode
    if _installed:
        _installed[0].strict = strict
        return
    owner, _, folder = os.environ.get(FOLDER, "").partition(":")
    if owner and owner != str(os.getpid()) and Path(folder).is_dir():
        compiled = Compiled(Path(folder), strict=strict)
    else:
        from pipesim.launches.hooks.checker import begin

        compiled = Compiled(begin(), strict=strict)
        os.environ[FOLDER] = f"{os.getpid()}:{compiled.folder}"
    _installed.append(compiled)
    watch_imports(changes(compiled))


_installed: list[Compiled] = []
