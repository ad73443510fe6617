"""Random small programs in which one thread commits several times, and others learn of the last commit alone.

The hand-overs are those of ``corners``. Whoever waits for the later commit then does what may only come after an
earlier one: it ends the life of its mbarrier, arrives in the phase after it, waits for that, or ends its CTA. Whether
commits of one thread keep their order is drawn, too.
"""

import random

from pipesim.model.coverage import Assumption
from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from tests.support.random_programs.corners import BYTES, CORNERS, WHOLE, Weft, assembled, mutate, woven


def random_commits(seed: int) -> Program:
    """The program of this seed."""
    rng = random.Random(seed)
    ranks = rng.choice([[0] * 3, [0] * 3, [0, 1, 0], [0, 1, 1]])[: rng.choice([2, 2, 3])]
    weft = Weft(rng, rng.choice([1, 1, 2]), ranks)
    weft.stays = rng.random() < 0.5
    _commits(weft)
    if rng.random() < 0.2:
        CORNERS[rng.choice(list(CORNERS))](weft)
    codes = woven(weft)
    if rng.random() < 0.2:
        mutate(rng, rng.choice(codes), weft)
    program = assembled(weft, codes, "commits")
    strict = {Assumption.COMMITS} if rng.random() < 0.3 else set()
    return program.with_strictness(program.strictness | strict)


def _commits(weft: Weft) -> None:
    """An agent commits to two or three mbarriers; others arrive on the first as well, or know of an arrival there."""
    rng, (committer, waiter) = weft.rng, weft.pair()
    cp_async = rng.random() < 0.25
    engine = Engine.CP_ASYNC if cp_async else Engine.TCGEN05
    lanes = [rng.choice([32, 32, 32, 16]) for _ in range(2)] if cp_async else [1, 1]
    also = rng.choice([0, 0, 0, 1])  # arrivals of others in the phase of the first commit
    here = weft.ranks[waiter]
    first, last = (
        weft.barrier(here, lanes[0] + also),
        weft.barrier(rng.choice([here, here, weft.ranks[committer]]), lanes[1]),
    )
    tile, begins = weft.tile(weft.ranks[committer]), weft.spot()
    commits = [
        (Op.CP_ASYNC_ARRIVE, bar, n, 1) if cp_async else (Op.COMMIT, engine, bar)
        for bar, n in zip((first, last), lanes, strict=True)
    ]
    if rng.random() < 0.15:
        commits.reverse()
    for n, commit in enumerate(commits):
        if rng.random() < 0.4:
            weft.put(committer, begins, (Op.TRANSFER_READ, engine, tile[WHOLE], BYTES, -1))
        weft.put(committer, begins, commit)
        if not n and rng.random() < 0.3:
            begins = weft.spot(begins)
    if also:
        weft.put(
            weft.agent(), weft.spot() if rng.random() < 0.3 else rng.randint(0, begins), (Op.ARRIVE, first, 1, 0, -1, 0)
        )
    waits = weft.spot(begins)
    weft.wait(waiter if rng.random() < 0.9 else weft.agent(), waits, last)
    _after(weft, waiter if rng.random() < 0.8 else weft.agent(), weft.spot(waits), first, lanes[0] + also)


def _after(weft: Weft, agent: int, spot: int, bar: int, count: int) -> None:
    """What may come only when the first phase of the mbarrier is complete."""
    match weft.rng.randrange(5):
        case 0 | 1:
            weft.put(agent, spot, (Op.INVAL, bar))
        case 2:
            weft.put(agent, spot, (Op.ARRIVE, bar, count, 0, -1, 0))
            weft.wait(agent, spot, bar, 1)
        case 3:
            weft.put(agent, spot, (Op.ARRIVE, bar, count, 0, -1, 0))
            weft.wait(weft.agent(), weft.spot(spot), bar, weft.rng.randrange(2))
        case _:
            pass  # it ends, and perhaps its CTA
