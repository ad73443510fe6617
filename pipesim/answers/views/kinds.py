"""What ``explain`` answers: every kind of finding and warning in a line, or one of them in full."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion
from pipesim.findings.kind import Certainty


class ExampleForm(Enum):
    """What an example is written in. The value is what a report says."""

    PROTOCOL = "a protocol"
    OPERATIONS = "operations of a flat program, an agent a line"
    PTX = "instructions of a kernel's PTX"


@dataclass(frozen=True)
class KindLine:
    """One kind: its name on the command line and in JSON, its title, and whether it is a warning."""

    name: str
    title: str
    warning: bool


@dataclass(frozen=True)
class AssumptionReport:
    """One assumption in full: its name, what it means, who relies on it, what was measured, and its switch.

    ``strict``: what becomes of a verdict that needs it, with the switch.
    """

    name: str
    clause: str
    what: str
    relies: str
    measured: str
    switch: str
    strict: str

    @property
    def conclusion(self) -> Conclusion:
        """It is a page to read."""
        return Conclusion.AGREES


@dataclass(frozen=True)
class KindReport:
    """One kind in full.

    ``traps``: the hardware ends the launch at it. ``switches``: the options of ``check`` without which it is not a
    finding. ``ptx``: the section of the PTX ISA that it is about, "" if none is. ``example``: the smallest program that
    has it, ``corrected``: the same without; of a protocol, which takes ``right=1`` for that, "". ``cause`` is what it
    is, ``shows`` how it shows on hardware, ``correction`` what to do.
    """

    name: str
    title: str
    warning: bool
    traps: bool
    cause: str
    shows: str
    correction: str
    switches: tuple[str, ...]
    ptx: str
    certainty: Certainty
    written: ExampleForm
    example: str
    corrected: str = ""

    @property
    def conclusion(self) -> Conclusion:
        """It is a page to read."""
        return Conclusion.AGREES
