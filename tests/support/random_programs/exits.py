"""Random clusters whose agents synchronise unequally often, so that some end while others wait."""

import random

from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier, Tile

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
        accesses=tuple(Access(Space.SHARED, a, 0, 64) for a in range(len(codes))),
        tiles=tuple(Tile("t", Space.SHARED, a, 0, 64, 1) for a in range(len(codes))),
        code=tuple(whole),
        lines=tuple((0,) * len(code) for code in whole),
        sources=("exits.py:1",),
        ctas=len(codes),
        registers=1,
    )


def _work(rng: random.Random, own: int, agents: int) -> list[Operation]:
    """Work of an engine that its agent waits for, or not; of the commits some arrive on another CTA's barrier."""
    engine = rng.choice([Engine.BULK, Engine.TCGEN05])
    at = own if rng.random() < 0.6 else rng.randrange(agents)
    begun: list[Operation] = [(int(Op.WRITE), own, 1), (int(Op.TRANSFER_READ), int(engine), own, 64, 1)]
    if engine is Engine.BULK:
        begun.append((int(Op.COMMIT), int(engine), -1))
        return [*begun, (int(Op.WAIT_GROUP), int(engine), 0)] if rng.random() < 0.5 else begun
    begun.append((int(Op.COMMIT), int(engine), at))
    return [*begun, (int(Op.WAIT), at, 0, 0)] if rng.random() < 0.5 else begun


def pair_load(own: int, other: int) -> tuple[list[Operation], list[Operation]]:
    """What CTAs ``own`` and ``other`` do: a copy into the one arrives in the other, as of a pair, and is not waited for
    in its own CTA, where something else is.
    """
    copy = [(int(Op.ARRIVE), other, 1, 64, -1, 0), (int(Op.TMA_LOAD), other, own, 64, 1, 0)]
    return [*copy, (int(Op.COMMIT), int(Engine.TCGEN05), own), (int(Op.WAIT), own, 0, 0)], [(int(Op.WAIT), other, 0, 0)]


def random_exits(seed: int) -> Program:
    """The program of this seed: some of its agents also wait for each other's barriers in between."""
    rng = random.Random(seed)
    agents, rounds = rng.choice([2, 2, 3]), rng.randint(0, 3)
    codes = []
    for own in range(agents):
        code: list[Operation] = []
        for _ in range(rng.choice([rounds, rounds, rng.randint(0, 3)])):
            held = rng.random() < 0.2
            if held:
                code.append((int(Op.ARRIVE), own, 1, 0, 0, 0))
            code += rng.choice([SYNC, SYNC, SYNC, (ARRIVE,), ()])
            at = rng.randrange(agents)
            arrive, wait = (int(Op.ARRIVE), at, 1, 0, -1, 0), (int(Op.WAIT), at, 0, 0)
            code += rng.choice([(arrive,), (arrive,), (wait,), (wait, arrive), (), (), ()])
            if held:
                code.append((int(Op.WAIT_STATE), own, 0, 0))
            if rng.random() < 0.2:
                code += _work(rng, own, agents)
        codes.append(tuple(code))
    if rng.random() < 0.1:
        own, other = rng.sample(range(agents), 2)
        for cta, more in zip((own, other), pair_load(own, other), strict=True):
            codes[cta] = (*codes[cta], *more)
    counts = tuple(rng.choice([1, 1, 2]) for _ in range(agents))
    return one_in_each_cta(*(((*SYNC, *code)) for code in codes), counts=counts)
