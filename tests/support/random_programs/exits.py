"""Random clusters whose agents synchronise unequally often, so that some end while others wait."""

from __future__ import annotations

import random

from pipesim.model.ops import Op, Operation
from pipesim.model.program import ALL_LANES, Agent, Barrier, Program

ARRIVE: Operation = (int(Op.CLUSTER_ARRIVE), 0)
SYNC: tuple[Operation, ...] = (ARRIVE, (int(Op.CLUSTER_WAIT), 0))


def one_in_each_cta(*codes: tuple[Operation, ...], counts: tuple[int, ...] = ()) -> Program:
    """One agent in each CTA, which initialises a barrier of its own (with a count of 1 unless ``counts`` has it)."""
    inits = [((int(Op.INIT), a, counts[a] if counts else 1),) for a in range(len(codes))]
    whole = [(*init, *code) for init, code in zip(inits, codes, strict=True)]
    return Program(
        name="exits",
        params={},
        agents=tuple(Agent(a, 0, ALL_LANES, f"r{a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(a, "b", 0) for a in range(len(codes))),
        accesses=(),
        tiles=(),
        code=tuple(whole),
        lines=tuple((0,) * len(code) for code in whole),
        sources=("exits.py:1",),
        ctas=len(codes),
        registers=1,
    )


def random_exits(seed: int) -> Program:
    """The program of this seed: some of its agents also wait for each other's barriers in between."""
    rng = random.Random(seed)
    agents = rng.choice([2, 2, 3])
    codes = []
    for own in range(agents):
        code: list[Operation] = []
        for _ in range(rng.randint(0, 3)):
            code += rng.choice([SYNC, SYNC, SYNC, (ARRIVE,), ()])
            if rng.random() < 0.3:
                code.append((int(Op.ARRIVE), rng.randrange(agents), 1, 0, -1, 0))
            if rng.random() < 0.2:
                code.append((int(Op.WAIT), rng.randrange(agents), 0, 0))
            if rng.random() < 0.2:
                code += [(int(Op.ARRIVE), own, 1, 0, 0, 0), *rng.choice([SYNC, ()]), (int(Op.WAIT_STATE), own, 0, 0)]
        codes.append(tuple(code))
    counts = tuple(rng.choice([1, 1, 2]) for _ in range(agents))
    return one_in_each_cta(*(((*SYNC, *code)) for code in codes), counts=counts)
