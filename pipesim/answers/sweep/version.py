"""The version of pipesim that computes: answers of another one are not mixed with those of this."""

from __future__ import annotations

from importlib import import_module


def version() -> str:
    """As ``pipesim --version`` says it. The package is above this layer: its one constant is asked for by name."""
    return str(import_module(__name__.partition(".")[0]).__version__)
