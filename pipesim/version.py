"""The version of pipesim that computes: documents name it, and a sweep mixes its answers with no other's."""

from __future__ import annotations

from importlib import import_module


def version() -> str:
    """As ``pipesim --version`` says it. The package imports every layer: its one constant is asked for by name."""
    return str(import_module(__name__.partition(".")[0]).__version__)
