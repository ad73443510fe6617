"""Arrivals that may be counted in another phase than in the run, where no agent can tell (docs/proof.md).

A fast warp's arrive for the next phase may be counted before a slow warp's for this one: the two lanes of one
instruction that arrive in two CTAs do so in no order. If arrivals of one size are all that is ever counted on a
barrier, a phase completes after as many of them, whichever these are. Where an agent sees a phase before an arrive of
it has been carried out, one of a later phase was counted instead. So whatever comes before both is known to the
agent in every schedule. Here an agent learns of a phase what comes before the instructions of its arrives, and each
arrive of a later phase must know all of that: then no schedule tells the agent less.
"""

from typing import Generic, Protocol, Self, TypeVar

from pipesim.model.groups import BARRIER, COMMITS, COUNT, EXPECT, LIFE, ON_BARRIER, SUPPLIES_HERE, TOKEN
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Clock
from pipesim.prove.refutation import Doubt, Why

_ABOUT_ORDER = frozenset({Why.EARLY_PART, Why.EARLY_PASS})


class _Before(Protocol):
    """What comes before something."""

    def join(self, other: Self) -> Self: ...


_M = TypeVar("_M", bound=_Before)


class ExchangedArrivals(Generic[_M]):
    """The arrivals of one mbarrier so far, under one relation; ``nothing``: the moment before all."""

    def __init__(self, nothing: _M) -> None:
        self._nothing = self._open = self._complete = self._seen = nothing
        self._latest: list[_M] = []  # arrivals of the open phase

    def arrive(self, before: _M, after: _M) -> bool:
        """Count an arrival: the moments before its instruction and after it. False if it may not come in the place of
        one of a phase that was seen.
        """
        self._open = self._open.join(before)
        self._latest.append(after)
        return _covers(after, self._seen)

    def complete(self) -> None:
        """The open phase is complete."""
        self._complete = self._complete.join(self._open)
        self._open = self._nothing
        self._latest = []

    def see(self) -> bool:
        """An agent sees the latest complete phase. False if an arrival that was counted since may not be part of it."""
        self._seen = self._complete
        return all(_covers(after, self._seen) for after in self._latest)


class ExchangedPhases:
    """Of one mbarrier: what the certificate needs instead of the order of its phases."""

    def __init__(self, nothing: Clock) -> None:
        self.arrivals = ExchangedArrivals(nothing)
        self._passed: dict[int, int] = {}  # by agent the last wait for a phase before the latest complete one
        self._made: tuple[dict[int, int], ...] = (
            {},
            {},
            {},
        )  # by agent the last arrive: before, of it, of the open one

    @property
    def ended(self) -> bool:
        """Whether no arrive has come since the latest phase was complete: once that is seen, all of them have come."""
        return not self._made[2]

    def arrive(self, agent: int, pc: int, before: Clock, after: Clock) -> bool:
        """Count an arrive. False if some schedule may count it too early."""
        self._made[2][agent] = pc
        return self.arrivals.arrive(before, after) and self._follows_waits(agent, after)

    def _follows_waits(self, agent: int, after: Clock) -> bool:
        """Whether all waits for phases before the latest complete one have passed: none may find the next complete."""
        return all(waiter == agent or after.covers(waiter, pc) for waiter, pc in self._passed.items())

    def complete(self, saw: list[tuple[int, int]]) -> None:
        """The open phase is complete; ``saw``: the waits for the one before it."""
        self.arrivals.complete()
        self._passed |= dict(saw)
        before, latest, opened = self._made
        self._made = before | latest, opened, {}

    def cannot_pass_early(self, agent: int, clock: Clock) -> bool:
        """True if all arrives of the phases before the latest complete one come before the agent's next operation."""
        return all(other == agent or clock.covers(other, pc) for other, pc in self._made[0].items())


def first_of_instruction(code: tuple[Operation, ...], pc: int) -> int:
    """The first of the arrives that follow each other up to ``pc``: those of one instruction are among them."""
    while pc and code[pc - 1][0] == Op.ARRIVE:
        pc -= 1
    return pc


def exchanged_barriers(program: Program, doubts: tuple[Doubt, ...]) -> frozenset[int]:
    """The barriers that all doubts are about, if each concerns the order of phases on one whose arrivals are alike."""
    barriers = frozenset(doubt.where for doubt in doubts)
    alike = all(doubt.why in _ABOUT_ORDER for doubt in doubts) and all(_are_alike(program, bar) for bar in barriers)
    return barriers if alike else frozenset()


def _are_alike(program: Program, bar: int) -> bool:
    """Whether plain arrives of one size are all that a barrier, with one init, ever counts."""
    if bar >= len(program.barriers):
        return False
    inits, sizes = [], set()
    for op in (op for op in program.operations):
        if op[0] == Op.TMA_LOAD and bar in (landed for landed, _ in program.landings(op)):
            return False
        if op[0] in COMMITS and bar in program.commit_barriers(op):
            return False
        if op[0] not in ON_BARRIER - COMMITS or op[BARRIER] != bar:
            continue
        if op[0] == Op.INIT:
            inits.append(op[COUNT])
        elif op[0] == Op.ARRIVE and not op[EXPECT] and op[TOKEN] < 0:
            sizes.add(op[COUNT])
        elif op[0] in SUPPLIES_HERE | LIFE:
            return False
    return len(inits) == len(sizes) == 1 and not inits[0] % sizes.pop()


def _covers(after: _M, before: _M) -> bool:
    return after.join(before) == after
