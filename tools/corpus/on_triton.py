"""Triton and Gluon kernels, compiled offline in an environment that has Triton and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.corpus.environment import ROOT, Environment

ENVIRONMENT = Environment("triton", ("triton", "torch", "numpy"))
_KERNELS = ROOT / "tools" / "corpus" / "kernels"


def triton(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_triton.py``."""
    return _run("on_triton.py", folder)


def gluon(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_gluon.py``."""
    return _run("on_gluon.py", folder)


def _run(script: str, folder: Path) -> Iterator[str]:
    ENVIRONMENT.made()
    yield from ENVIRONMENT.lines(_KERNELS / script, folder)
