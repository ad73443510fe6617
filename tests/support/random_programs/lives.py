"""Random small programs in which mbarriers are invalidated, initialised again, or lose arrivals for good.

The hand-overs are those of ``corners``. What is drawn here: lives of one barrier, one after the other, some of which
begin before the last one is over; arrivals that drop out; a try whose answer outlives the barrier; and one thing that
is no hand-over at all: several agents write the same item to the same cells.
"""

import random
from collections.abc import Callable

from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from tests.support.random_programs.corners import BYTES, CORNERS, LEFT, TRY, WHOLE, Weft, assembled, mutate, woven


def random_lives(seed: int) -> Program:
    """The program of this seed; its name tells what is in it."""
    rng = random.Random(seed)
    ranks = rng.choice([[0] * 3, [0] * 3, [0, 1, 0], [0, 1, 1]])[: rng.choice([2, 2, 3])]
    weft = Weft(rng, rng.choice([1, 1, 2, 2]), ranks)
    weft.stays = rng.random() < 0.9
    drawn = [rng.choice(list(LIVES))]
    if rng.random() < 0.2:
        drawn.append(rng.choice(list(CORNERS)))
    for name in drawn:
        (LIVES.get(name) or CORNERS[name])(weft)
    codes = woven(weft)
    if rng.random() < 0.2:
        mutate(rng, rng.choice(codes), weft)
    return assembled(weft, codes, "lives: " + ", ".join(sorted(drawn)))


def _several_lives(weft: Weft) -> None:
    """Lives of one barrier, each with a phase or two; whoever ends one and begins the next need not be the same."""
    rng, spot = weft.rng, 0
    home = weft.agent()
    there = [agent for agent, rank in enumerate(weft.ranks) if rank == weft.ranks[home]]
    bar, tile = weft.barrier(weft.ranks[home], 1), weft.tile(weft.ranks[home])
    for life in range(rng.choice([1, 2, 2, 3])):
        if life:
            spot = weft.spot(spot) if rng.random() < 0.8 else weft.spot()
            weft.put(rng.choice(there), spot, (Op.INIT, bar, 1))
        for phase in range(rng.choice([0, 1, 1, 2])):
            spot = _one_phase(weft, bar, tile[WHOLE], phase, spot)
        spot = weft.spot(spot) if rng.random() < 0.8 else weft.spot()
        weft.put(rng.choice(there), spot, (Op.INVAL, bar))


def _one_phase(weft: Weft, bar: int, tile: int, phase: int, spot: int) -> int:
    """Somebody completes a phase from ``spot`` on, some wait for it: the spot of the last of them."""
    rng, agent = weft.rng, weft.agent()
    begins = weft.spot(spot)
    match rng.randrange(4):
        case 0:
            weft.put(agent, begins, (Op.COMMIT, Engine.TCGEN05, bar))
        case 1:
            weft.put(agent, begins, (Op.ARRIVE, bar, 1, BYTES, -1, 0), (Op.TMA_LOAD, bar, tile, BYTES, 1, 0))
        case _:
            weft.put(agent, begins, (Op.ARRIVE, bar, 1, 0, -1, 0))
    ends = begins
    for _ in range(rng.choice([0, 1, 1, 2])):
        waits = weft.spot(begins)
        weft.wait(weft.agent(), waits, bar, phase % 2)
        ends = max(ends, waits)
    return ends


def _drops_out(weft: Weft) -> None:
    """A barrier of several arrivals, of which some are the last that their agents make."""
    rng, many = weft.rng, len(weft.ranks)
    count = rng.choice([many, many, many + 1])
    bar, stays = weft.barrier(weft.ranks[0], count), list(range(many))
    begins = 0
    for phase in range(rng.choice([2, 2, 3])):
        ends = begins
        for agent in list(stays):
            spot = weft.spot(begins)
            drops = rng.random() < 0.3
            if drops:
                stays.remove(agent)
            weft.put(agent, spot, (Op.ARRIVE_DROP if drops else Op.ARRIVE, bar, 1, 0, -1, 0))
            ends = max(ends, spot)
        if rng.random() < 0.8:
            weft.wait(weft.agent(), ends, bar, phase % 2)
        begins = ends if rng.random() < 0.7 else weft.spot()


def _answer_of_an_earlier_life(weft: Weft) -> None:
    """A try in one life, the wait that may be skipped by its answer in the next."""
    rng, (tells, asks) = weft.rng, weft.pair()
    bar, parity = weft.barrier(weft.ranks[asks], 1), rng.randrange(2)
    first = weft.spot()
    weft.put(tells, first, (Op.ARRIVE, bar, 1, 0, -1, 0))
    tried = weft.spot(first)
    weft.put(asks, tried, (Op.TRY_WAIT, bar, parity, TRY, 0))
    ended = weft.spot(tried)
    weft.put(asks, ended, (Op.INVAL, bar), (Op.INIT, bar, 1))
    if rng.random() < 0.5:
        weft.put(rng.choice([tells, asks]), weft.spot(ended), (Op.ARRIVE, bar, 1, 0, -1, 0))
    weft.put(asks, weft.spot(ended), (Op.WAIT_UNLESS, bar, rng.choice([parity, parity, 1 - parity]), TRY, 0))


def _written_alike(weft: Weft) -> None:
    """Several agents write the same item to the same cells, in any order, then some read it, or it is written again."""
    rng = weft.rng
    tile, spot, last = weft.tile(weft.ranks[0]), weft.spot(), 0
    part = rng.choice([WHOLE, WHOLE, LEFT])
    for _ in range(rng.choice([1, 1, 2])):
        item = rng.choice([1, 1, 2])
        for _ in range(rng.choice([2, 2, 3])):
            writes = weft.spot(spot) if rng.random() < 0.5 else spot
            weft.put(weft.agent(), writes, (Op.WRITE, tile[part if rng.random() < 0.9 else LEFT], item))
            last = max(last, writes)
        spot = weft.spot(last)
        if rng.random() < 0.8:
            weft.put(weft.agent(), spot, (Op.READ, tile[part], rng.choice([item, item, -1])))
        spot = weft.spot(spot)


LIVES: dict[str, Callable[[Weft], None]] = {
    "several lives": _several_lives,
    "drops out": _drops_out,
    "answer of an earlier life": _answer_of_an_earlier_life,
    "written alike": _written_alike,
}
