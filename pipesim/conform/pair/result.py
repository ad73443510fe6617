"""What a comparison of two traces, A and B, says, as data. Painted by ``report``, tested as it is.

Times are integers: cycles, or 1/1000 of a cycle where the name says milli or the field is one of a :class:`PairFigure`.
"""

from dataclasses import dataclass
from enum import Enum

from pipesim.conform.result import TraceVerdict

PERIOD, TRACED = "period", "period, traced"  #: figures: a tile without recording, and with it


@dataclass(frozen=True)
class Setting:
    """One thing in which the two recordings differ before anything ran: its name and both values, "" where absent."""

    what: str
    a: str
    b: str


class DifferenceKind(Enum):
    """How an agent of B leaves what the same agent did in A."""

    ONLY_A = "B lacks an event that A has"
    ONLY_B = "B has an event that A lacks"
    ORDER = "two events of the agent are in a different order"
    DETAIL = "the same event has a different value"
    OTHER = "the agent has a different event"


@dataclass(frozen=True)
class EventPair:
    """One place of an agent's two sequences of events: both in words, "" where one has ended."""

    iteration: int
    a: str
    b: str


@dataclass(frozen=True)
class Difference:
    """The first place where one agent's events differ.

    ``event`` counts the agent's compared events from 0; ``cycle_a`` and ``cycle_b`` are by the traces' own clocks, -1
    where that trace has no event there. ``around`` holds the places before and after it, ``at`` is its own among them.
    """

    kind: DifferenceKind
    cta: int
    agent: str
    iteration: int
    event: int
    cycle_a: int
    cycle_b: int
    around: tuple[EventPair, ...]
    at: int

    @property
    def here(self) -> EventPair:
        """The place itself."""
        return self.around[self.at]


@dataclass(frozen=True)
class Surplus:
    """Events of one agent and site that only one trace has, counted over all compared CTAs."""

    agent: str
    what: str
    only_a: int
    only_b: int


@dataclass(frozen=True)
class Behaviour:
    """Whether each agent did the same in both, whatever the order between agents.

    AGREES: every compared event is in both, each agent's in the same order, and the runs ended alike. UNKNOWN: no
    difference was found, but records were lost (``lost_a``, ``lost_b``) or a run was cut short. ``matched`` counts
    events found in both. ``outcomes`` are differences in how the runs ended, ``notes`` what was not compared and why.
    ``window`` is (first, end) of the iterations that both recorders kept, () where they kept the same.
    """

    verdict: TraceVerdict
    ctas: tuple[int, ...]
    matched: int
    lost_a: int
    lost_b: int
    differences: tuple[Difference, ...]
    surplus: tuple[Surplus, ...]
    outcomes: tuple[Setting, ...]
    notes: tuple[str, ...]
    window: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairFigure:
    """One number of both traces in 1/1000 cycle, None where it does not exist.

    ``noise_a`` and ``noise_b`` are half the range of the repetitions, None where there are fewer than two.
    """

    name: str
    a: int | None
    b: int | None
    noise_a: int | None = None
    noise_b: int | None = None

    @property
    def difference(self) -> int | None:
        """B minus A."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def permille(self) -> int | None:
        """The difference in thousandths of A."""
        return None if self.difference is None or not self.a else round(1000 * self.difference / self.a)

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the difference is larger than both noises together; None if one of the numbers is not there."""
        if self.difference is None or self.noise_a is None or self.noise_b is None:
            return None
        return abs(self.difference) > self.noise_a + self.noise_b


@dataclass(frozen=True)
class Segment:
    """Cycles that an agent spent in one way: from the events of one site to its own next events.

    ``a`` and ``b`` are totals over the compared run, ``steady_a`` and ``steady_b`` totals inside the steady window.
    """

    what: str
    a: int
    b: int
    steady_a: int
    steady_b: int


@dataclass(frozen=True)
class Ledger:
    """Where one agent's time went: its segments add up to its span, in A, in B, and in the difference.

    ``a`` and ``b`` are cycles from its first to its last event that both have; ``iterations`` is how many those cover.
    The steady window is the same iterations in both, ``steady_tiles`` of them (0: the run is too short for one).
    Segments stand by the size of their difference.
    """

    agent: str
    iterations: int
    a: int
    b: int
    steady_tiles: int
    steady_a: int
    steady_b: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class PairTiming:
    """Both runs in numbers, of one CTA. The first ledger is the critical agent's: the one that ends last.

    ``last`` are the agents that end last in A and in B; where these are two, the critical one is that whose ends in A
    and B are the latest together. ``primary`` names the figure that decides: the period without recording if both have
    it, else the next best.
    ``khz_a`` and ``khz_b`` are the SM clocks (0: unknown); ``clocks_differ`` says that cycles are not times, ``unlike``
    that only one of the two traces contains the cost of recording, ``recorders_differ`` that both do and were recorded
    in different ways.
    """

    cta: int
    figures: tuple[PairFigure, ...]
    primary: str
    ledgers: tuple[Ledger, ...]
    khz_a: int
    khz_b: int
    clocks_differ: bool
    unlike: bool
    last: tuple[str, str]
    recorders_differ: bool = False

    @property
    def decides(self) -> PairFigure | None:
        """The figure that ``primary`` names."""
        return self._figure(self.primary)

    @property
    def recording(self) -> PairFigure | None:
        """What recording adds to a tile in A and in B; None unless both measured a period with and without it."""
        plain, traced = self._figure(PERIOD), self._figure(TRACED)
        if plain is None or traced is None:
            return None
        pairs = ((traced.a, plain.a), (traced.b, plain.b))
        noises = ((traced.noise_a, plain.noise_a), (traced.noise_b, plain.noise_b))
        costs = (None if x is None or y is None else x - y for x, y in pairs)
        found = PairFigure("recording", *costs, *(None if x is None or y is None else x + y for x, y in noises))
        return None if found.difference is None else found

    def _figure(self, name: str) -> PairFigure | None:
        return next((figure for figure in self.figures if figure.name == name), None)


@dataclass(frozen=True)
class Pair:
    """Two traces, A and B, compared. ``timing`` is None where no agent has two events that both traces have."""

    settings: tuple[Setting, ...]
    behaviour: Behaviour
    timing: PairTiming | None
