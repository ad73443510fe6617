"""The critical cycle: the least time per iteration of any program whose roles loop over the same iterations, and what
sets it.

Every event of one run gets its earliest time (:class:`Earliest`). Backwards from the end of the steady part, the chain
of events that made each other no earlier comes by the same operation again and again, some iterations apart: what lies
between takes its time in every schedule.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from math import lcm

from pipesim.model.groups import BLOCKING_WAITS, ON_BARRIER
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.steady import common_trips, steady_window
from pipesim.model.tables import meeting_name
from pipesim.timed.bounds.earliest import Earliest, Event, EventPart
from pipesim.timed.costs import Prices, record_cycles
from pipesim.timed.profile import Profile
from pipesim.timed.work import QUARTERS
from pipesim.trace.sites import kinds

MOST_OPERATIONS = 50_000  #: of a program whose critical cycle is looked for: about a second

_SIGNAL = {Op.TMA_LOAD: "copy", Op.COMMIT: "commit", Op.COMMIT_MULTICAST: "commit", Op.TRANSFER_READ: "store"}


@dataclass(frozen=True)
class Bound:
    """The largest term in 1/1000 cycle, its name in words, and every term."""

    period_millicycles: int
    by: str
    terms: tuple[tuple[str, int], ...]


def least_period(program: Program, profile: Profile, *, traced: bool = False) -> Bound | None:
    """The period that no schedule can beat, of a program in which every role that loops has one loop over the same trip
    count: the time of its critical cycle.

    It applies to a program whose phases are the same in every schedule. None without such loops, where iterations do
    not all cost the same or are too few, for a program that jumps, breaks a rule, does not finish or whose parities
    alias, and above :data:`MOST_OPERATIONS`.
    """
    if sum(map(len, program.code)) > MOST_OPERATIONS or any(op[0] == Op.JUMP_IF for c in program.code for op in c):
        return None
    trips = common_trips(program)
    price = Prices(program, profile, traced=traced)
    window = _window(program, trips)
    if window is None or not all(_even(program, price, a, begins, window) for a, begins in trips.items()):
        return None
    times = Earliest(program, profile, traced=traced)
    run = run_canonically(program, times)
    if not run.finished or run.faults or times.laps.disagreements:
        return None
    terms = dict(_busy(program, profile, price, trips, window, traced=traced))
    chains = [_Chain(program, times, trips, window, agent).cycle() for agent in trips]
    name, period = max((chain for chain in chains if chain is not None), key=lambda chain: chain[1], default=("", 0))
    if period:
        terms[name] = max(period, terms.get(name, 0))
    name, period = max(terms.items(), key=lambda term: term[1])
    return Bound(period, name, tuple(terms.items()))


# the iterations


def _window(program: Program, trips: dict[int, list[int]]) -> tuple[int, int] | None:
    """First and last iteration of the steady part, whole laps of the largest group of barriers apart."""
    return steady_window(min(map(len, trips.values())), max(_groups(program), default=1)) if trips else None


def _groups(program: Program) -> list[int]:
    """The number of barriers in each group."""
    groups: dict[tuple[int, str], int] = {}
    for b in program.barriers:
        groups[b.cta, b.name] = groups.get((b.cta, b.name), 0) + 1
    return list(groups.values())


def _even(program: Program, price: Prices, agent: int, begins: list[int], window: tuple[int, int]) -> bool:
    """True if every iteration of the steady part has the same operations at the same costs."""
    steps = list(zip(program.code[agent], program.lines[agent], strict=True))
    first, last = window
    bodies = {
        tuple((op[0], price(op, line)) for op, line in steps[begins[t] + 1 : begins[t + 1]]) for t in range(first, last)
    }
    return len(bodies) == 1


def _busy(
    program: Program,
    profile: Profile,
    price: Prices,
    trips: dict[int, list[int]],
    window: tuple[int, int],
    *,
    traced: bool,
) -> list[tuple[str, int]]:
    """What an iteration takes each role at least, were it never blocked, and what it takes the engines of a CTA."""
    stamps = 2 * record_cycles(program, profile, traced=traced)
    first, last = window
    roles: dict[str, int] = {}
    engines: dict[tuple[str, int, int], int] = {}
    for agent, begins in trips.items():
        role, cta = program.agents[agent].role, program.agents[agent].cta
        busy = 0
        part = slice(begins[first], begins[last])
        for op, line in zip(program.code[agent][part], program.lines[agent][part], strict=True):
            cost = price(op, line)
            if op[0] in BLOCKING_WAITS:
                busy += (
                    0
                    if op[0] == Op.WAIT_UNLESS and operand(op, "register") >= 0
                    else cost.busy + (stamps if kinds(op) else 0)
                )
            elif op[0] != Op.WAIT_GROUP:
                busy += cost.busy
            if cost.engine:
                engine = "the matrix engine" if op[0] == Op.ENGINE_WORK else "the copy engine"
                quarter = program.agents[agent].warp % QUARTERS if cost.products else -1
                engines[engine, cta, quarter] = engines.get((engine, cta, quarter), 0) + cost.engine
        roles[role] = max(busy, roles.get(role, 0))
    worst: dict[str, int] = {}
    for (engine, *_), cycles in engines.items():
        worst[engine] = max(cycles, worst.get(engine, 0))
    span = last - first
    return [(f"the iteration of {role}", 1000 * busy // span) for role, busy in roles.items()] + [
        (engine, 1000 * cycles // span) for engine, cycles in worst.items()
    ]


# the chain


@dataclass(frozen=True)
class _Visit:
    """An event of the chain: its iteration, the operation it belongs to, and the same without its stage."""

    event: Event
    trip: int
    key: tuple[object, ...]
    kind: tuple[object, ...]


class _Chain:
    """The events that made each other no earlier, back from the begin of the last steady iteration of one agent."""

    def __init__(
        self, program: Program, times: Earliest, trips: dict[int, list[int]], window: tuple[int, int], agent: int
    ) -> None:
        self._program = program
        self._trips = trips
        self._lap = lcm(*_groups(program))
        self._visits: list[_Visit] = []  # from the last to the first
        at = times.issues[agent][trips[agent][window[1]]]
        while at >= 0:
            event = times.events[at]
            visit = self._visit(event)
            if visit is not None and window[0] <= visit.trip <= window[1]:
                self._visits.append(visit)
            at = event.after

    def cycle(self) -> tuple[str, int] | None:
        """The cycle in words, and its time per iteration.

        What lies between two visits to one operation whole laps of every ring apart can be repeated without end, so the
        slowest of them counts. Where the laps are too long for that, the two farthest visits to one operation count.
        """
        pairs = self._pairs(self._lap)
        if pairs:
            period, _, late, early = max(pairs)
        else:
            pairs = self._pairs(1)
            if not pairs:
                return None
            period, _, late, early = max(pairs, key=lambda pair: pair[1])
        return self._words((late + early) // 2), period

    def _pairs(self, lap: int) -> list[tuple[int, int, int, int]]:
        """The farthest visits to each operation at the same place of a lap: period, iterations between, both visits."""
        latest: dict[object, int] = {}
        widest: dict[object, tuple[int, int, int, int]] = {}
        for n, visit in enumerate(self._visits):
            place = (visit.key, visit.trip % lap)
            late = latest.setdefault(place, n)
            span = self._visits[late].trip - visit.trip
            if span:
                cycles = self._visits[late].event.time - visit.event.time
                widest[place] = (1000 * cycles // span, span, late, n)
        return list(widest.values())

    def _visit(self, event: Event) -> _Visit | None:
        begins = self._trips.get(event.agent)
        if begins is None:
            return None
        trip = bisect_right(begins, event.pc) - 1
        if trip < 0:
            return None
        op = self._program.code[event.agent][event.pc]
        place = (event.pc - begins[trip], event.part, op[0])
        stage = operand(op, "barrier") if op[0] in ON_BARRIER else -1
        return _Visit(event, trip, (event.agent, *place, stage), (self._program.agents[event.agent].role, *place))

    def _words(self, middle: int) -> str:
        """One time round, away from the ends of the chain: between two visits of a role to one operation."""
        late, early = self._round(middle)
        last = self._visits[late]
        round_ = [visit.event for visit in self._visits[late : early + 1]][::-1]
        hops = [
            f"{self._program.agents[one.agent].role}'s {self._signal(one)} → {self._group(other)}"
            for one, other in pairwise(round_)
            if other.part == EventPart.ISSUE
            and (one.agent, one.part, one.pc + 1) != (other.agent, EventPart.ISSUE, other.pc)
        ]
        if not hops:
            if any(event.part == EventPart.ENGINE for event in round_):
                matrix = self._operation(last.event)[0] == Op.ENGINE_WORK
                return "the matrix engine" if matrix else "the copy engine"
            return f"the iteration of {self._program.agents[last.event.agent].role}"
        trips = last.trip - self._visits[early].trip
        start = hops.index(min(hops))
        over = f" over {trips} iterations" if trips > 1 else ""
        return f"the critical cycle {' → '.join(hops[start:] + hops[:start])}{over}"

    def _round(self, middle: int) -> tuple[int, int]:
        """The visits next to the middle of the chain that are to the same operation, but for its stage."""
        for late in [*range(middle, len(self._visits)), *range(middle - 1, -1, -1)]:
            kind = self._visits[late].kind
            for early in range(late + 1, len(self._visits)):
                if self._visits[early].kind == kind:
                    return late, early
        raise AssertionError  # a chain without a cycle is not asked

    def _operation(self, event: Event) -> Operation:
        return self._program.code[event.agent][event.pc]

    def _signal(self, event: Event) -> str:
        """What others wait for, in a word."""
        op = self._operation(event)
        if op[0] == Op.TRANSFER_WRITE:
            return "cp.async" if operand(op, "engine") == Engine.CP_ASYNC else "MMA"
        return _SIGNAL.get(Op(op[0]), "arrive")

    def _group(self, event: Event) -> str:
        """What held up the operation that begins with this event: the wait before it."""
        op = self._program.code[event.agent][event.pc - 1]
        if op[0] in BLOCKING_WAITS:
            return self._program.barriers[operand(op, "barrier")].name
        if op[0] == Op.WAIT_GROUP:
            return "its own transfers"
        if op[0] == Op.BAR_SYNC:
            return meeting_name(self._program.named_barriers[operand(op, "named_barrier")][1])
        return "the cluster barrier"
