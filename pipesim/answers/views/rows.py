"""Rows of tables: the built-in protocols, and the periods of recorded configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ProtocolRow:
    """One built-in protocol: its one-line summary and its parameters with their defaults, in order.

    ``roles`` are (role, warps) and ``barriers`` (group, barriers, count of a phase) of one CTA with those defaults; a
    count is None where nobody initialises the group, or not all of it alike. ``ctas`` is the size of its cluster.
    """

    name: str
    summary: str
    params: Mapping[str, int]
    roles: tuple[tuple[str, int], ...] = ()
    barriers: tuple[tuple[str, int, int | None], ...] = ()
    ctas: int = 1


@dataclass(frozen=True)
class PeriodRow:
    """One configuration of one protocol on one device. Periods are in 1/1000 cycle; None: no such number."""

    name: str
    device: str
    stages: int | None
    tile_bytes: int | None
    warps: int | None
    work: int | None
    grid: int
    ring_law: int | None
    simulated: int | None
    measured: int | None
    error_permille: int | None
    noise_permille: int | None
