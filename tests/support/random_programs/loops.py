"""Random small loops, and random ends for them: what may follow a lap, whatever the lap did."""

import random

from pipesim.model.ops import Engine, Fence, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

BYTES = 64
LAPS = 5
FULL, EMPTY, SIDE, COUNTED, LAST, SLOW = range(6)  #: barriers; LAST is in the other CTA, SLOW takes laps to complete
SLOT, HALF, OTHER, FAR = range(4)  #: accesses: a slot and its half, a tile beside it, one of the other CTA
Code = list[Operation]
FENCED: Operation = (Op.FENCE, Fence.PROXY_ASYNC, 0)
MEET: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]


def random_loop(seed: int, laps: int = LAPS, *, ends_late: bool = False) -> tuple[random.Random, Program]:
    """A loop of this seed, gone through ``laps`` times, and what the rest of it is drawn from.

    A lap may have an operation more than the others, so that what follows is the same but for what that leaves behind.
    With ``ends_late`` what is wrong may show in later laps only, and not in the last one.
    """
    rng = random.Random(seed)
    agents = rng.choice([2, 2, 3])
    ranks = [0, rng.choice([0, 0, 1]), 0][:agents]
    lap: list[Code] = [[] for _ in ranks]
    fill, read, handed = rng.choice(_FILLS), rng.choice(_READS), rng.choice([2, 2, 4])
    for n in range(handed):
        lap[0] += [(Op.WAIT, EMPTY, n + 1 & 1, 0), *fill]
        for code in lap[1:]:
            code += [(Op.WAIT, FULL, n & 1, 0), *read, (Op.ARRIVE, EMPTY, 1, 0, -1, 0)]
    for _ in range(rng.choice([0, 1, 2, 3])):
        _more(rng, lap)
    inits: Code = [(Op.INIT, FULL, 1), (Op.INIT, EMPTY, agents - 1), (Op.INIT, SIDE, 1), (Op.INIT, COUNTED, 2),
                   (Op.INIT, LAST, 1), (Op.INIT, SLOW, 1)]  # fmt: skip
    inits += [(Op.WRITE, access, 0) for access in (OTHER, FAR)]
    once: Code = [(Op.TRANSFER_READ, Engine.BULK, OTHER, BYTES, -1), (Op.COMMIT, Engine.BULK, -1)]
    once = once if rng.random() < 0.3 else []
    first: list[Code] = [[*inits, (Op.FENCE, Fence.MBARRIER_INIT, 0), FENCED, *once], *([] for _ in ranks[1:])]
    codes = [[mine.copy() for _ in range(laps)] for mine in lap]
    if ends_late:
        inits[SLOW] = (Op.INIT, SLOW, rng.randint(laps // 2, laps))
        first[0][SLOW] = inits[SLOW]
        _but_for_the_last_laps(rng, codes)
    for _ in range(rng.choice([0, 0, 0, 1] if ends_late else [0, 1, 1, 2])):
        other = rng.choice(rng.choice(codes)[1:])
        other.insert(rng.choice([0, len(other), rng.randint(0, len(other))]), _odd(rng))
    whole = [[*one, *MEET, *(op for lap in mine for op in lap)] for one, mine in zip(first, codes, strict=True)]
    return rng, loop_program(whole, ranks)


def _but_for_the_last_laps(rng: random.Random, codes: list[list[Code]]) -> None:
    """Put operations into all laps but the last ones: between two laps they may be wrong, and in one they are not."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        laps = rng.choice(codes)
        op = rng.choice([(Op.ARRIVE, SLOW, 1, 0, -1, 0), *_BETWEEN_LAPS])
        from_end = rng.choice([0, 0, 1, rng.randint(0, 6)])
        for lap in laps[: len(laps) - rng.choice([0, 1, 1, 2])]:
            lap.insert(max(0, len(lap) - from_end), op)


_BETWEEN_LAPS: Code = [
    (Op.WRITE, OTHER, 0),
    (Op.READ, OTHER, -1),
    (Op.WRITE, FAR, 0),
    (Op.READ, FAR, -1),
    (Op.TRANSFER_WRITE, Engine.TCGEN05, OTHER, BYTES, 0),
    (Op.TRANSFER_READ, Engine.TCGEN05, OTHER, BYTES, -1),
    (Op.ARRIVE, SIDE, 1, 0, -1, 0),
]


def random_end(rng: random.Random, rests: list[Code]) -> list[Code]:
    """How each agent goes on: with the laps that were left, perhaps, and with all that may hang on earlier ones."""
    ends = [rest.copy() for rest in rests] if rng.random() < 0.5 else [[] for _ in rests]
    more = rng.choice([0, 0.3, 1])
    for code in ends:
        code += [_any(rng, _PROBES) for _ in range(rng.choice([4, 8])) if rng.random() < more]
        code += [_any(rng, _ANYTHING) for _ in range(2) if rng.random() < more]
    return [code + MEET for code in ends] if rng.random() < 0.7 else ends


def loop_program(codes: list[Code], ranks: list[int]) -> Program:
    """The program of these operations."""
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in codes)
    slots = [(0, 0, BYTES), (0, BYTES // 2, BYTES // 2), (0, 128, BYTES), (1, 0, BYTES)]
    return Program(
        name="loop",
        params={},
        agents=tuple(Agent(rank, agent, ALL_LANES, f"r{agent}", 0) for agent, rank in enumerate(ranks)),
        barriers=tuple(Barrier(int(n == LAST), "b", n) for n in range(SLOW + 1)),
        accesses=tuple(Access(Space.SHARED, cta, first, size) for cta, first, size in slots),
        tiles=(),
        code=code,
        lines=tuple(tuple(range(len(agent))) for agent in code),
        sources=tuple(f"loop:{n}" for n in range(1, max(map(len, code)) + 1)),
        named_barriers=((0, 0), (0, 1)),
        registers=2,
        ctas=2,
        smem_bytes=1024,
    )


_FILLS: list[Code] = [
    [(Op.WRITE, SLOT, 0), FENCED, (Op.ARRIVE, FULL, 1, 0, -1, 0)],
    [(Op.ARRIVE, FULL, 1, BYTES, -1, 0), (Op.TMA_LOAD, FULL, SLOT, BYTES, 0, 0)],
    [(Op.EXPECT_TX, FULL, BYTES, 0), (Op.TMA_LOAD, FULL, SLOT, BYTES, 0, 0), (Op.ARRIVE, FULL, 1, 0, -1, 0)],
    [(Op.TRANSFER_WRITE, Engine.TCGEN05, SLOT, BYTES, 0), (Op.COMMIT, Engine.TCGEN05, FULL)],
    [(Op.TRANSFER_WRITE, Engine.CP_ASYNC, SLOT, BYTES, 0), (Op.CP_ASYNC_ARRIVE, FULL, 1, 1)],
]
_READS: list[Code] = [
    [(Op.READ, SLOT, -1)],
    [(Op.READ, HALF, -1)],
    [(Op.TRANSFER_READ, Engine.BULK, OTHER, BYTES, -1), (Op.COMMIT, Engine.BULK, -1), (Op.READ, SLOT, -1)],
    [],
]


def _more(rng: random.Random, laps: list[Code]) -> None:
    """Put something more into the lap of an agent, or of all: once in each."""
    agent = rng.randrange(len(laps))
    sync: Code = [(Op.BAR_SYNC, 0, 64, 32)]
    pair = rng.sample(range(len(laps)), 2)
    mine: list[Code] = [
        [(Op.TRY_WAIT, rng.choice([FULL, EMPTY]), rng.randrange(2), rng.randrange(2), 0)],
        [(Op.TRANSFER_WRITE, Engine.TCGEN05, OTHER, BYTES, 0)],
        [(Op.TRANSFER_READ, rng.choice([Engine.BULK, Engine.TCGEN05]), OTHER, BYTES, -1), (Op.COMMIT, Engine.BULK, -1)],
        [(Op.COMMIT, Engine.BULK, -1), (Op.WAIT_GROUP, Engine.BULK, rng.choice([0, 1]))],
        [(Op.READ, rng.choice([OTHER, FAR]), -1)],
        [(Op.ARRIVE, SIDE, 1, 0, -1, 0)],
        [(Op.ARRIVE, COUNTED, 1, 0, -1, 0), (Op.ARRIVE, COUNTED, 1, 0, -1, 0)],
        [(Op.EXPECT_TX, COUNTED, 16, 0), (Op.COMPLETE_TX, COUNTED, 16, 0)],
        [(Op.ARRIVE, SIDE, 1, 0, -1, 0), (Op.WAIT, SIDE, 0, 0), (Op.ARRIVE, SIDE, 1, 0, -1, 0), (Op.WAIT, SIDE, 1, 0)],
        [(Op.ARRIVE, LAST, 1, 0, -1, 0), (Op.ARRIVE, LAST, 1, 0, -1, 0)],
    ]
    if rng.random() < 0.3:
        for one in pair:
            at = rng.choice([0, len(laps[one]), rng.randint(0, len(laps[one]))])
            laps[one][at:at] = sync
    else:
        at = rng.randint(0, len(laps[agent]))
        laps[agent][at:at] = rng.choice(mine)


def _odd(rng: random.Random) -> Operation:
    """One operation that leaves something behind."""
    access, engine = rng.choice([SLOT, OTHER, OTHER, FAR]), rng.choice([Engine.BULK, Engine.TCGEN05, Engine.CP_ASYNC])
    return rng.choice([
        (Op.ARRIVE, COUNTED, 1, 0, rng.choice([-1, 0, 1]), 0),
        (Op.ARRIVE, SIDE, 1, 0, rng.choice([-1, 0, 1]), 0),
        (Op.EXPECT_TX, rng.choice([COUNTED, FULL]), 16, 0),
        (Op.COMPLETE_TX, rng.choice([COUNTED, FULL]), 16, 0),
        (Op.CP_ASYNC_ARRIVE, COUNTED, 1, 0),
        (Op.TRY_WAIT, rng.choice([FULL, EMPTY, SIDE]), rng.randrange(2), rng.randrange(2), 0),
        (Op.TRANSFER_WRITE, engine, OTHER, BYTES, 0),
        (Op.TRANSFER_READ, engine, OTHER, BYTES, -1),
        (Op.COMMIT, engine, -1),
        (Op.WAIT, SIDE, 1, 0),
        (Op.READ, access, -1),
        (Op.WRITE, access, 0),
        (Op.BAR_ARRIVE, 0, 64, 32),
        (Op.CLUSTER_ARRIVE, 0),
    ])  # fmt: skip


_PROBES = [Op.ARRIVE, Op.EXPECT_TX, Op.COMPLETE_TX, Op.READ, Op.READ, Op.WRITE, Op.WRITE, Op.TRANSFER_READ,
           Op.TRANSFER_WRITE, Op.COMMIT]  # fmt: skip
_ANYTHING = [*_PROBES, Op.WAIT, Op.WAIT_UNLESS, Op.WAIT_GROUP, Op.BAR_SYNC, Op.CLUSTER_WAIT]


def _any(rng: random.Random, ops: list[Op]) -> Operation:
    """One operation that what is remembered of the laps may make right or wrong."""
    op, bar, access = rng.choice(ops), rng.choice([FULL, EMPTY, SIDE, COUNTED, LAST]), rng.choice([SLOT, HALF, OTHER])
    engine = rng.choice([Engine.BULK, Engine.TCGEN05, Engine.CP_ASYNC])
    operands: dict[Op, tuple[int, ...]] = {
        Op.WAIT: (bar, rng.randrange(2), 0),
        Op.WAIT_UNLESS: (rng.choice([FULL, EMPTY, SIDE]), rng.randrange(2), rng.randrange(2), 0),
        Op.ARRIVE: (bar, 1, 0, -1, 0),
        Op.EXPECT_TX: (bar, 16, 0),
        Op.COMPLETE_TX: (bar, 16, 0),
        Op.READ: (rng.choice([access, FAR]), -1),
        Op.WRITE: (rng.choice([access, FAR]), 0),
        Op.TRANSFER_READ: (engine, access, BYTES, -1),
        Op.TRANSFER_WRITE: (engine, access, BYTES, 0),
        Op.COMMIT: (engine, rng.choice([-1, bar])),
        Op.WAIT_GROUP: (engine, rng.choice([0, 1, 2])),
        Op.BAR_SYNC: (0, 64, 32),
        Op.CLUSTER_WAIT: (0,),
    }
    return (op, *operands[op])
