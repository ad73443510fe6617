"""What ``verify`` answers about several protocols, and what ``list`` says of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from pipesim.answers.progress import Stage
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Conclusion, Heading, of_verdict, worst
from pipesim.answers.views.run import SimulationLine
from pipesim.conform.agreement import Agreement, Reason, ReasonKind
from pipesim.conform.result import TraceVerdict
from pipesim.conform.times import TimeComparison
from pipesim.model.finding import Advisory, Finding, Verdict
from pipesim.pipelines.common.register_value import MODULAR_PIPELINES


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
    device. Where it does not agree ``reason`` says why, with ``claim``, that of its divergence, if it has one; of a
    file that cannot be compared there is no reason, and ``unusable`` is the fact. ``time`` is how its times compare,
    None where they were not.
    """

    source: str
    path: str
    device: str
    agreement: Agreement
    events: int
    reason: Reason | None = None
    claim: str = ""
    unusable: str = ""
    time: TimeComparison | None = None

    @property
    def behaviour(self) -> TraceVerdict:
        """Whether the run did what the program allows, whatever its times are."""
        return self.agreement.verdict

    @property
    def without_event(self) -> bool:
        """True if nothing was recorded that could be compared: it says nothing for the program or against it."""
        return self.reason is not None and self.reason.kind is ReasonKind.NO_EVENT

    @property
    def conclusion(self) -> Conclusion:
        """As the agreement is."""
        return of_verdict(self.behaviour)


def compared_traces(lines: Iterable[TraceLine]) -> tuple[TraceLine, ...]:
    """The traces that count: those with an event, or all if no trace has one, as then nothing was compared."""
    every = tuple(lines)
    return tuple(line for line in every if not line.without_event) or every


@dataclass(frozen=True)
class Failure:
    """A part of the work that ended in an exception: its stage and file, what was raised, and where ("": unknown).

    ``internal``: by a mistake in pipesim. ``interrupted``: nothing was raised by it, whoever asked has ended the work.
    """

    stage: Stage
    name: str
    said: str
    place: str = ""
    internal: bool = False
    interrupted: bool = False


@dataclass(frozen=True)
class ProtocolReport:
    """All that is known about one of several protocols.

    ``name`` and ``arguments`` are what a command line calls it; ``cycles`` the length of the simulation. What failed is
    None, with a failure.
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

    @property
    def conclusion(self) -> Conclusion:
        """That of the worst of its parts; one that failed, or a kernel that was not recorded, leaves it unknown.

        A trace without an event beside others with events changes nothing.
        """
        parts = [part.conclusion for part in (self.proof, self.simulation) if part is not None]
        parts += [line.conclusion for line in compared_traces(self.traces)]
        lacking = self.proof is None or self.simulation is None or bool(self.failures)
        lacking |= self.hardware in (Hardware.NOT_RECORDED, Hardware.UNUSABLE)
        mistaken = any(failed.internal for failed in self.failures)
        return worst(parts + [Conclusion.UNKNOWN] * lacking + [Conclusion.INTERNAL_ERROR] * mistaken)


@dataclass(frozen=True)
class PipelineLine:
    """What several protocols together say about one pipeline struct: those whose roles make it, in their order."""

    pipeline: str
    protocols: tuple[ProtocolReport, ...]

    @property
    def proved(self) -> int:
        """How many of the protocols are proved."""
        return self._verdicts.count(Verdict.PROVED)

    @property
    def all_proved(self) -> bool | None:
        """False if one of them is refuted, None if of one it is not known."""
        return False if Verdict.REFUTED in self._verdicts else True if self.proved == len(self.protocols) else None

    @property
    def _verdicts(self) -> list[Verdict]:
        return [Verdict.UNKNOWN if each.proof is None else each.proof.verdict for each in self.protocols]

    @property
    def traces(self) -> tuple[TraceLine, ...]:
        """Every recorded trace of them."""
        return tuple(line for each in self.protocols for line in each.traces)


@dataclass(frozen=True)
class SummaryReport:
    """Several protocols, in their order. ``excepted`` were left out on demand; ``profile`` is its name.

    ``unknown``: names that were asked for, and that no protocol has.
    """

    profile: str
    protocols: tuple[ProtocolReport, ...]
    excepted: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """That of the worst protocol; of a name that no protocol has, nothing is known."""
        return worst([report.conclusion for report in self.protocols] + [Conclusion.UNKNOWN] * bool(self.unknown))

    @property
    def pipelines(self) -> tuple[PipelineLine, ...]:
        """A line for each of Modular's pipeline structs that a role of these protocols makes."""
        lines = []
        for name in MODULAR_PIPELINES:
            users = [each for each in self.protocols if each.heading is not None and name in each.heading.pipelines]
            lines += [PipelineLine(name, tuple(users))] * bool(users)
        return tuple(lines)


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
