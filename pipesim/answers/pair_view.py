"""What the report of two traces shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.conform.pair.result import Pair
from pipesim.conform.result import Conformance
from pipesim.trace.schema import Trace


@dataclass(frozen=True)
class PairSide:
    """One of the two traces: its file and what it is of.

    ``conformance`` with its own protocol; None where it was not compared, ``not_held`` says why.
    """

    label: str
    source: str
    trace: Trace
    conformance: Conformance | None
    not_held: str = ""


@dataclass(frozen=True)
class PairReport:
    """The whole of ``pipesim diff A B``. ``ok`` None means unknown."""

    protocol: str
    a: PairSide
    b: PairSide
    pair: Pair
    verdict: str
    ok: bool | None
