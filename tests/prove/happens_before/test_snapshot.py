"""Equal snapshots, equal futures: random loops, cut at moments that no agent can tell apart, and ended at random.

The proof for any number of trips stands on this (``pipesim.prove.any_size.family``). Each twin forgets one thing that a
snapshot holds, and the same test must then find two moments that look alike and go on otherwise.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import pytest

from pipesim.model.finding import Fault
from pipesim.model.program import Program
from pipesim.prove.certificate.canonical import CanonicalRun, is_again
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.certificate.requirements import OtherCta
from pipesim.prove.happens_before.accesses import Accesses
from pipesim.prove.happens_before.snapshot import Lap, Snapshot
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Doubt
from tests.support.random_programs.loops import loop_program, random_end, random_loop

PAIRS, ENDS = 3, 3


class Future(NamedTuple):
    """All that comes of a run after a moment."""

    where: tuple[int, ...]
    finished: bool
    faults: list[Fault]
    doubts: tuple[Doubt, ...]
    weak: tuple[Fault, ...]


class Watched:
    """A program on its canonical way, watched by the certificate and by memory order."""

    def __init__(self, program: Program) -> None:
        self.certificate, self.memory = Certificate(program), MemoryOrder(program)
        self.run = CanonicalRun(program, [self.certificate, self.memory])

    @property
    def clean(self) -> bool:
        return not (self.run.faults or self.certificate.doubts or self.memory.faults)

    def rounds(self, many: int) -> "Watched":
        for _ in range(many):
            self.run.round()
        return self

    def future(self) -> Future:
        self.run.to_end()
        self.certificate.close()
        run = self.run
        return Future(run.state.pcs, run.finished, run.faults, self.certificate.doubts, self.memory.faults)


def stood(program: Program) -> list[tuple[int, ...]]:
    """Where the agents stand after each round up to which nothing is wrong and no agent has ended."""
    watched = Watched(program)
    places: list[tuple[int, ...]] = []
    while True:
        watched.run.round()
        pcs = watched.run.state.pcs
        ended = any(pc == len(code) for pc, code in zip(pcs, program.code, strict=True))
        if watched.run.over or ended or not watched.clean:
            return places
        places.append(pcs)


def laps(program: Program) -> Iterator[tuple[int, int, Lap]]:
    """Pairs of rounds after which every agent stands before the same operation, the later ones behind the earlier."""
    places, code = stood(program), program.code
    for (i, begin), (j, end) in combinations(enumerate(places, 1), 2):
        if all(code[a][begin[a]] == code[a][end[a]] for a in range(len(code))):
            yield i, j, Lap(begin, end)


def ended(program: Program, at: tuple[int, ...], ends: list[list[tuple[int, ...]]]) -> Program:
    """The program up to and with the operations that its agents stand before, then these."""
    codes = [[*code[: pc + 1], *more] for code, pc, more in zip(program.code, at, ends, strict=True)]
    return loop_program(codes, [agent.cta for agent in program.agents])


def alike(short: Future, long: Future, lap: Lap) -> bool:
    """True if the two differ by a lap in places, and in nothing else."""
    moved = tuple(b - a for a, b in zip(lap.begin, lap.end, strict=True))

    def same(one: int, other: int, agent: int) -> bool:
        return other - one in (0, moved[agent] if agent >= 0 else 0)

    def same_fault(one: Fault, other: Fault) -> bool:
        known = (one.kind, one.agent, one.barrier, one.other_agent) == (
            other.kind, other.agent, other.barrier, other.other_agent,
        )  # fmt: skip
        return known and same(one.pc, other.pc, one.agent) and same(one.other_pc, other.other_pc, one.other_agent)

    def same_doubt(one: Doubt, other: Doubt) -> bool:
        known = (one.why, one.agent, one.other_agent, one.where) == (
            other.why, other.agent, other.other_agent, other.where,
        )  # fmt: skip
        return known and same(one.pc, other.pc, one.agent) and same(one.other_pc, other.other_pc, one.other_agent)

    return (
        short.finished == long.finished
        and all(b - a == by for a, b, by in zip(short.where, long.where, moved, strict=True))
        and len(short.faults) == len(long.faults)
        and all(map(same_fault, short.faults, long.faults))
        and len(short.doubts) == len(long.doubts)
        and all(map(same_doubt, short.doubts, long.doubts))
        and len(short.weak) == len(long.weak)
        and all(map(same_fault, short.weak, long.weak))
    )


def compared(seed: int) -> Iterator[tuple[Future, bool]]:
    """The futures of moments of this loop that no agent can tell apart, and whether they are alike."""
    rng, program = random_loop(seed)
    nearest = {i: (j, lap) for i, j, lap in reversed(list(again(program)))}
    for i, (j, lap) in rng.sample(sorted(nearest.items()), min(PAIRS, len(nearest))):
        rests = [list(code[pc + 1 :]) for code, pc in zip(program.code, lap.end, strict=True)]
        for _ in range(ENDS):
            ends = random_end(rng, rests)
            long, short = Watched(ended(program, lap.end, ends)), Watched(ended(program, lap.begin, ends))
            earlier, later = long.rounds(i).run.snapshot(), long.rounds(j - i).run.snapshot()
            if is_again(lap, earlier, later):  # what the end waits for decides what is remembered
                future = short.future()
                yield future, alike(future, long.future(), lap)


def again(program: Program) -> Iterator[tuple[int, int, Lap]]:
    """Of the laps those at whose end everybody stands as at the beginning."""
    found = list(laps(program))
    last = max((j for _, j, _ in found), default=0)
    watched = Watched(program)
    moments = [watched.rounds(1).run.snapshot() for _ in range(last)]
    for i, j, lap in found:
        if is_again(lap, moments[i - 1], moments[j - 1]):
            yield i, j, lap


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in (16, 32, 48))])
def test_equal_snapshots_have_equal_futures(first: int) -> None:
    seen = {seed: list(compared(seed)) for seed in range(first, first + 16)}
    assert [seed for seed, made in seen.items() if not all(same for _, same in made)] == []
    futures = [future for made in seen.values() for future, _ in made]
    assert len(futures) > 20
    assert sum(future.finished and not (future.faults or future.doubts) for future in futures) > 2
    assert sum(bool(future.doubts) for future in futures) > 5
    assert sum(not future.finished for future in futures) > 5


def nobody_in_the_other_cta(patch: pytest.MonkeyPatch) -> None:
    """What has reached into another CTA, of which that knows nothing yet, is forgotten."""
    patch.setattr(OtherCta, "mark", lambda *_: None)


def accesses(patch: pytest.MonkeyPatch) -> None:
    """Who has read and written what is forgotten."""
    patch.setattr(Accesses, "mark", lambda *_: None)


def the_observers(patch: pytest.MonkeyPatch) -> None:
    """All that is known beside the state of the machine is forgotten."""
    for observer in (Certificate, MemoryOrder):
        patch.setattr(observer, "snapshot", lambda _: Snapshot((), (), ()))


@pytest.mark.parametrize(("forgotten", "seed"), [(nobody_in_the_other_cta, 20), (accesses, 68), (the_observers, 1)])
def test_a_snapshot_that_forgets_is_caught(
    forgotten: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(same for _, same in compared(seed))
    forgotten(monkeypatch)
    assert not all(same for _, same in compared(seed))
