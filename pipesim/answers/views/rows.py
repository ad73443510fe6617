"""Rows of tables: the built-in protocols, and the periods of recorded configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ProtocolTraces:
    """The recordings of one protocol on one device. ``usual``: one of them is of the default parameters."""

    device: str
    recordings: int
    usual: bool


@dataclass(frozen=True)
class ProtocolRow:
    """One built-in protocol: its one-line summary and its parameters with their defaults, in order.

    ``roles`` are (role, warps) and ``barriers`` (group, barriers, count of a phase) of one CTA with those defaults; a
    count is None where no agent initialises the group, or not all of it alike. ``ctas`` is the size of its cluster.
    ``traces`` are the recordings that came with pipesim.
    """

    name: str
    summary: str
    params: Mapping[str, int]
    roles: tuple[tuple[str, int], ...] = ()
    barriers: tuple[tuple[str, int, int | None], ...] = ()
    ctas: int = 1
    traces: tuple[ProtocolTraces, ...] = ()
