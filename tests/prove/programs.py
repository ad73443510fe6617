"""Random small programs, right ones and mutated ones, on which the engines of the proof judge each other.

A right one is a ring of one or two hand-overs: copies, plain writes, commits of MMAs, an expectation apart from its
arrival, tries, two consumers, a named barrier, or a consumer in another CTA. A mutation drops, doubles or exchanges
operations, or changes a parity, a barrier, a count or bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from pipesim.model.ops import OPERANDS, Engine, Fence, Op, Operation, Space
from pipesim.model.program import ALL_LANES, Access, Agent, Barrier, Program, Tile

BYTES = 64
Code = list[tuple[int, ...]]


def program(seed: int, *, mutated: float = 0.6) -> Program:
    """The program of this seed."""
    rng = random.Random(seed)
    stages, tiles, consumers = rng.choice([1, 1, 2, 2, 3]), rng.randint(1, 5), rng.choice([1, 1, 2])
    remote = rng.random() < 0.15  # the consumers run in CTA 1
    codes = [_producer(rng, stages, tiles), *(_consumer(stages, tiles, remote=remote) for _ in range(consumers))]
    inits = [(Op.INIT, s, 1) for s in range(stages)] + [(Op.INIT, stages + s, consumers) for s in range(stages)]
    if not remote and rng.random() < 0.2:
        for code in codes:
            code.insert(rng.randint(0, len(code)), (Op.BAR_SYNC, 1, 32 * len(codes), 32))
    if rng.random() < mutated:
        for _ in range(rng.choice([1, 1, 2])):
            _mutate(rng, rng.choice(codes), 2 * stages, stages)
    if rng.random() < 0.05:
        inits[rng.randrange(len(inits))] = (Op.INIT, rng.randrange(2 * stages), 2)
    return _assembled(inits, codes, stages, remote=remote)


def _producer(rng: random.Random, stages: int, tiles: int) -> Code:
    fill = rng.choice([_copy, _copy, _split, _split_late, _write, _mma])
    tries = rng.random() < 0.3
    code: Code = []
    for item in range(tiles):
        stage, parity = item % stages, (item // stages & 1) ^ 1
        if tries and rng.random() < 0.7:
            code += [
                (Op.TRY_WAIT, stages + stage, parity, 0, 0),
                (Op.WAIT_UNLESS, stages + stage, parity, 0, 0),
            ]
        else:
            code.append((Op.WAIT, stages + stage, parity, 0))
        code += fill(stage, item)
    return code


def _copy(stage: int, item: int) -> Code:
    return [(Op.ARRIVE, stage, 1, BYTES, -1, 0), (Op.TMA_LOAD, stage, stage, BYTES, item, 0)]


def _split(stage: int, item: int) -> Code:
    expect, arrive = (Op.EXPECT_TX, stage, BYTES, 0), (Op.ARRIVE, stage, 1, 0, -1, 0)
    return [expect, arrive, (Op.TMA_LOAD, stage, stage, BYTES, item, 0)]


def _split_late(stage: int, item: int) -> Code:
    expect, arrive, copy = _split(stage, item)
    return [copy, expect, arrive]


def _write(stage: int, item: int) -> Code:
    return [(Op.WRITE, stage, item), (Op.ARRIVE, stage, 1, 0, -1, 0)]


def _mma(stage: int, item: int) -> Code:
    engine = int(Engine.TCGEN05)
    return [(Op.TRANSFER_WRITE, engine, stage, BYTES, item), (Op.COMMIT, engine, stage)]


def _consumer(stages: int, tiles: int, *, remote: bool) -> Code:
    """In another CTA it waits for its own barriers, which the producer signals, and arrives on the producer's."""
    code: Code = []
    for item in range(tiles):
        stage, parity = item % stages, item // stages & 1
        code += [(Op.WAIT, stage, parity, 0), (Op.READ, stage, item), (Op.ARRIVE, stages + stage, 1, 0, -1, 0)]
    return code if not remote else [op for op in code if op[0] != Op.READ]


def _mutate(rng: random.Random, code: Code, barriers: int, slots: int) -> None:
    if not code:
        return
    at = rng.randrange(len(code))
    change = rng.choice(_CHANGES)
    change(rng, code, at, barriers, slots)


def _drop(_: random.Random, code: Code, at: int, __: int, ___: int) -> None:
    del code[at]


def _double(_: random.Random, code: Code, at: int, __: int, ___: int) -> None:
    code.insert(at, code[at])


def _exchange(_: random.Random, code: Code, at: int, __: int, ___: int) -> None:
    if at + 1 < len(code):
        code[at], code[at + 1] = code[at + 1], code[at]


def _flip_parity(rng: random.Random, code: Code, at: int, __: int, ___: int) -> None:
    _operand(code, at, {"parity": lambda old: old ^ 1})


def _other_barrier(rng: random.Random, code: Code, at: int, barriers: int, ___: int) -> None:
    _operand(code, at, {"barrier": lambda _: rng.randrange(barriers)})


def _other_bytes(rng: random.Random, code: Code, at: int, __: int, ___: int) -> None:
    def other(old: int) -> int:
        return rng.choice([BYTES // 2, BYTES + 16, 2 * BYTES]) if old else old

    _operand(code, at, {"expect": other, "bytes": other})


def _insert(rng: random.Random, code: Code, at: int, barriers: int, slots: int) -> None:
    bar = rng.randrange(barriers)
    code.insert(
        at,
        rng.choice([
            (Op.EXPECT_TX, bar, BYTES, 0), (Op.ARRIVE, bar, 1, 0, -1, 0), (Op.READ, rng.randrange(slots), -1),
            (Op.COMPLETE_TX, bar, BYTES, 0), (Op.WAIT, bar, rng.randrange(2), 0),
        ]),
    )  # fmt: skip


_CHANGES = (_drop, _double, _exchange, _flip_parity, _other_barrier, _other_bytes, _insert)


def _operand(code: Code, at: int, changes: dict[str, Callable[[int], int]]) -> None:
    """Change the first operand of one of these names, if the operation has one."""
    names = OPERANDS[Op(code[at][0])]
    for place, name in enumerate(names, 1):
        if name in changes:
            operation = list(code[at])
            operation[place] = changes[name](operation[place])
            code[at] = tuple(operation)
            return


def _assembled(inits: Code, codes: list[Code], stages: int, *, remote: bool) -> Program:
    """The program behind the usual prologue. With ``remote`` the agents but the first are CTA 1, and so is ``full``."""
    threads = 32 * len(codes)
    meet: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)] if remote else [(Op.BAR_SYNC, 0, threads, 32)]
    publish: Code = [*inits, (Op.FENCE, Fence.MBARRIER_INIT, 0)]
    whole = [
        [*(publish if agent == 0 else []), *meet, *code, *(meet if remote else [])] for agent, code in enumerate(codes)
    ]
    code: tuple[tuple[Operation, ...], ...] = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    ranks = [int(remote and agent > 0) for agent in range(len(codes))]
    return Program(
        name="random",
        params={},
        agents=tuple(Agent(rank, agent, ALL_LANES, f"r{agent}", 0) for agent, rank in enumerate(ranks)),
        barriers=tuple(Barrier(int(remote and b < stages), "b", b) for b in range(2 * stages)),
        accesses=tuple(Access(Space.SHARED, 0, BYTES * s, BYTES) for s in range(stages)),
        tiles=(Tile("t", Space.SHARED, 0, 0, BYTES, stages),),
        code=code,
        lines=tuple(tuple(range(len(agent))) for agent in code),
        sources=tuple(f"random:{n}" for n in range(1, max(map(len, code)) + 1)),
        named_barriers=((0, 0), (0, 1)),
        registers=1,
        ctas=2 if remote else 1,
        smem_bytes=1024,
    )
