"""Loads and stores that meet in the copy engine of an SM, and a try that looks twice."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import FIELDS, load_profile
from pipesim.timed.recurrence.many import ManyProfiles
from pipesim.timed.recurrence.prices import price_table
from pipesim.timed.recurrence.timings import SLOWED, derived, times_of
from pipesim.timed.simulation import Simulation
from pipesim.trace.schema import EventKind
from tests.support.random_profiles import drawn
from tests.support.random_works import with_works_of_lines
from tests.support.timed_ring import Ring, ring, toy

#: 8 bytes of a store a cycle, 16 of a load; nothing else takes any time.
QUICK = toy(
    **dict.fromkeys(("work_issue", "loop_issue", "wait_issue", "wait_wake_up", "copy_issue", "expect_issue"), 0),
    **dict.fromkeys(("other_issue", "arrive_issue", "arrive_latency", "sync_latency"), 0),
    copy_latency=0,
    transfer_latency=0,
)


def stores(begins: dict[str, int], nbytes: int, *, load_at: int = -1) -> Program:
    """Each role begins a store of so many bytes at its time; at ``load_at`` (-1: never) a load of as many."""
    p = Protocol("stores")
    full, loaded = p.mbarriers("full", 1), p.smem("loaded", 1, nbytes)
    p.init(lambda: full[0].init(1))
    for name, begin in begins.items():
        tile = p.smem(name, 1, nbytes)

        @p.role(name)
        def role(w: Warp, begin: int = begin, tile: object = tile) -> None:
            w.write(tile[0], 0)  # type: ignore[index]
            w.work(begin)
            with w.elect_one():
                w.async_read(Engine.BULK, tile[0], 0)  # type: ignore[index]
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            w.work(1)

    if load_at >= 0:

        @p.role("load")
        def load(w: Warp) -> None:
            w.work(load_at)
            with w.elect_one():
                full[0].expect_bytes(nbytes)
                w.tma_load(loaded[0], full[0], 0)
                full[0].wait(0)

    return p.flatten({})


def done(run: Simulation, role: str) -> int:
    """When a role's store has been read."""
    assert run.faults == ()
    events = run.trace.events
    mine = [run.trace.meta.agent_name(int(a)).startswith(role) for a in events.agent]
    kinds = [run.trace.meta.sites[int(s)].kind for s in events.site]
    found = zip(events.cycle, mine, kinds, strict=True)
    return [int(cycle) for cycle, own, kind in found if own and kind is EventKind.WORK_BEGIN][-1]


def test_a_store_takes_the_engine_for_its_bytes() -> None:
    assert done(simulate(stores({"one": 100}, 512), QUICK), "one") == 100 + 512 // 8


@pytest.mark.parametrize(("later", "second"), [(10, 128), (63, 128), (64, 128), (100, 164)])
def test_a_store_waits_for_the_one_before(later: int, second: int) -> None:
    run = simulate(stores({"one": 1, "two": 1 + later}, 512), QUICK)
    assert (done(run, "one"), done(run, "two")) == (1 + 64, 1 + second)


def test_a_load_waits_for_a_store_and_a_store_for_a_load() -> None:
    """The load takes the engine for 32 cycles."""
    late = simulate(stores({"one": 1}, 512, load_at=11), QUICK)
    assert (done(late, "one"), late.cycles) == (65, 65 + 32)
    early = simulate(stores({"one": 11}, 512, load_at=1), QUICK)
    assert done(early, "one") == 1 + 32 + 64


def test_a_formula_knows_who_comes_first() -> None:
    """Where the order of two is that of the run that it was made from; else it is simulated."""
    profiles = [drawn(seed) for seed in range(40)]
    decided = 0
    for program in (stores({"one": 1, "two": 400}, 512, load_at=150), stores({"one": 5, "two": 6}, 64, load_at=7)):
        found = times_of(program, profiles, traced=False)
        assert found.reason == ""
        assert [simulate(program, each).cycles for each in profiles] == found.cycles.tolist()
        decided += int((~found.simulated).sum())
    assert 0 < decided < 2 * len(profiles)


TRIES = replace(QUICK, values=QUICK.values | {"try.limit": 5_000, "wait.poll": 40, "wait.issue": 7})


def tried(release: int) -> Program:
    """One agent tries a barrier at 100, and waits for it if it must; another one arrives at ``release``."""
    p = Protocol("tried")
    gate = p.mbarriers("gate", 1)
    p.init(lambda: gate[0].init(1))

    @p.role("asks")
    def asks(w: Warp) -> None:
        w.work(100)
        with w.elect_one():
            ready = gate[0].try_wait(0)
            gate[0].wait_if_needed(ready, 0)
        w.work(1)

    @p.role("gives")
    def gives(w: Warp) -> None:
        w.work(release)
        with w.elect_one():
            gate[0].arrive()

    return p.flatten({})


@pytest.mark.parametrize(
    ("release", "goes_on"),
    [
        (90, 100 + 7),  # it has happened: the first look finds it
        (101, 100 + 40 + 7),  # the second look finds it
        (139, 100 + 40 + 7),
        (141, 147 + 7),  # both have failed: the wait asks itself, at once with success
        (400, 147 + 7 * 40 + 7),  # the wait's own tries
    ],
)
def test_a_try_that_fails_looks_once_more(release: int, goes_on: int) -> None:
    assert done(simulate(tried(release), TRIES), "asks") == goes_on


@pytest.mark.parametrize("release", [90, 101, 139, 141, 400])
def test_a_formula_looks_twice_too(release: int) -> None:
    program = tried(release)
    profiles = [replace(TRIES, values=TRIES.values | {"wait.poll": poll}) for poll in range(1, 60, 3)]
    found = times_of(program, profiles, traced=False)
    assert found.reason == ""
    assert [simulate(program, each).cycles for each in profiles] == found.cycles.tolist()
    assert not found.simulated.all()


@pytest.mark.parametrize(("limit", "goes_on"), [(3, 100 + 7), (7, 100 + 7), (11, 100 + 11)])
def test_a_try_that_gives_up_takes_no_less_than_a_look(limit: int, goes_on: int) -> None:
    p = Protocol("gives up")
    gate, tile = p.mbarriers("gate", 1), p.smem("tile", 1, 64)
    p.init(lambda: gate[0].init(1))

    @p.role("asks")
    def asks(w: Warp) -> None:
        w.work(100)
        with w.elect_one():
            gate[0].try_wait(0)
        w.work(1)

    @p.role("gives")
    def gives(w: Warp) -> None:
        w.work(400)
        with w.elect_one():
            gate[0].expect_bytes(64)
            w.tma_load(tile[0], gate[0], 0)
            gate[0].wait(0)

    program, profile = p.flatten({}), replace(TRIES, values=TRIES.values | {"try.limit": limit})
    assert done(simulate(program, profile), "asks") == goes_on
    found = times_of(program, [profile], traced=False)
    assert found.ends[:, 0].tolist() == list(simulate(program, profile).ends)


def race(*, asks_first: bool, waits: bool) -> Program:
    """One agent tries a barrier when it has worked, and may go by the answer; another one arrives when it has worked.

    ``asks_first``: which is the lower agent, whose turn is first in a cycle.
    """
    p = Protocol("race")
    gate = p.mbarriers("gate", 1)
    p.init(lambda: gate[0].init(1))

    def asks(w: Warp) -> None:
        with w.elect_one():
            w.work(0)
            w.compute("race/asks", fma=1)
            ready = gate[0].try_wait(0)
            if waits:
                gate[0].wait_if_needed(ready, 0)
            w.work(1)

    def gives(w: Warp) -> None:
        with w.elect_one():
            w.work(0)
            w.compute("race/gives", fma=1)
            gate[0].arrive()
            w.work(1)

    for role in (asks, gives) if asks_first else (gives, asks):
        p.role(role.__name__)(role)
    return p.flatten({})


@pytest.mark.parametrize("latency", [0, 5])
@pytest.mark.parametrize("first", [(100, 90), (100, 110), (100, 150)])
@pytest.mark.parametrize(("asks_first", "waits"), [(False, True), (True, True), (True, False)])
def test_who_is_first_decides_what_a_try_finds(
    asks_first: bool, waits: bool, first: tuple[int, int], latency: int
) -> None:
    """Under every profile the answer is that of the simulation, whichever order the formula was derived from."""
    program = race(asks_first=asks_first, waits=waits)
    pairs = [first, *((asks, gives) for asks in range(60, 140, 9) for gives in range(60, 180, 8))]
    pairs += [(100, 100 + near) for near in range(-8, 9)]
    profiles = [
        replace(TRIES, values=TRIES.values | {"race/asks.cycles": a, "race/gives.cycles": g, "arrive.latency": latency})
        for a, g in pairs
    ]
    found = times_of(program, profiles, traced=False)
    assert [list(simulate(program, each).ends) for each in profiles] == found.ends.T.tolist()
    assert found.reason == ""
    assert not found.simulated[0]
    alone = derived(program, profiles[0]).times  # the formula of one order says nothing about the other
    assert alone is not None
    late = price_table(program, alone.formula, ManyProfiles(profiles), np.arange(len(profiles)), traced=False)
    undecided = np.broadcast_to(alone(late).undecided, len(profiles))
    assert 0 < undecided.sum() < len(profiles)


@pytest.mark.parametrize("seed", range(10))
def test_rings_with_tries_by_formula(seed: int) -> None:
    """What a stage is worked on, and how soon it is given back, is another cost under each profile."""
    shape = Ring(stages=1 + seed % 3, tiles=6, tries=True, work=[0, 9, 40][seed % 3])
    program = with_works_of_lines(ring(shape).flatten({}), random.Random(seed))
    works = sorted({work.name for work in program.work})
    profiles = []
    for n in range(20):
        draw = random.Random(20 * seed + n)
        constants = {f"{name}.cycles": draw.randint(0, 90) for name in works}
        quick = {name: draw.randint(1_000, 20_000) for name in FIELDS if "bytes_per" in name}
        values = drawn(20 * seed + n).values | constants | quick | {"try.limit": 10**6}
        profiles.append(replace(load_profile("h100"), values=values))
    found = times_of(program, profiles, traced=False)
    assert [simulate(program, each).cycles for each in profiles] == found.cycles.tolist()
    assert found.reason in ("", SLOWED)
    assert 20 - found.simulated.sum() >= (5 if not found.reason else 0)


#: Bytes of a store: cycles until it was read (``python -m hwkernels.microbench.transfers``, H200; docs/hopper.md).
MEASURED = {4096: 367, 8192: 495, 16384: 751, 32768: 1263}


def test_stores_take_what_was_measured() -> None:
    """But for what begins and ends one, which is the same for all sizes."""
    h200 = load_profile("h200")
    found = {nbytes: done(simulate(stores({"one": 100}, nbytes), h200), "one") for nbytes in MEASURED}
    assert {nbytes: at - found[4096] for nbytes, at in found.items()} == {
        nbytes: at - MEASURED[4096] for nbytes, at in MEASURED.items()
    }
