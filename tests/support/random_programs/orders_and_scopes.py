"""Random small programs whose orders, scopes and fences are drawn, too: right, weak and racy ones alike."""

import random
from collections.abc import Iterator

from pipesim.model.ops import OPERANDS, Engine, Fence, Op, Operation, Order, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

BYTES = 64
BESIDE = 2  #: an access beside the stages
Code = list[Operation]

_RELEASES = [Order.DEFAULT] * 5 + [Order.RELEASE, Order.RELAXED]
_ACQUIRES = [Order.DEFAULT] * 5 + [Order.ACQUIRE, Order.RELAXED]
_SCOPES = [Scope.DEFAULT] * 4 + [Scope.CLUSTER] * 2 + [Scope.CTA]
_FENCE_SCOPES = [Scope.CLUSTER, Scope.CTA]
_FENCES = [Fence.PROXY_ASYNC, Fence.PROXY_ASYNC, Fence.ACQ_REL, Fence.SC, Fence.MBARRIER_INIT]


def random_orders(seed: int) -> Program:
    """The program of this seed: a ring between a producer and one or two consumers, perhaps in another CTA."""
    rng = random.Random(seed)
    stages, tiles, consumers = rng.choice([1, 1, 2]), rng.randint(1, 4), rng.choice([1, 1, 2])
    remote = rng.random() < 0.35
    codes = [_producer(rng, stages, tiles), *(_consumer(rng, stages, tiles) for _ in range(consumers))]
    for code in codes:
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            code.insert(rng.randint(0, len(code)), _fence(rng))
        if rng.random() < 0.3 and code:
            at = rng.randrange(len(code))
            if rng.choice([True, False]):
                code.pop(at)
            else:
                code.insert(at, code[at])
    tensor = rng.random() < 0.8 and not any(_is_of_shared_memory(op) for code in codes for op in code)
    if tensor:
        codes = [[*_with_tensor_fences(rng, code)] for code in codes]
    if rng.random() < 0.3 and not remote:
        for code in codes:
            code.insert(rng.randint(0, len(code)), (Op.BAR_SYNC, 1, 32 * len(codes), 32))
    if rng.random() < 0.4:
        codes = [[_as_written_by_default(op) for op in code] for code in codes]
    return _assembled(rng, codes, stages, consumers, remote=remote, tensor=tensor)


def _is_of_shared_memory(op: Operation) -> bool:
    transfers = op[0] in (Op.TRANSFER_READ, Op.TRANSFER_WRITE) and op[1] != Engine.TCGEN05
    return transfers or op[0] in (Op.TMA_LOAD, Op.CP_ASYNC_ARRIVE)


_BEFORE_AND_AFTER = (Fence.TCGEN05_BEFORE, Fence.TCGEN05_AFTER)


def _with_tensor_fences(rng: random.Random, code: Code) -> Iterator[Operation]:
    """The same on tensor memory: most of its fences are there, perhaps of the wrong kind."""
    before, after = rng.choice([_BEFORE_AND_AFTER] * 3 + [_BEFORE_AND_AFTER[:1] * 2, _BEFORE_AND_AFTER[1:] * 2])
    most = rng.choice([0.0, 0.6, 1.0, 1.0])
    for op in code:
        if op[0] == Op.ARRIVE and rng.random() < most:
            yield (Op.FENCE, before, 0)
        yield op
        if op[0] in (Op.WAIT, Op.WAIT_UNLESS) and rng.random() < most:
            yield (Op.FENCE, after, 0)


def _as_written_by_default(op: Operation) -> Operation:
    """The operation without an order and a scope, unless it is a fence."""
    return (*op[:-1], 0) if OPERANDS[Op(op[0])][-1] == "semantics" and op[0] != Op.FENCE else op


def _fence(rng: random.Random) -> Operation:
    return (Op.FENCE, rng.choice(_FENCES), semantics(scope=rng.choice(_SCOPES)))


def _release(rng: random.Random) -> int:
    return semantics(rng.choice(_RELEASES), rng.choice(_SCOPES))


def _acquire(rng: random.Random) -> int:
    return semantics(rng.choice(_ACQUIRES), rng.choice(_SCOPES))


def _wait(rng: random.Random, bar: int, parity: int) -> Code:
    if rng.random() < 0.2:
        fences = [_order_fence(rng) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        weak = semantics(Order.RELAXED, rng.choice(_SCOPES)) if fences else _acquire(rng)
        return [(Op.TRY_WAIT, bar, parity, 0, weak), *fences, (Op.WAIT_UNLESS, bar, parity, 0, _acquire(rng))]
    if rng.random() < 0.1:  # fences of unlike scopes compensate for a relaxed wait
        return [(Op.WAIT, bar, parity, semantics(Order.RELAXED, rng.choice(_SCOPES))), *_order_fences(rng)]
    return [(Op.WAIT, bar, parity, _acquire(rng))]


def _order_fence(rng: random.Random) -> Operation:
    return (Op.FENCE, rng.choice([Fence.ACQ_REL, Fence.SC]), semantics(scope=rng.choice(_FENCE_SCOPES)))


def _order_fences(rng: random.Random) -> Code:
    return [_order_fence(rng) for _ in range(rng.choice([1, 2, 2]))]


def _arrive(rng: random.Random, bar: int, expect: int = 0) -> Code:
    """An arrival, or a relaxed one behind fences of its own."""
    if rng.random() < 0.1:
        relaxed = semantics(Order.RELAXED, rng.choice(_SCOPES))
        return [*_order_fences(rng), (Op.ARRIVE, bar, 1, expect, -1, relaxed)]
    return [(Op.ARRIVE, bar, 1, expect, -1, _release(rng))]


def _producer(rng: random.Random, stages: int, tiles: int) -> Code:
    fill = rng.choice(["copy", "copy", "write", "write", "cp", "mma"])
    code: Code = []
    for item in range(tiles):
        s, parity = item % stages, (item // stages & 1) ^ 1
        code += _wait(rng, stages + s, parity)
        if fill == "copy":
            code += _copy(rng, s, item)
        elif fill == "write":
            code += [(Op.WRITE, s, item), *_maybe(rng, Fence.PROXY_ASYNC), *_arrive(rng, s)]
        elif fill == "cp":
            engine = int(Engine.CP_ASYNC)
            code.append((Op.TRANSFER_WRITE, engine, s, BYTES, item))
            if rng.random() < 0.5:
                code += [(Op.COMMIT, engine, -1), (Op.WAIT_GROUP, engine, 0), *_maybe(rng, Fence.PROXY_ASYNC)]
                code.append((Op.ARRIVE, s, 1, 0, -1, _release(rng)))
            else:
                code.append((Op.CP_ASYNC_ARRIVE, s, 1, 1))
        else:
            code += [(Op.TRANSFER_WRITE, Engine.TCGEN05, s, BYTES, item), (Op.COMMIT, Engine.TCGEN05, s)]
    return code


def _copy(rng: random.Random, s: int, item: int) -> Code:
    """A copy behind its arrival; or one whose bytes alone could tell of what its agent does between the two."""
    copy: Operation = (Op.TMA_LOAD, s, s, BYTES, item, 0)
    arrive, kind = _arrive(rng, s, BYTES), rng.random()
    if kind < 0.2:
        return [*arrive, (Op.WRITE, BESIDE, item), (Op.FENCE, Fence.PROXY_ASYNC, 0), copy]
    if kind < 0.25:
        return [(Op.WRITE, BESIDE, item), *arrive, copy]
    return [*arrive, copy]


def _maybe(rng: random.Random, fence: Fence) -> Code:
    return [(Op.FENCE, fence, 0)] if rng.random() < 0.5 else []


def _consumer(rng: random.Random, stages: int, tiles: int) -> Code:
    use = rng.choice(["read", "read", "in place", "store", "store"])
    beside = rng.random() < 0.5
    code: Code = []
    for item in range(tiles):
        s, parity = item % stages, item // stages & 1
        code += _wait(rng, s, parity)
        if use in ("read", "in place"):
            code.append((Op.READ, s, item))
        if beside:
            code.append((Op.READ, BESIDE, -1))
        if use == "in place":
            code += [(Op.WRITE, s, item), *_maybe(rng, Fence.PROXY_ASYNC)]
        if use == "store":
            code += [
                *_maybe(rng, Fence.PROXY_ASYNC),
                (Op.TRANSFER_READ, Engine.BULK, s, BYTES, item),
                (Op.COMMIT, Engine.BULK, -1),
                (Op.WAIT_GROUP, Engine.BULK, rng.choice([0, 0, 1])),
            ]
        code += _arrive(rng, stages + s)
    return code


def _assembled(
    rng: random.Random, codes: list[Code], stages: int, consumers: int, *, remote: bool, tensor: bool
) -> Program:
    """Behind a prologue that may lack its fence. With ``remote`` the consumers and ``full`` are CTA 1's."""
    inits: Code = [(Op.INIT, s, 1) for s in range(stages)]
    inits += [(Op.INIT, stages + s, consumers) for s in range(stages)]
    fence: Code = [(Op.FENCE, Fence.MBARRIER_INIT, 0)] if rng.random() < 0.6 else []
    relaxed = semantics(rng.choice([Order.DEFAULT, Order.RELAXED]), Scope.CLUSTER)
    meet: Code = (
        [(Op.CLUSTER_ARRIVE, relaxed), (Op.CLUSTER_WAIT, 0)] if remote else [(Op.BAR_SYNC, 0, 32 * len(codes), 32)]
    )
    end: Code = meet if remote else []
    if fence and rng.random() < 0.2:  # by another agent, when it has learned of the inits
        begin = [[*(inits if a == 0 else []), *meet] for a in range(len(codes))]
        begin = [[*first, *(fence if a == 1 else []), *meet] for a, first in enumerate(begin)]
    else:
        begin = [[*([*inits, *fence] if a == 0 else []), *meet] for a in range(len(codes))]
    whole = [[*first, *code, *end] for first, code in zip(begin, codes, strict=True)]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    counts = [len(agent) for agent in code]
    return Program(
        name=f"orders {rng.random()}",
        params={},
        agents=tuple(Agent(int(remote and a > 0), 4 * a, ALL_LANES, f"r{a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(int(remote and b < stages), "b", b) for b in range(2 * stages)),
        accesses=tuple(
            Access(Space.TENSOR if tensor else Space.SHARED, 0, BYTES * s, BYTES) for s in range(BESIDE + 1)
        ),
        tiles=(),
        code=code,
        lines=tuple(tuple(range(sum(counts[:a]), sum(counts[: a + 1]))) for a in range(len(codes))),
        sources=tuple(f"orders:{n}" for n in range(sum(counts))),
        named_barriers=((0, 0), (0, 1)),
        registers=1,
        ctas=2 if remote else 1,
        smem_bytes=1024,
    )
