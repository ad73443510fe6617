"""Works that share a quarter of an SM: alone as fast as they can be, together no faster than the quarter."""

from dataclasses import replace

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.tables import ALL_LANES, Agent
from pipesim.timed.costs import Cost
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.timed.sm.engines import IssueSlots, SharedMemory


def agents(*warps: int) -> list[Agent]:
    return [Agent(0, warp, ALL_LANES, "use", index) for index, warp in enumerate(warps)]


TENSOR = 500  #: thousandths of a quarter that its tensor core takes


def shared(*warps: int) -> IssueSlots:
    return IssueSlots(agents(*warps), TENSOR)


def ends(slots: IssueSlots, begins: dict[int, tuple[int, Cost]]) -> dict[int, int]:
    """When each agent's work ends that begins at a time with a cost: looked for as an engine does."""
    due = [(at, agent, cost) for agent, (at, cost) in begins.items()]
    found: dict[int, int] = {}
    while due:
        due.sort(key=lambda each: each[:2])
        at, agent, cost = due.pop(0)
        if agent not in slots:
            due.append((slots.begin(agent, at, cost), agent, cost))
        elif (later := slots.try_end(agent, at)) > at:
            due.append((later, agent, cost))
        else:
            found[agent] = at
    return found


HALF, MOST = Cost(1000, demand=500), Cost(1000, demand=750)


@pytest.mark.parametrize(
    ("warps", "cost", "end"),
    [((0, 4), HALF, 1000), ((0, 4), MOST, 1500), ((0, 5), MOST, 1000)],
    ids=["two that fit", "two that do not fit: when the quarter has done both", "two quarters"],
)
def test_two_works_share_the_slots_of_a_quarter(warps: tuple[int, int], cost: Cost, end: int) -> None:
    assert ends(shared(*warps), {0: (0, cost), 1: (0, cost)}) == {0: end, 1: end}


def test_a_work_slows_a_wait_that_passes() -> None:
    """The wait's phase is complete before it begins, so that it takes what its instructions take.

    One that is left out because a try has found the phase complete takes nothing. It passes when the phase can be
    ``seen``, with somebody who could slow it or not.
    """
    usual = load_profile("h200")

    def goes_on(exponentials: int, *, tried: bool = False, seen: int = usual["arrive.latency"]) -> int:
        p = Protocol("quarter")
        gate = p.mbarriers("gate", 1)
        p.init(lambda: gate[0].init(1))

        @p.role("waits")
        def waits(w: Warp) -> None:
            with w.elect_one():
                gate[0].arrive()
            w.work(300)
            gate[0].wait_if_needed(gate[0].try_wait(0) if tried else False, 0)
            w.compute("quarter/take", alu=60)
            w.work(1)

        @p.role("computes", warps=4)
        def computes(w: Warp) -> None:
            w.work(1)
            w.compute("quarter/exponentials", exp2=exponentials)

        run = simulate(p.flatten({}), replace(usual, values=usual.values | {"arrive.latency": seen}))
        names = [run.trace.meta.agent_name(int(agent)) for agent in run.trace.events.agent]
        at = [int(cycle) for cycle, name in zip(run.trace.events.cycle, names, strict=True) if name == "waits"]
        return at[-1]

    alone, early, late = (goes_on(count) for count in (0, 1, 400))
    assert alone == early < late - 60
    assert goes_on(400, tried=True) == goes_on(0, tried=True) < alone
    assert goes_on(0, seen=2_000) == goes_on(1, seen=2_000) > alone + 1_000


def served(memory: SharedMemory, begins: dict[int, tuple[int, Cost]]) -> dict[int, int]:
    """When each access ends that begins at a time with a cost."""
    due = [(at, agent) for agent, (at, _) in begins.items()]
    begun: set[int] = set()
    found: dict[int, int] = {}
    while due:
        due.sort()
        at, agent = due.pop(0)
        if agent not in begun:
            begun.add(agent)
            due.append((memory.begin(agent, at, begins[agent][1]), agent))
        elif (later := memory.try_end(agent, at)) > at:
            due.append((later, agent))
        else:
            found[agent] = at
    return found


def memory(*warps: int) -> SharedMemory:
    return SharedMemory(agents(*warps), shared(*warps), 128_000, parts=False)


def test_accesses_compute_after_they_are_served_in_the_slots_of_their_quarter() -> None:
    """Of 300 cycles 100 in memory, then 150 of issue slots in 200; the twin: on two quarters nobody waits."""
    access = Cost(300, demand=20, in_memory=100, slots=150)
    assert served(memory(0), {0: (0, access)}) == {0: 300}
    assert served(memory(0, 1), {0: (0, access), 1: (0, access)}) == {0: 300, 1: 300}
    assert served(memory(0, 4), {0: (0, access), 1: (0, access)}) == {0: 400, 1: 400}
    assert served(memory(0, 4), {0: (0, access), 1: (250, access)}) == {0: 300, 1: 550}
