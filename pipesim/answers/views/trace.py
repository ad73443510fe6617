"""What the comparison of a trace with its program answers, that of two traces, and ``verify``."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Conclusion, Heading, of_verdict, worst
from pipesim.answers.views.run import SimulationLine
from pipesim.conform.agreement import Agreement, Reason
from pipesim.conform.diagnose.examination import Examination
from pipesim.conform.pair.result import Pair
from pipesim.conform.result import Conformance, Timing, TraceVerdict
from pipesim.conform.times import NoTime, TimeComparison
from pipesim.errors import EvidenceError, PipesimError
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Finding
from pipesim.process.limits import Limit
from pipesim.trace.schema import Trace

CAPTURED_NOW = ""  #: the source of a trace that was captured for the answer and is in no file


@dataclass(frozen=True)
class PeriodCheck:
    """How far one period is off another, in percent of that, beside a tolerance; None where there are not both."""

    off: float | None
    tolerance: float

    @property
    def conclusion(self) -> Conclusion:
        """By the numbers themselves, not rounded."""
        if self.off is None:
            return Conclusion.UNKNOWN
        return Conclusion.OUTSIDE_TOLERANCE if abs(self.off) > self.tolerance else Conclusion.AGREES


@dataclass(frozen=True)
class TraceComparison:
    """One trace of one device, compared with the model: how it behaves, and how long it takes, apart from each other.

    ``source`` is the trace's file, or CAPTURED_NOW. ``agreement`` is whether the run agrees with the program,
    ``reason`` why it does not or why that is not known; ``time`` is the same of its times. ``overhead_permille`` is
    what recording adds to the period, ``noise_permille`` half the run-to-run range of the period; both None if not
    measured. ``clock_error_ps`` bounds a time on the common time line, ``order_error_cycles`` the order of two
    timestamps of one SM. ``simulated`` may be None where nothing was simulated. ``examination`` is there if something
    failed, or a fault was injected. ``period`` is there if a tolerance was given.
    """

    source: str
    device: str
    driver: str
    runs: int
    agreement: Agreement
    conformance: Conformance
    dropped: int
    clock_error_ps: int
    order_error_cycles: int
    overhead_permille: int | None
    noise_permille: int | None
    sm_khz: int
    timing: Timing | None
    simulated: Trace | None
    measured: Trace
    time: TimeComparison
    reason: Reason | None = None
    examination: Examination | None = None
    period: PeriodCheck | None = None

    @property
    def behaviour(self) -> TraceVerdict:
        """Whether the run did what the program allows, whatever its times are."""
        return self.agreement.verdict

    @property
    def conclusion(self) -> Conclusion:
        """A difference beats the unknown, the unknown the tolerance; what a limit ended is unknown as well."""
        if not self.agreement.agrees:
            return of_verdict(self.behaviour)
        if self.time.why is NoTime.LIMIT:
            return Conclusion.UNKNOWN
        return self.period.conclusion if self.period is not None else Conclusion.AGREES


@dataclass(frozen=True)
class CompareReport:
    """One trace compared with its program. ``captured``: it was recorded for this, and its file is new."""

    heading: Heading
    hardware: tuple[TraceComparison]
    captured: bool = False

    @property
    def comparison(self) -> TraceComparison:
        """The only one."""
        return self.hardware[0]

    @property
    def conclusion(self) -> Conclusion:
        """As the comparison's is."""
        return self.comparison.conclusion


@dataclass(frozen=True)
class PairSide:
    """One of the two traces: its file and what it is of.

    ``agreement`` and ``conformance`` say how it agrees with its own protocol, ``reason`` why it does not agree;
    None where it was not compared with that: ``refused`` says why, None if its protocol is not built in.
    """

    label: str
    source: str
    trace: Trace
    conformance: Conformance | None
    agreement: Agreement | None = None
    refused: PipesimError | None = None
    reason: Reason | None = None

    @property
    def leaves_protocol(self) -> bool:
        """True if it differs from its protocol; not if both hang in the same state, or its injected fault is named."""
        return self.agreement is Agreement.DIFFERS


class PairTime(Enum):
    """How long B takes beside A."""

    SAME = "the same"  #: or with a difference within the noise
    FASTER = "B is faster"
    SLOWER = "B is slower"
    NOT_COMPARED = "not compared"  #: neither finished, or there is no number of both


@dataclass(frozen=True)
class PairReport:
    """Two traces compared. ``period``: B's beside A's, if a tolerance was given."""

    protocol: str
    a: PairSide
    b: PairSide
    pair: Pair
    period: PeriodCheck | None = None

    @property
    def behaviour(self) -> TraceVerdict:
        """Whether every agent did the same in both, whatever their times are."""
        return self.pair.behaviour.verdict

    @property
    def time(self) -> PairTime:
        """B's time beside A's, by the figure that decides; in time, not in cycles, where the SM clocks differ."""
        timing = self.pair.timing
        figure = timing.decides if timing is not None else None
        if timing is None or figure is None or figure.a is None or figure.b is None or not self._one_finished:
            return PairTime.NOT_COMPARED
        a, b = figure.a, figure.b
        if timing.clocks_differ:
            a, b = a * timing.khz_b, b * timing.khz_a
        elif figure.beyond_noise is False:
            return PairTime.SAME
        return PairTime.SAME if a == b else PairTime.SLOWER if b > a else PairTime.FASTER

    @property
    def _one_finished(self) -> bool:
        return Ending.FINISHED in (self.a.trace.meta.status, self.b.trace.meta.status)

    @property
    def conclusion(self) -> Conclusion:
        """A difference beats the unknown, the unknown the tolerance."""
        if self.a.leaves_protocol != self.b.leaves_protocol:
            return Conclusion.WRONG
        if self.behaviour is not TraceVerdict.AGREES:
            return of_verdict(self.behaviour)
        return self.period.conclusion if self.period is not None else Conclusion.AGREES


@dataclass(frozen=True)
class VerifyReport:
    """The verdict for every schedule, the simulations, and every trace compared.

    ``missing``: why there is no (more) evidence of the hardware; ``left_out``: none was asked for. ``findings`` are
    those of the proof, then those of the simulations. ``interrupted``: the work was ended after the verdict, and what
    is not here was not done. ``cut``: the limit of time or memory that was reached; nothing more was simulated or
    compared then.
    """

    heading: Heading
    proof: CheckReport
    simulations: tuple[SimulationLine, ...] = ()
    hardware: tuple[TraceComparison, ...] = ()
    missing: EvidenceError | None = None
    left_out: bool = False
    findings: tuple[Finding, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    interrupted: bool = False
    cut: Limit | None = None

    @property
    def conclusion(self) -> Conclusion:
        """That of the worst of its parts; evidence that is missing, a limit or an interrupt leaves it unknown."""
        parts = [self.proof.conclusion]
        parts += [line.conclusion for line in self.simulations]
        parts += [found.conclusion for found in self.hardware]
        lacking = self.missing is not None or self.cut is not None or self.interrupted
        return worst(parts + [Conclusion.UNKNOWN] * lacking)
