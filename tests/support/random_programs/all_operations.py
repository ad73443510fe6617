"""Random programs of every operation there is, with operands that are right and wrong: what no protocol would do.

The programs of ``rings`` look like protocols. These look like nothing; they are small, and together they take
every branch of every rule of the machine, with which a second implementation of those rules is compared.
"""

import random

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

BARRIERS, REGISTERS = 2, 2
_TOKEN_OPS = (Op.WAIT_STATE, Op.TEST_STATE, Op.PENDING_COUNT)


def random_operations(seed: int) -> Program:
    """The program of this seed: two or three agents in one or two CTAs, up to seven operations each."""
    rng = random.Random(seed)
    ctas = rng.choice([1, 1, 2])
    agents = rng.choice([2, 2, 3])
    ranks = [rng.randrange(ctas) for _ in range(agents)]
    style = rng.choice([_barriers, _tokens, _copies, _groups, _in_order, _meetings, _anything])
    codes = [[_op(rng, style(rng), ctas) for _ in range(rng.randint(0, 6))] for _ in range(agents)]
    for code in codes:
        for at in reversed(range(len(code))):
            if code[at][0] == Op.JUMP_IF:
                skip = min(code[at][3], len(code) - at - 1)
                code[at] = (Op.JUMP_IF, code[at][1], code[at][2], skip)
    inits = [(Op.INIT, bar, rng.choice([1, 1, 2, 3])) for bar in range(BARRIERS * ctas) if rng.random() < 0.95]
    writes = [(Op.WRITE, access, 0) for access in (0, 1, 3 * ctas)] if rng.random() < 0.7 else []
    meet = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
    if rng.random() < 0.9:
        codes = [[*([*inits, *writes] if a == 0 else []), *meet, *code] for a, code in enumerate(codes)]
    whole = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in codes)
    slots = [(0, 64), (64, 64), (32, 64)]  # the third lies across the other two
    return Program(
        name="operations",
        params={},
        agents=tuple(Agent(rank, a, ALL_LANES, f"r{a}", 0) for a, rank in enumerate(ranks)),
        barriers=tuple(Barrier(cta, "b", b) for cta in range(ctas) for b in range(BARRIERS)),
        accesses=tuple(
            Access(space, cta, *slot) for space in (Space.SHARED, Space.GLOBAL) for cta in range(ctas) for slot in slots
        ),
        tiles=(),
        code=whole,
        lines=tuple((0,) * len(agent) for agent in whole),
        sources=("operations:1",),
        named_barriers=((0, 0), (0, 1)),
        registers=REGISTERS,
        ctas=ctas,
        smem_bytes=1024,
    )


def _barriers(rng: random.Random) -> Op:
    return rng.choice([
        Op.ARRIVE, Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE, Op.EXPECT_TX, Op.COMPLETE_TX, Op.WAIT, Op.WAIT,
        Op.TRY_WAIT, Op.WAIT_UNLESS, Op.JUMP_IF, Op.TEST_WAIT, Op.INVAL, Op.INIT,
    ])  # fmt: skip


def _tokens(rng: random.Random) -> Op:
    return rng.choice([Op.ARRIVE, Op.ARRIVE, Op.ARRIVE_NO_COMPLETE, Op.WAIT, Op.WAIT_UNLESS, Op.JUMP_IF, *_TOKEN_OPS])


def _copies(rng: random.Random) -> Op:
    return rng.choice([Op.TMA_LOAD, Op.TMA_LOAD, Op.EXPECT_TX, Op.ARRIVE, Op.WAIT, Op.READ, Op.WRITE, Op.WORK])


def _groups(rng: random.Random) -> Op:
    return rng.choice([Op.TRANSFER_READ, Op.TRANSFER_WRITE, Op.COMMIT, Op.COMMIT, Op.WAIT_GROUP, Op.WAIT_GROUP,
                       Op.CP_ASYNC_ARRIVE, Op.WAIT, Op.WRITE, Op.READ])  # fmt: skip


def _in_order(rng: random.Random) -> Op:
    return rng.choice([Op.TRANSFER_WRITE, Op.TRANSFER_WRITE, Op.TRANSFER_READ, Op.COMMIT, Op.COMMIT_MULTICAST, Op.WAIT,
                       Op.READ])  # fmt: skip


def _meetings(rng: random.Random) -> Op:
    return rng.choice([Op.BAR_SYNC, Op.BAR_SYNC, Op.BAR_ARRIVE, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT, Op.ARRIVE, Op.WAIT,
                       Op.FENCE])  # fmt: skip


def _anything(rng: random.Random) -> Op:
    return rng.choice([op for op in Op if op not in (Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END)])


def _op(rng: random.Random, op: Op, ctas: int) -> Operation:
    """One operation with operands that are in range, and now and then absurd."""
    bar, access = rng.randrange(BARRIERS * ctas), rng.choice([0, 0, 1, 2, 3 * ctas, rng.randrange(6 * ctas)])
    own = rng.randrange(BARRIERS)
    into, item = rng.choice([-1, 0, 0, 1]), rng.choice([0, 0, 0, 1])
    absurd = rng.random() < 0.06
    count = rng.choice([0, 2, 3]) if absurd else 1
    nbytes = rng.choice([32, 0, MAX_COUNT, MAX_COUNT + 1]) if absurd else 64
    engine = rng.choice(list(Engine))
    mask = rng.choice([0, 0, *range(1, 1 << ctas)])
    operands: dict[Op, tuple[int, ...]] = {
        Op.INIT: (bar, rng.choice([1 << 20, 0]) if absurd else rng.choice([1, 2])),
        Op.INVAL: (bar,),
        Op.ARRIVE: (bar, count, rng.choice([0, 0, 0, nbytes]), into, 0),
        Op.ARRIVE_DROP: (bar, count, rng.choice([0, 0, 0, nbytes]), into, 0),
        Op.ARRIVE_NO_COMPLETE: (bar, count, into, 0),
        Op.EXPECT_TX: (bar, nbytes, 0),
        Op.COMPLETE_TX: (bar, nbytes, 0),
        Op.WAIT: (bar, rng.randrange(2), 0),
        Op.WAIT_UNLESS: (bar, rng.randrange(2), into, 0),
        Op.TRY_WAIT: (bar, rng.randrange(2), into, 0),
        Op.TEST_WAIT: (bar, rng.randrange(2), into, 0),
        Op.WAIT_STATE: (bar, rng.randrange(REGISTERS), 0),
        Op.TEST_STATE: (bar, rng.randrange(REGISTERS), into, 0),
        Op.PENDING_COUNT: (rng.randrange(REGISTERS), into),
        Op.CP_ASYNC_ARRIVE: (bar, MAX_COUNT if absurd else rng.choice([1, 1, 2]), rng.randrange(2)),
        Op.BAR_SYNC: (rng.randrange(2), rng.choice([96, 50]) if absurd else 64, 32),
        Op.BAR_ARRIVE: (rng.randrange(2), 96 if absurd else 64, rng.choice([32, 64]) if absurd else 32),
        Op.CLUSTER_ARRIVE: (0,),
        Op.CLUSTER_WAIT: (0,),
        Op.FENCE: (0, 0),
        Op.TMA_LOAD: (own if mask else bar, access % 3 if mask else access, nbytes, item, mask),
        Op.TRANSFER_READ: (engine, access, 64, rng.choice([-1, item])),
        Op.TRANSFER_WRITE: (engine, access, 64, item),
        Op.COMMIT: (engine, rng.choice([-1, -1, bar])),
        Op.WAIT_GROUP: (engine, rng.choice([0, 0, 1])),
        Op.ENGINE_WORK: (engine, 5),
        Op.COMMIT_MULTICAST: (engine, own, max(mask, 1)),
        Op.READ: (access, rng.choice([-1, item])),
        Op.WRITE: (access, item),
        Op.WORK: (5,),
        Op.JUMP_IF: (rng.randrange(REGISTERS), rng.randrange(2), rng.randrange(3)),
        Op.SETMAXNREG: (40,),
    }
    return (op, *operands[op])
