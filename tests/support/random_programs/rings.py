"""Random small programs, right ones and mutated ones, on which the engines of the proof judge each other.

A right one is a ring of hand-overs, in one CTA, to consumers in another, or by multicast to both. How the producer
fills a slot, how agents wait and how consumers read it are drawn at random: ``_FILLS``, ``_WAITS``, ``_READS``.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pipesim.model.ops import OPERANDS, Engine, Fence, Op, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier, Tile

BYTES = 64
TRY, TOKEN = 0, 1  #: registers
Code = list[tuple[int, ...]]


@dataclass
class Ring:
    """The shape of a program: where its agents are, how many slots and hand-overs, and its barriers' counts."""

    stages: int
    tiles: int
    ctas: int
    multicast: bool
    ranks: list[int]
    joins: bool
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def barriers(self) -> list[Barrier]:
        """``full`` and ``empty`` of every slot in every CTA, and one at which all agents can meet."""
        ring = [
            Barrier(cta, name, s) for cta in range(self.ctas) for name in ("full", "empty") for s in range(self.stages)
        ]
        return [*ring, Barrier(0, "join", 0)] if self.joins else ring

    @property
    def accesses(self) -> list[Access]:
        """Every slot, then the halves of every slot, in CTA 0 and then in CTA 1."""
        return [
            Access(Space.SHARED, cta, BYTES * s + part, size)
            for cta in range(self.ctas)
            for parts in (((0, BYTES),), ((0, BYTES // 2), (BYTES // 2, BYTES // 2)))
            for s in range(self.stages)
            for part, size in parts
        ]

    def full(self, item: int, cta: int = 0) -> int:
        return cta * 2 * self.stages + item % self.stages

    def empty(self, item: int) -> int:
        """The producer, in CTA 0, waits for it wherever the consumers are."""
        return self.stages + item % self.stages

    def slot(self, item: int, cta: int = 0) -> int:
        return cta * 3 * self.stages + item % self.stages

    def halves(self, item: int, cta: int = 0) -> list[int]:
        first = cta * 3 * self.stages + self.stages + 2 * (item % self.stages)
        return [first, first + 1]

    def parity(self, item: int) -> int:
        return item // self.stages & 1


def random_ring(seed: int, *, mutated: float = 0.5) -> Program:
    """The program of this seed."""
    rng = random.Random(seed)
    ring = _shape(rng)
    codes = [_producer(rng, ring), *(_consumer(rng, ring, rank) for rank in ring.ranks[1:])]
    if rng.random() < 0.25:
        _named(rng, codes, ring)
    if ring.joins:
        meeting = len(ring.barriers) - 1
        for code in codes:
            code += [(Op.ARRIVE, meeting, 1, 0, TOKEN, 0), (Op.WAIT_STATE, meeting, TOKEN, 0)] * (1 + seed % 2)
        if rng.random() < 0.3:  # one completes another phase, which others may not have looked for
            rng.choice(codes).extend([(Op.ARRIVE, meeting, 1, 0, -1, 0)] * len(codes))
    inits = _inits(ring)
    if rng.random() < mutated:
        for _ in range(rng.choice([1, 1, 2])):
            _mutate(rng, inits if rng.random() < 0.1 else rng.choice(codes), ring)
        stays = rng.random() < 0.9
    else:
        stays = True
    return _assembled(inits, codes, ring, stays=stays)


def _shape(rng: random.Random) -> Ring:
    where = rng.choice(["one", "one", "one", "remote", "multicast"])
    consumers = {"one": rng.choice([1, 1, 2]), "remote": 1, "multicast": 2}[where]
    ranks = {"one": [0] * (1 + consumers), "remote": [0, 1], "multicast": [0, 0, 1]}[where]
    ring = Ring(rng.choice([1, 1, 2, 2, 3]), rng.randint(1, 5 if where == "one" and consumers == 1 else 3),
                1 if where == "one" else 2, where == "multicast", ranks, rng.random() < 0.05)  # fmt: skip
    for s in range(ring.stages):
        for cta in range(ring.ctas):
            ring.counts[ring.full(s, cta)] = 1
        ring.counts[ring.empty(s)] = consumers
    if ring.joins:
        ring.counts[len(ring.barriers) - 1] = len(ranks)
    return ring


def _producer(rng: random.Random, ring: Ring) -> Code:
    fill = _multicast if ring.multicast else rng.choice(_FILLS if ring.ctas == 1 else _REMOTE_FILLS)
    wait, plain = rng.choice(_WAITS), rng.random()
    code: Code = []
    for item in range(ring.tiles):
        how = wait if rng.random() < plain else _wait
        code += how(ring.empty(item), ring.parity(item) ^ 1)
        code += fill(ring, item, ring.ranks[-1])
    return code


def _consumer(rng: random.Random, ring: Ring, rank: int) -> Code:
    reads = _READS if ring.ctas == 1 else _CLUSTER_READS if ring.multicast else [_read, _read_any]
    wait, read = rng.choice(_WAITS), rng.choice(reads)
    if read is _stored_late and ring.stages == 1:
        read = _stored
    rank = rank if ring.ctas == 2 else 0
    if read is not _stored_late:
        code: Code = []
        for item in range(ring.tiles):
            code += wait(ring.full(item, rank), ring.parity(item))
            code += read(ring, item, rank)
        return code
    code = []
    for item in range(ring.tiles):
        code += wait(ring.full(item, rank), ring.parity(item))
        code += _stored_late(ring, item, rank)
        if item:
            code += [(Op.WAIT_GROUP, Engine.BULK, 1), (Op.ARRIVE, ring.empty(item - 1), 1, 0, -1, 0)]
    return [*code, (Op.WAIT_GROUP, Engine.BULK, 0), (Op.ARRIVE, ring.empty(ring.tiles - 1), 1, 0, -1, 0)]


def _wait(barrier: int, parity: int) -> Code:
    return [(Op.WAIT, barrier, parity, 0)]


def _tried(barrier: int, parity: int) -> Code:
    return [(Op.TRY_WAIT, barrier, parity, TRY, 0), (Op.WAIT_UNLESS, barrier, parity, TRY, 0)]


def _tested(barrier: int, parity: int) -> Code:
    """A try, and a branch round the wait."""
    return [(Op.TEST_WAIT, barrier, parity, TRY, 0), (Op.JUMP_IF, TRY, 1, 1), (Op.WAIT, barrier, parity, 0)]


def _expects(ring: Ring, item: int, to: int, nbytes: int = BYTES) -> tuple[int, ...]:
    return (Op.ARRIVE, ring.full(item, to), 1, nbytes, -1, 0)


def _copy(ring: Ring, item: int, to: int) -> Code:
    return [_expects(ring, item, to), (Op.TMA_LOAD, ring.full(item, to), ring.slot(item), BYTES, item, 0)]


def _in_pieces(ring: Ring, item: int, to: int) -> Code:
    halves = ring.halves(item)
    return [_expects(ring, item, to),
            *((Op.TMA_LOAD, ring.full(item, to), half, BYTES // 2, item, 0) for half in halves)]  # fmt: skip


def _split(ring: Ring, item: int, to: int) -> Code:
    full = ring.full(item, to)
    return [(Op.EXPECT_TX, full, BYTES, 0), (Op.ARRIVE, full, 1, 0, -1, 0),
            (Op.TMA_LOAD, full, ring.slot(item), BYTES, item, 0)]  # fmt: skip


def _split_late(ring: Ring, item: int, to: int) -> Code:
    expect, arrive, copy = _split(ring, item, to)
    return [copy, expect, arrive]


def _expected_between(ring: Ring, item: int, to: int) -> Code:
    """Half of the bytes is expected apart, the other half with the arrival; the copies come in two pieces."""
    full, halves = ring.full(item, to), ring.halves(item)
    return [(Op.TMA_LOAD, full, halves[0], BYTES // 2, item, 0), (Op.EXPECT_TX, full, BYTES // 2, 0),
            _expects(ring, item, to, BYTES // 2), (Op.TMA_LOAD, full, halves[1], BYTES // 2, item, 0)]  # fmt: skip


def _write(ring: Ring, item: int, to: int) -> Code:
    return [
        (Op.WRITE, ring.slot(item), item),
        (Op.FENCE, Fence.PROXY_ASYNC, 0),
        (Op.ARRIVE, ring.full(item, to), 1, 0, -1, 0),
    ]


def _mma(ring: Ring, item: int, to: int) -> Code:
    return [
        (Op.TRANSFER_WRITE, Engine.TCGEN05, ring.slot(item), BYTES, item),
        (Op.COMMIT, Engine.TCGEN05, ring.full(item, to)),
    ]


def _cp_async(ring: Ring, item: int, to: int) -> Code:
    first = (Op.TRANSFER_WRITE, Engine.CP_ASYNC, ring.slot(item), BYTES, item)
    return [first, (Op.CP_ASYNC_ARRIVE, ring.full(item, to), 1, 1)]


def _cp_async_counted(ring: Ring, item: int, to: int) -> Code:
    """Without noinc: the copy's arrival is one more, and an ordinary one follows."""
    first = (Op.TRANSFER_WRITE, Engine.CP_ASYNC, ring.slot(item), BYTES, item)
    full = ring.full(item, to)
    return [first, (Op.CP_ASYNC_ARRIVE, full, 1, 0), (Op.ARRIVE, full, 1, 0, -1, 0)]


def _multicast(ring: Ring, item: int, to: int) -> Code:
    both = [_expects(ring, item, cta) for cta in range(2)]
    return [*both, (Op.TMA_LOAD, ring.full(item), ring.slot(item), BYTES, item, 3)]


def _read(ring: Ring, item: int, rank: int) -> Code:
    return [(Op.READ, _at(ring, item, rank), item), (Op.ARRIVE, ring.empty(item), 1, 0, -1, 0)]


def _read_any(ring: Ring, item: int, rank: int) -> Code:
    return [(Op.READ, _at(ring, item, rank), -1), (Op.ARRIVE, ring.empty(item), 1, 0, -1, 0)]


def _multiplied(ring: Ring, item: int, rank: int) -> Code:
    read = (Op.TRANSFER_READ, Engine.TCGEN05, _at(ring, item, rank), BYTES, item)
    return [read, (Op.COMMIT, Engine.TCGEN05, ring.empty(item))]


def _stored(ring: Ring, item: int, rank: int) -> Code:
    return [
        *_stored_late(ring, item, rank),
        (Op.WAIT_GROUP, Engine.BULK, 0),
        (Op.ARRIVE, ring.empty(item), 1, 0, -1, 0),
    ]


def _stored_late(ring: Ring, item: int, rank: int) -> Code:
    """A bulk store; the slot is given back one hand-over later."""
    return [(Op.TRANSFER_READ, Engine.BULK, _at(ring, item, rank), BYTES, item), (Op.COMMIT, Engine.BULK, -1)]


def _at(ring: Ring, item: int, rank: int) -> int:
    """Its own CTA's copy of a slot; without a multicast there is only the producer's."""
    return ring.slot(item, rank if ring.multicast else 0)


_Fill = Callable[[Ring, int, int], Code]
_Wait = Callable[[int, int], Code]
_WAITS: list[_Wait] = [*[_wait] * 7, *[_tried] * 4, _tested]
_REMOTE_FILLS: list[_Fill] = [_copy, _split, _write, _mma]
_FILLS: list[_Fill] = [
    _copy,
    _in_pieces,
    _split,
    _split_late,
    _expected_between,
    _write,
    _mma,
    _cp_async,
    _cp_async_counted,
]
_CLUSTER_READS: list[_Fill] = [_read, _read, _read_any, _stored, _stored_late]
_READS: list[_Fill] = [_read, _read, _read, _read_any, _multiplied, _stored, _stored_late]


def _named(rng: random.Random, codes: list[Code], ring: Ring) -> None:
    """All agents of CTA 0 meet at a named barrier; one of them may only arrive."""
    here = [code for code, rank in zip(codes, ring.ranks, strict=True) if rank == 0]
    alone = rng.randrange(len(here)) if rng.random() < 0.3 else -1
    where = rng.choice(["first", "last", "anywhere"])
    for n, code in enumerate(here):
        at = {"first": 0, "last": len(code), "anywhere": rng.randint(0, len(code))}[where]
        code.insert(at, (Op.BAR_ARRIVE if n == alone else Op.BAR_SYNC, 1, 32 * len(here), 32))


def _inits(ring: Ring) -> Code:
    return [(Op.INIT, barrier, count) for barrier, count in sorted(ring.counts.items())]


def _mutate(rng: random.Random, code: Code, ring: Ring) -> None:
    """Make one mistake in ``code``, which may have no effect."""
    if not code:
        return
    at = rng.randrange(len(code))
    match rng.choice([0, 1, 2, 2, 2, 3, 4, 4]):
        case 0:
            del code[at]
        case 1:
            code.insert(at, code[at])
        case 2:
            other = rng.randrange(len(code)) if rng.random() < 0.3 else min(at + 1, len(code) - 1)
            code[at], code[other] = code[other], code[at]
        case 3:
            code.insert(at, _another(rng, len(ring.barriers), len(ring.accesses)))
        case _:
            _other_operand(rng, code, at, ring)
    _mend_jumps(code)


def _another(rng: random.Random, barriers: int, accesses: int) -> tuple[int, ...]:
    bar = rng.randrange(barriers)
    return rng.choice([
        (Op.EXPECT_TX, bar, BYTES, 0), (Op.ARRIVE, bar, 1, 0, -1, 0), (Op.READ, rng.randrange(accesses), -1),
        (Op.COMPLETE_TX, bar, BYTES, 0), (Op.WAIT, bar, rng.randrange(2), 0), (Op.ARRIVE_DROP, bar, 1, 0, -1, 0),
        (Op.WRITE, rng.randrange(accesses), 7), (Op.TRY_WAIT, bar, rng.randrange(2), 0, 0),
    ])  # fmt: skip


def _other_operand(rng: random.Random, code: Code, at: int, ring: Ring) -> None:
    """Change one operand of the operation, if it has one that can be wrong."""
    names = OPERANDS[Op(code[at][0])]
    values = {
        "parity": [0, 1],
        "barrier": list(range(len(ring.barriers))),
        "bytes": [BYTES // 2, BYTES, BYTES + 16, 2 * BYTES],
        "expect": [0, BYTES // 2, BYTES, BYTES + 16, 2 * BYTES],
        "count": [1, 2, 3],
        "access": list(range(len(ring.accesses))),
        "groups": [0, 1, 2],
        "noinc": [0, 1],
        "threads": [32, 64, 96],
    }
    if code[at][0] == Op.TRANSFER_READ:  # an engine reads the memory of its own CTA
        own = code[at][2] // (3 * ring.stages) * 3 * ring.stages
        values["access"] = list(range(own, own + 3 * ring.stages))
    wrong = [n for n in names if n in values]
    if code[at][0] == Op.TMA_LOAD and code[at][5]:
        wrong = ["bytes"]  # what a multicast names must exist in every CTA
    if wrong:
        name = rng.choice(wrong)
        operation = list(code[at])
        operation[1 + names.index(name)] = rng.choice(values[name])
        code[at] = tuple(operation)


def _mend_jumps(code: Code) -> None:
    """A jump may not lead out of the program."""
    for at, op in enumerate(code):
        if op[0] == Op.JUMP_IF:
            code[at] = (*op[:3], min(op[3], len(code) - at - 1))


def _assembled(inits: Code, codes: list[Code], ring: Ring, *, stays: bool) -> Program:
    """The program between the usual prologue and, in a cluster that ``stays``, the barrier that keeps it alive."""
    cluster: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
    meet: Code = cluster if ring.ctas == 2 else [(Op.BAR_SYNC, 0, 32 * len(codes), 32)]
    part: Code = cluster if ring.ctas == 2 and stays else []
    publish: Code = [*inits, (Op.FENCE, Fence.MBARRIER_INIT, 0)]
    whole = [[*(publish if agent == 0 else []), *meet, *code, *part] for agent, code in enumerate(codes)]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    tiles = (Tile("t", Space.SHARED, cta, 0, BYTES, ring.stages) for cta in range(ring.ctas))
    return Program(
        name="random",
        params={},
        agents=tuple(Agent(rank, agent, ALL_LANES, f"r{agent}", 0) for agent, rank in enumerate(ring.ranks)),
        barriers=tuple(ring.barriers),
        accesses=tuple(ring.accesses),
        tiles=tuple(tiles),
        code=code,
        lines=tuple(tuple(range(len(agent))) for agent in code),
        sources=tuple(f"random:{n}" for n in range(1, max(map(len, code)) + 1)),
        named_barriers=((0, 0), (0, 1)),
        registers=2,
        ctas=ring.ctas,
        smem_bytes=1024,
    )
