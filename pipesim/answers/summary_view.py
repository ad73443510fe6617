"""What the report on several protocols shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.view import CheckReport, Heading, SimulationLine
from pipesim.conform.diagnose.agreement import Agreement
from pipesim.model.finding import Advisory, Finding


class Hardware(Enum):
    """What there is of the hardware to compare a protocol with."""

    RECORDED = "recorded"
    NOT_RECORDED = "not recorded"
    NO_KERNEL = "no kernel"
    UNUSABLE = "cannot be used"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class TraceLine:
    """One recorded trace compared with the program that its own parameters make.

    ``source`` is its file below the folder of traces, ``path`` the file itself, ``device`` the short name of its
    device, ``why`` the reason where it does not agree.
    """

    source: str
    path: str
    device: str
    agreement: Agreement
    events: int
    why: str = ""


@dataclass(frozen=True)
class Failure:
    """A part of the work that ended in an exception: what was tried, and what was raised where ("" if unknown)."""

    what: str
    said: str
    place: str = ""


@dataclass(frozen=True)
class ProtocolReport:
    """All that is known of one of several protocols.

    ``name`` and ``arguments`` are what a command line calls it; ``cycles`` the length of the simulation. What failed is
    None, with a failure. ``ok`` None means unknown.
    """

    name: str
    arguments: tuple[str, ...]
    summary: str
    heading: Heading | None
    proof: CheckReport | None
    simulation: SimulationLine | None
    cycles: int
    findings: tuple[Finding, ...]
    advisories: tuple[Advisory, ...]
    hardware: Hardware
    traces: tuple[TraceLine, ...]
    failures: tuple[Failure, ...]
    ok: bool | None


@dataclass(frozen=True)
class SummaryReport:
    """The whole of ``pipesim verify`` on several protocols, in their order. ``excepted`` were left out on demand."""

    profile: str
    protocols: tuple[ProtocolReport, ...]
    ok: bool | None
    excepted: tuple[str, ...] = ()
