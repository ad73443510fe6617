"""What each phase of a barrier is given, by whom, and who waits for it: every operation, entered once."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from pipesim.model.groups import ASKS, BLOCKING_WAITS, BY_PARITY, EXPECTS, ON_BARRIER
from pipesim.model.ops import Engine, Op, Operation, operand, ranks
from pipesim.model.program import Program


class Extent(NamedTuple):
    """The least and the largest of some numbers, both 0 if there are none."""

    low: int
    high: int

    def join(self, other: "Extent") -> "Extent":
        """The span of both."""
        return Extent(min(self.low, other.low), max(self.high, other.high))


class Means(Enum):
    """How an agent adds to a phase of a barrier."""

    ARRIVE = "arrive"
    ARRIVE_EXPECT = "arrive and expect bytes"
    ARRIVE_DROP = "arrive and drop out"
    ARRIVE_NO_COMPLETE = "arrive without completing"
    EXPECT = "expect bytes"
    COMPLETE = "complete bytes"
    COPY = "copy"  #: a bulk copy, whose bytes are counted as they land
    COMMIT = "commit"  #: one arrival when what was issued before has finished
    CP_ASYNC = "cp.async arrive"
    CP_ASYNC_NOINC = "cp.async arrive without increment"


_PLAIN = {Op.ARRIVE_DROP: Means.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE: Means.ARRIVE_NO_COMPLETE}


class SignalWay(NamedTuple):
    """How one agent adds to one barrier."""

    agent: int
    means: Means
    engine: Engine | None
    to: tuple[int, ...]


class SignalTally(NamedTuple):
    """How often, and with how many arrivals and bytes each time."""

    times: int
    arrivals: Extent
    nbytes: Extent


@dataclass
class BarrierWaits:
    """The waits of one agent for one barrier."""

    first_parity: int
    blocks: bool = False
    times: int = 0


@dataclass
class SignalLedger:
    """Every operation on a barrier of the program, entered under its barrier."""

    program: Program
    counts: dict[int, int] = field(default_factory=dict)
    given: defaultdict[int, dict[SignalWay, SignalTally]] = field(default_factory=lambda: defaultdict(dict))
    asked: defaultdict[int, dict[int, BarrierWaits]] = field(default_factory=lambda: defaultdict(dict))
    branching: set[int] = field(default_factory=set)  #: agents that may jump over operations

    @cached_property
    def copies(self) -> dict[tuple[str, int], list[int]]:
        """The barriers of each name and stage, one in each CTA."""
        found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for index, barrier in enumerate(self.program.barriers):
            found[barrier.name, barrier.stage].append(index)
        return found

    def give(self, barrier: int, way: SignalWay, arrivals: int, nbytes: int) -> None:
        """Enter one operation that adds to a phase."""
        before = self.given[barrier].get(way, SignalTally(0, Extent(arrivals, arrivals), Extent(nbytes, nbytes)))
        self.given[barrier][way] = SignalTally(
            before.times + 1,
            before.arrivals.join(Extent(arrivals, arrivals)),
            before.nbytes.join(Extent(nbytes, nbytes)),
        )

    def ask(self, agent: int, operation: Operation) -> None:
        """Enter one wait or test."""
        op = Op(operation[0])
        first = operand(operation, "parity") if op in BY_PARITY else -1
        asked = self.asked[operand(operation, "barrier")].setdefault(agent, BarrierWaits(first))
        asked.blocks |= op in BLOCKING_WAITS
        asked.times += op in BLOCKING_WAITS


def ledger(program: Program) -> SignalLedger:
    """Read every operation of every agent once."""
    book = SignalLedger(program)
    for agent, code in enumerate(program.code):
        for operation in code:
            op = Op(operation[0])
            if op == Op.INIT:
                book.counts.setdefault(operand(operation, "barrier"), operand(operation, "count"))
            elif op in ASKS:
                book.ask(agent, operation)
            elif op == Op.JUMP_IF:
                book.branching.add(agent)
            else:
                _enter(book, agent, op, operation)
    return book


def _enter(book: SignalLedger, agent: int, op: Op, operation: Operation) -> None:
    """Enter an operation if it adds to a phase of a barrier."""
    if op not in ON_BARRIER:
        return
    barrier = operand(operation, "barrier")
    match op:
        case Op.ARRIVE:
            expected = operand(operation, "expect")
            means = Means.ARRIVE_EXPECT if expected else Means.ARRIVE
            book.give(barrier, SignalWay(agent, means, None, ()), operand(operation, "count"), expected)
        case Op.ARRIVE_DROP | Op.ARRIVE_NO_COMPLETE:
            nbytes = operand(operation, "expect") if op in EXPECTS else 0
            book.give(barrier, SignalWay(agent, _PLAIN[op], None, ()), operand(operation, "count"), nbytes)
        case Op.EXPECT_TX | Op.COMPLETE_TX:
            means = Means.EXPECT if op == Op.EXPECT_TX else Means.COMPLETE
            book.give(barrier, SignalWay(agent, means, None, ()), 0, operand(operation, "bytes"))
        case Op.CP_ASYNC_ARRIVE:
            means = Means.CP_ASYNC_NOINC if operand(operation, "noinc") else Means.CP_ASYNC
            book.give(barrier, SignalWay(agent, means, Engine.CP_ASYNC, ()), operand(operation, "lanes"), 0)
        case Op.TMA_LOAD:
            to = ranks(operand(operation, "cta_mask"))
            for copy, _ in book.program.landings(operation):
                book.give(copy, SignalWay(agent, Means.COPY, None, to), 0, operand(operation, "bytes"))
        case Op.COMMIT if barrier >= 0:
            engine = Engine(operand(operation, "engine"))
            book.give(barrier, SignalWay(agent, Means.COMMIT, engine, ()), 1, 0)
        case Op.COMMIT_MULTICAST:
            to, engine = ranks(operand(operation, "cta_mask")), Engine(operand(operation, "engine"))
            for copy in book.program.commit_barriers(operation):
                book.give(copy, SignalWay(agent, Means.COMMIT, engine, to), 1, 0)
        case _:
            pass
