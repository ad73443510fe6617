"""Random small programs in which who completes a phase depends on the schedule, and with it which fence counts.

More arrivals come to a barrier than it takes, tries steer their agent over a fence or a write, and orders are drawn:
the phase that lets a reader go is completed by some of the arrivals, and these need not be the same in every schedule.
"""

import random

from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

Code = list[Operation]

_BYTES = 64
_MEET, _FULL, _SIDE = 1, 0, 1  # a named barrier; the contested mbarrier, and one that only tries ask
_RELAXED = semantics(Order.RELAXED)
_RELEASES = [Order.DEFAULT] * 5 + [Order.RELAXED]
_FENCES = [Fence.PROXY_ASYNC] * 4 + [Fence.ACQ_REL]


_BULK = int(Engine.BULK)
_OVERWRITE: Code = [(Op.TRANSFER_WRITE, _BULK, 0, _BYTES, 8), (Op.COMMIT, _BULK, -1), (Op.WAIT_GROUP, _BULK, 0)]


def contested(seed: int, *, overwrites: bool = False) -> Program:
    """The program of this seed: two to four agents arrive, one reads what the first of them has written.

    Or it ``overwrites``, through the other proxy, what the first of them has read.
    """
    rng = random.Random(seed)
    if rng.random() < 0.25:
        alone, reader = _writer(rng), _reader(rng)
        alone, reader = _overwriting(alone, reader) if overwrites else (alone, reader)
        return _assembled([alone, [(Op.ARRIVE, _SIDE, 1, 0, -1, 0), *reader]], 1)
    arrivers = rng.choice([2, 2, 3, 3, 4])
    count = rng.randint(1, arrivers)
    codes = [_arriver(rng, n, arrivers) for n in range(arrivers)]
    codes.append(_reader(rng))
    if overwrites:
        codes[0], codes[-1] = _overwriting(codes[0], codes[-1])
    return _assembled(codes, count)


def _overwriting(first: Code, reader: Code) -> tuple[Code, Code]:
    """Who wrote at first fences that and then reads; who read overwrites."""
    read: Code = [(Op.WRITE, 0, 7), (Op.FENCE, Fence.PROXY_ASYNC, 0), (Op.READ, 0, 7)]
    waits = [op for op in reader if op[0] in (Op.WAIT, Op.TRY_WAIT, Op.FENCE, Op.WAIT_UNLESS)]
    return [*read, *first[1:]], [*waits, *_OVERWRITE]


def _arriver(rng: random.Random, n: int, arrivers: int) -> Code:
    code: Code = [(Op.WRITE, 0, 7)] if n == 0 else []
    if rng.random() < 0.3:
        code += _fence(rng)
    code.append((Op.BAR_SYNC, _MEET, 32 * arrivers, 32))
    if rng.random() < 0.2:
        code.append((Op.ARRIVE, _SIDE, 1, 0, -1, 0))
    if rng.random() < 0.5:
        fence = _fence(rng)
        if rng.random() < 0.4:  # the fence is jumped over if the try says so
            code += [(Op.TRY_WAIT, _SIDE, 0, 0, 0), (Op.JUMP_IF, 0, rng.randint(0, 1), len(fence))]
        code += fence
    if n == 0 and rng.random() < 0.15:  # its bytes may complete the phase, and tell of nothing but themselves
        code.append((Op.ARRIVE, _FULL, 1, _BYTES, -1, semantics(rng.choice(_RELEASES), Scope.DEFAULT)))
        untold: Code = [(Op.WRITE, 0, 7), (Op.FENCE, Fence.PROXY_ASYNC, 0)]
        return [*code, *(untold if rng.random() < 0.5 else []), (Op.TMA_LOAD, _FULL, 1, _BYTES, 0, 0)]
    if rng.random() < 0.1:
        return [*code, *_order_fence(rng), *_order_fence(rng), (Op.ARRIVE, _FULL, 1, 0, -1, _RELAXED)]
    if rng.random() < 0.9:
        code.append((Op.ARRIVE, _FULL, 1, 0, -1, semantics(rng.choice(_RELEASES), Scope.DEFAULT)))
    return code


def _order_fence(rng: random.Random) -> Code:
    return [(Op.FENCE, Fence.ACQ_REL, semantics(scope=rng.choice([Scope.CTA, Scope.CLUSTER])))]


def _writer(rng: random.Random) -> Code:
    """The only one who arrives: it fences its write, unless a try steers it over the fence, or it forgets to."""
    fence: Code = [(Op.FENCE, Fence.PROXY_ASYNC, 0)] if rng.random() < 0.8 else []
    jump: Code = [(Op.TRY_WAIT, _SIDE, 0, 0, 0), (Op.JUMP_IF, 0, rng.randint(0, 1), rng.randint(0, len(fence)))]
    return [(Op.WRITE, 0, 7), *(jump if rng.random() < 0.7 else []), *fence, (Op.ARRIVE, _FULL, 1, 0, -1, 0)]


def _fence(rng: random.Random) -> Code:
    return [(Op.FENCE, rng.choice(_FENCES), semantics(scope=Scope.CTA))]


def _reader(rng: random.Random) -> Code:
    code: Code = [(Op.WAIT, _FULL, 0, semantics(rng.choice(_RELEASES), Scope.DEFAULT))]
    if rng.random() < 0.2:  # a fence behind a relaxed try that may answer for the wait
        fence = _order_fence(rng) if rng.random() < 0.7 else []
        code = [(Op.TRY_WAIT, _FULL, 0, 0, _RELAXED), *fence, (Op.WAIT_UNLESS, _FULL, 0, 0, 0)]
    if rng.random() < 0.6:
        engine = int(Engine.BULK)
        code += [(Op.TRANSFER_READ, engine, 0, _BYTES, 7), (Op.COMMIT, engine, -1), (Op.WAIT_GROUP, engine, 0)]
    else:
        code.append((Op.READ, 0, 7))
    return code


def _assembled(codes: list[Code], count: int) -> Program:
    agents = len(codes)
    start: Code = [(Op.INIT, _FULL, count), (Op.INIT, _SIDE, 1), (Op.FENCE, Fence.MBARRIER_INIT, 0)]
    meet: Code = [(Op.BAR_SYNC, 0, 32 * agents, 32)]
    whole = [[*(start if a == 0 else []), *meet, *code] for a, code in enumerate(codes)]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    counts = [len(agent) for agent in code]
    return Program(
        name="contested",
        params={},
        agents=tuple(Agent(0, a, ALL_LANES, f"r{a}", 0) for a in range(agents)),
        barriers=(Barrier(0, "full", 0), Barrier(0, "side", 0)),
        accesses=(Access(Space.SHARED, 0, 0, _BYTES), Access(Space.SHARED, 0, _BYTES, _BYTES)),
        tiles=(),
        code=code,
        lines=tuple(tuple(range(sum(counts[:a]), sum(counts[: a + 1]))) for a in range(agents)),
        sources=tuple(f"contested:{n}" for n in range(sum(counts))),
        named_barriers=((0, 0), (0, _MEET)),
        registers=1,
        smem_bytes=1024,
    )
