"""Random small programs of corners: what a certificate is easily wrong about, woven into hand-overs between agents.

Agent 0 hands over to the others and waits for all of them, round by round. That cuts each agent's code into *spots*:
what an agent signals at one spot, another may wait for at the same spot or a later one. Each corner draws operations
into spots, on barriers and a tile of its own: right ones, and such as go wrong in some schedules only. A corner's
barrier has one phase, unless it says otherwise. ``features`` of a program are the names of its corners.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import OPERANDS, Engine, Fence, Op, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

BYTES = 64
TRY, TOKEN = 0, 1  #: registers
WHOLE, LEFT, RIGHT = range(3)  #: the accesses of a tile
Code = list[tuple[int, ...]]
_MEET = 0  #: the named barrier at which the agents of a single CTA meet first
_COMMITTED = [Engine.TCGEN05, Engine.CP_ASYNC, Engine.BULK]


@dataclass
class Weft:
    """A program being woven: its agents' ranks, and for each agent the operations of every spot."""

    rng: random.Random
    rounds: int
    ranks: list[int]
    barriers: list[Barrier] = field(default_factory=list)
    inits: Code = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    written: Code = field(default_factory=list)
    named: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    stays: bool = True

    def __post_init__(self) -> None:
        self.spots: list[list[Code]] = [[[] for _ in range(2 * self.rounds + 1)] for _ in self.ranks]

    @property
    def last(self) -> int:
        return 2 * self.rounds

    def agent(self) -> int:
        return self.rng.randrange(len(self.ranks))

    def pair(self) -> tuple[int, int]:
        """Two different agents."""
        one, other = self.rng.sample(range(len(self.ranks)), 2)
        return one, other

    def spot(self, least: int = 0) -> int:
        return self.rng.randint(least, self.last)

    def put(self, agent: int, spot: int, *operations: tuple[int, ...]) -> None:
        self.spots[agent][spot] += operations

    def barrier(self, cta: int, count: int) -> int:
        self.barriers.append(Barrier(cta, "b", len(self.barriers)))
        self.inits.append((Op.INIT, len(self.barriers) - 1, count))
        return len(self.barriers) - 1

    def tile(self, cta: int) -> list[int]:
        """A tile that holds item 0: its accesses, the whole of it and the two halves."""
        first, offset = len(self.accesses), 128 * len(self.accesses)
        parts = (0, BYTES), (0, BYTES // 2), (BYTES // 2, BYTES // 2)
        self.accesses += [Access(Space.SHARED, cta, offset + part, size) for part, size in parts]
        self.written.append((Op.WRITE, first, 0))
        return [first, first + 1, first + 2]

    def named_barrier(self) -> int:
        self.named.append((0, len(self.named)))
        return len(self.named) - 1

    def wait(self, agent: int, spot: int, barrier: int, parity: int = 0) -> None:
        if self.rng.random() < 0.3:
            self.put(agent, spot, (Op.TRY_WAIT, barrier, parity, TRY, 0), (Op.WAIT_UNLESS, barrier, parity, TRY, 0))
        else:
            self.put(agent, spot, (Op.WAIT, barrier, parity, 0))


def random_corners(seed: int, *, mutated: float = 0.3) -> Program:
    """The program of this seed; its name tells its corners."""
    rng = random.Random(seed)
    agents = rng.choice([2, 2, 2, 3])
    ranks = rng.choice([[0] * 3, [0] * 3, [0, 1, 0], [0, 1, 1]])[:agents]
    weft = Weft(rng, rng.choice([0, 1, 1, 2]), ranks)
    weft.stays = rng.random() < 0.7
    drawn = [rng.choice(list(CORNERS)) for _ in range(rng.choice([1, 1, 2]))]
    for name in drawn:
        CORNERS[name](weft)
    codes = woven(weft)
    if rng.random() < mutated:
        mutate(rng, rng.choice(codes), weft)
    return assembled(weft, codes, "corners: " + ", ".join(sorted(set(drawn))))


def features(program: Program) -> list[str]:
    """The corners of a program."""
    return program.name.removeprefix("corners: ").split(", ")


# Corners


def _written_in_order(weft: Weft) -> None:
    """One agent's writes on an engine that works in order, to the same part of a tile or to several."""
    rng, agent = weft.rng, weft.agent()
    tile, engine = weft.tile(weft.ranks[agent]), rng.choice([Engine.TCGEN05, Engine.WGMMA])
    spots = sorted(weft.spot() for _ in range(rng.choice([2, 2, 3])))
    part, alike = rng.randrange(3), rng.random() < 0.5
    for spot in spots:
        weft.put(agent, spot, (Op.TRANSFER_WRITE, engine, tile[part if alike else rng.randrange(3)], BYTES // 2, 1))
        if rng.random() < 0.2:
            weft.put(agent, spot, (Op.COMMIT, engine, -1), (Op.WAIT_GROUP, engine, 0))
    end = weft.spot(spots[-1])
    weft.put(agent, end, (Op.COMMIT, engine, -1), (Op.WAIT_GROUP, engine, 0), (Op.READ, tile[part], -1))


def _token_for_an_answer(weft: Weft) -> None:
    """An arrive between a try and the wait that asks for its answer: its token may take the answer's place.

    Or the try asks another barrier, which the arrive may complete.
    """
    rng, (writer, reader) = weft.rng, weft.pair()
    tile, full = weft.tile(weft.ranks[writer]), weft.barrier(weft.ranks[reader], 1)
    own = weft.barrier(weft.ranks[reader], 1)
    signal = weft.spot()
    tried = weft.spot(signal)
    register = rng.choice([TRY, TRY, TOKEN, -1])
    weft.put(writer, signal, (Op.WRITE, tile[WHOLE], 1), (Op.ARRIVE, full, 1, 0, -1, 0))
    asks = rng.choice([full, full, full, own])
    between = [(Op.TRY_WAIT, asks, 0, TRY, 0), (Op.ARRIVE, own, 1, 0, register, 0)]
    weft.put(reader, tried, *(between if rng.random() < 0.8 else reversed(between)))
    weft.put(reader, tried, (Op.WAIT_UNLESS, full, 0, TRY, 0), (Op.READ, tile[WHOLE], 1))


def _raised_together(weft: Weft) -> None:
    """Several raises of one count that are taken back again; together they may come to 2^20."""
    rng, waiter = weft.rng, weft.agent()
    raisers = [weft.agent() for _ in range(rng.choice([2, 2, 3]))]
    bytes_ = rng.random() < 0.5
    bar = weft.barrier(weft.ranks[waiter], len(raisers))
    share = MAX_COUNT // len(raisers)
    ends = 0
    for raiser in raisers:
        much = rng.choice([share - 1 - len(raisers), share - 1 - len(raisers), share + 2, MAX_COUNT - len(raisers)])
        spot = weft.spot()
        if bytes_:
            weft.put(raiser, spot, (Op.EXPECT_TX, bar, much, 0), (Op.COMPLETE_TX, bar, much, 0))
        else:
            weft.put(raiser, spot, (Op.CP_ASYNC_ARRIVE, bar, much, 0))
        arrives = rng.choice([spot, weft.spot(spot)])
        weft.put(raiser, arrives, (Op.ARRIVE, bar, 1, 0, -1, 0))
        ends = max(ends, arrives)
    if rng.random() < 0.8:
        weft.wait(waiter, weft.spot(ends), bar)


def _many_lanes(weft: Weft) -> None:
    """``cp.async`` arrivals of very many lanes, all that a barrier expects or not quite."""
    rng, (copier, reader) = weft.rng, weft.pair()
    tile = weft.tile(weft.ranks[copier])
    lanes = [rng.choice([1, 32, MAX_COUNT // 2, MAX_COUNT - 1]), rng.choice([1, 32, MAX_COUNT // 2])]
    count = min(sum(lanes), MAX_COUNT) if rng.random() < 0.8 else rng.choice([1, 33, MAX_COUNT])
    bar, spot = weft.barrier(weft.ranks[reader], count), 0
    for part, many in zip((LEFT, RIGHT), lanes, strict=True):
        spot = weft.spot(spot)
        weft.put(copier, spot, (Op.TRANSFER_WRITE, Engine.CP_ASYNC, tile[part], BYTES // 2, 1))
        weft.put(copier, spot, (Op.CP_ASYNC_ARRIVE, bar, many, 1))
    end = weft.spot(spot)
    weft.wait(reader, end, bar)
    weft.put(reader, end, (Op.READ, tile[rng.randrange(3)], rng.choice([1, -1])))


def _no_bytes(weft: Weft) -> None:
    """A copy, or bytes taken off by hand, which the phase waits for unless they are none."""
    rng, (filler, reader) = weft.rng, weft.pair()
    there = weft.ranks[reader]
    tile, bar, nbytes = weft.tile(there), weft.barrier(there, 1), rng.choice([0, BYTES])
    filled, expected = weft.spot(), weft.spot()
    if rng.random() < 0.6:
        weft.put(filler, filled, (Op.TMA_LOAD, bar, tile[WHOLE], nbytes, 1, 0))
    else:
        weft.put(filler, filled, (Op.WRITE, tile[WHOLE], 1), (Op.COMPLETE_TX, bar, nbytes, 0))
    expects: Code = [(Op.ARRIVE, bar, 1, nbytes, -1, 0)]
    if rng.random() < 0.3:
        expects = [(Op.EXPECT_TX, bar, nbytes, 0), (Op.ARRIVE, bar, 1, 0, -1, 0)]
    weft.put(rng.choice([filler, reader]), expected, *expects)
    end = weft.spot(max(filled, expected))
    weft.wait(reader, end, bar)
    weft.put(reader, end, (Op.READ, tile[WHOLE], rng.choice([1, -1])))


def _leaves(weft: Weft) -> None:
    """What reaches into another CTA at the end, of which that may or may not wait."""
    rng, (near, far) = weft.rng, weft.pair()
    there = weft.ranks[far]
    tile, bar = weft.tile(there), weft.barrier(there, 1)
    spot = rng.choice([weft.last, weft.spot()])
    match rng.randrange(4):
        case 0:
            weft.put(near, spot, (Op.ARRIVE, bar, 1, 0, -1, 0))
        case 1:
            weft.put(near, spot, (Op.READ, tile[LEFT], -1), (Op.ARRIVE, bar, 1, 0, -1, 0))
        case 2:
            weft.put(near, spot, (Op.COMMIT, Engine.TCGEN05, bar))
        case _:
            weft.put(near, spot, (Op.ARRIVE, bar, 1, BYTES, -1, 0), (Op.TMA_LOAD, bar, tile[WHOLE], BYTES, 1, 0))
    weft.stays = weft.stays and rng.random() < 0.3
    if rng.random() < 0.6:
        weft.wait(far, weft.last, bar)
    if rng.random() < 0.2:
        weft.put(near, weft.last, (Op.READ, tile[WHOLE], -1))


def _named_hand_over(weft: Weft) -> None:
    """A tile handed over through named barriers, round by round: both meet, or one only arrives."""
    rng, (writer, reader) = weft.rng, weft.pair()
    tile, full, empty = weft.tile(weft.ranks[reader]), weft.named_barrier(), weft.named_barrier()
    arrive, sync = ((op, 64, 32) for op in (Op.BAR_ARRIVE, Op.BAR_SYNC))
    tells, free = rng.choice([arrive, arrive, sync]), rng.choice(["first", "between", "between", "never"])
    write, read = sorted([weft.spot(), weft.spot()])
    if free == "first":
        weft.put(reader, 0, (arrive[0], empty, *arrive[1:]))
    for item in range(rng.choice([1, 2, 2, 3])):
        if free == "first" or (free == "between" and item):
            weft.put(writer, write, (sync[0], empty, *sync[1:]))
        weft.put(writer, write, (Op.WRITE, tile[WHOLE], item), (tells[0], full, *tells[1:]))
        weft.put(reader, read, (sync[0], full, *sync[1:]), (Op.READ, tile[rng.randrange(3)], item))
        if free != "never":
            weft.put(reader, read, (arrive[0], empty, *arrive[1:]))
        write = weft.spot(read)
        read = weft.spot(write)


def _all_meet(weft: Weft) -> None:
    """Every agent of a loop meets the others at one named barrier, and touches what another does in other rounds."""
    rng, rounds = weft.rng, weft.rng.choice([2, 3])
    tile, bar, many = weft.tile(0), weft.named_barrier(), len(weft.ranks)
    lazy = weft.agent() if rng.random() < 0.3 else -1
    spots = sorted(weft.spot() for _ in range(rounds))
    for n, spot in enumerate(spots):
        for agent in range(many):
            touches = (Op.WRITE, tile[LEFT], n) if agent == n % many else (Op.READ, tile[RIGHT], -1)
            if rng.random() < 0.6:
                weft.put(agent, spot, touches)
            weft.put(agent, spot, (Op.BAR_ARRIVE if agent == lazy else Op.BAR_SYNC, bar, 32 * many, 32))


def _held_open(weft: Weft) -> None:
    """A transfer holds a part of a tile open while another agent touches a part that overlaps, or does not."""
    rng, (holder, other) = weft.rng, weft.pair()
    tile, bar = weft.tile(weft.ranks[holder]), weft.barrier(weft.ranks[other], 1)
    engine = rng.choice(_COMMITTED)
    code = rng.choice([Op.TRANSFER_READ, Op.TRANSFER_WRITE])
    begins = weft.spot()
    ends = weft.spot(begins)
    weft.put(holder, begins, (code, engine, tile[rng.randrange(3)], BYTES // 2, 1 if code == Op.TRANSFER_WRITE else -1))
    if rng.random() < 0.3:  # another access, which is over sooner
        also = rng.choice([holder, weft.agent()])
        weft.put(also, begins, (Op.READ, tile[rng.randrange(3)], -1))
    over: Code = [(Op.COMMIT, engine, -1), (Op.WAIT_GROUP, engine, rng.choice([0, 0, 0, 1]))]
    tells = begins
    match rng.randrange(4):
        case 0:
            weft.put(holder, begins, (Op.ARRIVE, bar, 1, 0, -1, 0), *over)
        case 1:
            weft.put(holder, begins, (Op.COMMIT, engine, bar))
        case _:
            weft.put(holder, ends, *over)
            tells = weft.spot(ends if rng.random() < 0.7 else begins)
            weft.put(holder, tells, (Op.ARRIVE, bar, 1, 0, -1, 0))
    end = weft.spot(tells)
    weft.wait(other, end, bar)
    part = tile[rng.randrange(3)]
    weft.put(other, end, (Op.WRITE, part, 2) if rng.random() < 0.4 else (Op.READ, part, -1))


def _several_phases(weft: Weft) -> None:
    """Phases of one barrier that another agent waits for one by one, or lets go by; with a try that may come early."""
    rng, (arriver, waiter) = weft.rng, weft.pair()
    tile, bar, spot = weft.tile(weft.ranks[waiter]), weft.barrier(weft.ranks[waiter], 1), weft.spot()
    phases, tried, waits = rng.choice([1, 2, 2, 3]), rng.random() < 0.4, rng.choice([0.3, 0.9, 1.0])
    for phase in range(phases):
        last = phase == phases - 1
        if last:
            weft.put(arriver, spot, (Op.WRITE, tile[WHOLE], 1))
        weft.put(arriver, spot, (Op.ARRIVE, bar, 1, 0, rng.choice([-1, TOKEN]), 0))
        spot = min(weft.last, spot + rng.choice([0, 1]))
        if tried and phase >= phases - 2:
            weft.put(waiter, spot, (Op.WAIT_UNLESS if last else Op.TRY_WAIT, bar, (phases - 1) % 2, TRY, 0))
        if (last or rng.random() < waits) and not (tried and last):
            weft.put(waiter, spot, (Op.WAIT, bar, phase % 2, 0))
        spot = min(weft.last, spot + rng.choice([0, 1, 1])) if not last else spot
    weft.put(waiter, spot, (Op.READ, tile[WHOLE], rng.choice([1, -1])))


def _late_raise(weft: Weft) -> None:
    """Bytes or copies that a phase waits for only if they are announced before another agent's arrival."""
    rng, (filler, arriver) = weft.rng, weft.pair()
    reader = rng.choice([arriver, weft.agent()])
    tile, bar = weft.tile(weft.ranks[filler]), weft.barrier(weft.ranks[filler], 1)
    raises = weft.spot()
    fills, arrives = weft.spot(raises), weft.spot(raises if rng.random() < 0.8 else 0)
    match rng.randrange(3):
        case 0:
            weft.put(filler, raises, (Op.EXPECT_TX, bar, BYTES, 0))
            weft.put(filler, fills, (Op.TMA_LOAD, bar, tile[WHOLE], BYTES, 1, 0))
        case 1:
            weft.put(filler, raises, (Op.EXPECT_TX, bar, BYTES // 2, 0))
            weft.put(filler, fills, (Op.WRITE, tile[WHOLE], 1), (Op.COMPLETE_TX, bar, BYTES // 2, 0))
        case _:
            weft.put(filler, raises, (Op.TRANSFER_WRITE, Engine.CP_ASYNC, tile[WHOLE], BYTES, 1))
            weft.put(filler, raises, (Op.CP_ASYNC_ARRIVE, bar, 32, 0))
    weft.put(arriver, arrives, (Op.ARRIVE, bar, 1, 0, -1, 0))
    end = weft.spot(max(fills, arrives))
    weft.wait(reader, end, bar)
    weft.put(reader, end, (Op.READ, tile[WHOLE], rng.choice([1, -1])))


def _late_init(weft: Weft) -> None:
    """A barrier that an agent initialises on its way."""
    rng, (maker, arriver), waiter = weft.rng, weft.pair(), weft.agent()
    bar, spot = weft.barrier(weft.ranks[waiter], 1), weft.spot()
    weft.put(maker, spot, weft.inits.pop())
    spot = min(weft.last, spot + rng.choice([0, 1, 2]))
    weft.put(arriver, spot, (Op.ARRIVE, bar, 1, 0, -1, 0))
    weft.wait(waiter, weft.spot(spot), bar)


CORNERS: dict[str, Callable[[Weft], None]] = {
    "written in order": _written_in_order,
    "token for an answer": _token_for_an_answer,
    "raised together": _raised_together,
    "many lanes": _many_lanes,
    "no bytes": _no_bytes,
    "leaves": _leaves,
    "named hand-over": _named_hand_over,
    "all meet": _all_meet,
    "held open": _held_open,
    "several phases": _several_phases,
    "late raise": _late_raise,
    "late init": _late_init,
}


# The program


def woven(weft: Weft) -> list[Code]:
    """The spots of each agent one after the other, with the hand-overs between them."""
    others = range(1, len(weft.ranks))
    goes = {agent: weft.barrier(weft.ranks[agent], 1) for agent in others}
    back = weft.barrier(weft.ranks[0], len(others))
    for turn in range(weft.rounds):
        weft.put(0, 2 * turn, *((Op.ARRIVE, go, 1, 0, -1, 0) for go in goes.values()))
        weft.wait(0, 2 * turn + 1, back, turn % 2)
        for agent in others:
            weft.wait(agent, 2 * turn, goes[agent], turn % 2)
            weft.put(agent, 2 * turn + 1, (Op.ARRIVE, back, 1, 0, -1, 0))
    return [[op for spot in spots for op in spot] for spots in weft.spots]


def mutate(rng: random.Random, code: Code, weft: Weft) -> None:
    """Make one mistake in ``code``, which may have no effect."""
    if not code:
        return
    at = rng.randrange(len(code))
    match rng.randrange(4):
        case 0:
            del code[at]
        case 1:
            code.insert(at, code[at])
        case 2:
            other = min(at + 1, len(code) - 1)
            code[at], code[other] = code[other], code[at]
        case _:
            values = {
                "parity": [0, 1], "barrier": list(range(len(weft.barriers))), "bytes": [0, BYTES // 2, BYTES],
                "expect": [0, BYTES // 2, BYTES], "count": [1, 2], "groups": [0, 1], "noinc": [0, 1],
                "register": [TRY, TOKEN], "threads": [32, 64, 96],
            }  # fmt: skip
            wrong = [(n, values[name]) for n, name in enumerate(OPERANDS[Op(code[at][0])], 1) if name in values]
            if wrong:
                n, choices = rng.choice(wrong)
                code[at] = (*code[at][:n], rng.choice(choices), *code[at][n + 1 :])


def assembled(weft: Weft, codes: list[Code], name: str) -> Program:
    """The program between a prologue and, in a cluster that ``stays``, the barrier that keeps it alive."""
    cluster: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
    ctas = max(weft.ranks) + 1
    meet: Code = cluster if ctas == 2 else [(Op.BAR_SYNC, _MEET, 32 * len(codes), 32)]
    part: Code = cluster if ctas == 2 and weft.stays else []
    first: Code = [*weft.inits, *weft.written, (Op.FENCE, Fence.MBARRIER_INIT, 0), (Op.FENCE, Fence.PROXY_ASYNC, 0)]
    whole = [[*(first if agent == 0 else []), *meet, *code, *part] for agent, code in enumerate(codes)]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    return Program(
        name=name,
        params={},
        agents=tuple(Agent(rank, agent, ALL_LANES, f"r{agent}", 0) for agent, rank in enumerate(weft.ranks)),
        barriers=tuple(weft.barriers),
        accesses=tuple(weft.accesses),
        tiles=(),
        code=code,
        lines=tuple(tuple(range(len(agent))) for agent in code),
        sources=tuple(f"corners:{n}" for n in range(1, max(map(len, code)) + 1)),
        named_barriers=tuple(weft.named),
        registers=2,
        ctas=ctas,
        smem_bytes=8192,
    )
