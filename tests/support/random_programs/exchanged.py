"""Random rings in which an arrive of one lap may be counted in the phase of another.

Consumers arrive at the *empty* of every CTA, or before the first lap, in a phase that nobody waits for; a loader fills
its own tile, or every one. What each waits for and where it arrives is drawn, and so are mistakes.
"""

import random
from dataclasses import dataclass

from pipesim.model.ops import Fence, Op, Operation, Order, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier

Code = list[Operation]

_BYTES = 64
_SYNC: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]


def random_exchanged(seed: int, *, orders: bool = False) -> Program:
    """The program of this seed; ``orders``: with scopes and fences that are drawn, and copies in place of writes."""
    rng = random.Random(seed)
    if rng.random() < 0.1:
        return _told_by_another(rng)
    ctas = rng.choice([1, 1, 2, 2, 2])
    rings = ctas if ctas == 2 else rng.choice([1, 1, 2])  # each with a full and an empty barrier, and a tile
    laps = rng.choice([1, 2, 2, 3] if rings == 1 else [1, 1, 2])
    made = _Rings(rng, ctas, rings, laps, primed=rng.random() < 0.5, orders=_Orders(rng) if orders else None)
    consumers = [n % ctas for n in range(rng.choice([2, 2, 2, 3]) if rings == 1 else 2)]
    sizes = [rng.choice([1] * 9 + [2]) for _ in consumers]
    loaders = list(range(rings)) if rng.random() < 0.7 else [0]
    fills = {n: [n] if len(loaders) > 1 and rng.random() < 0.6 else list(range(rings)) for n in loaders}
    codes = [made.consumer(n, cta, sizes[n]) for n, cta in enumerate(consumers)]
    codes += [made.loader(n, fills[n]) for n in loaders]
    counts = [(sum(ring in fills[n] for n in loaders), sum(sizes)) for ring in range(rings)]
    if rng.random() < 0.15:
        wrong = rng.randrange(rings)
        counts[wrong] = counts[wrong][0], max(1, counts[wrong][1] + rng.choice([-1, 1]))
    start: Code = [(Op.INIT, 2 * ring + bar, counts[ring][bar]) for ring in range(rings) for bar in range(2)]
    start.append((Op.FENCE, Fence.MBARRIER_INIT, 0))
    end = _SYNC if rng.random() < 0.7 else []
    whole = [[*(start if a == 0 else []), *_SYNC, *code, *end] for a, code in enumerate(codes)]
    agents = [*consumers, *(n % ctas for n in loaders)]
    return assembled([[_mistaken(rng, op) for op in code] for code in whole], agents, rings, ctas)


def _told_by_another(rng: random.Random) -> Program:
    """Two consumers arrive at two *empty* barriers, one of them again when both have met.

    That may be counted in the place of the other's arrive. The loader waits for one of the barriers, or for both, and
    writes what is read once more; all may then end.
    """
    pair, ctas = [1, 3], rng.choice([1, 1, 2])
    again = rng.choice(pair)

    def arrive(bar: int) -> Operation:
        return Op.ARRIVE, bar, 1, 0, -1, 0

    def both() -> Code:
        return [arrive(bar) for bar in rng.sample(pair, 2)]

    first = [*both(), *_SYNC, arrive(again), *both()[: rng.randint(0, 2)]]
    read: Code = [(Op.READ, 1, 1)] if rng.random() < 0.8 else []
    begun = both() if rng.random() < 0.3 else [arrive(again)] if rng.random() < 0.5 else []
    other = [_SYNC[0], *begun, _SYNC[1], *([] if begun else both()), *read, *both()[: rng.randint(0, 2)]]
    waits = [(again, 0), (rng.choice(pair), rng.randint(0, 1)), (rng.choice(pair), 1)]
    loader: Code = [*_SYNC, *((Op.WAIT, bar, parity, 0) for bar, parity in waits[: rng.randint(1, 3)])]
    loader += [(Op.WRITE, 1, 2)] if rng.random() < 0.8 else []
    inits: Code = [(Op.INIT, 1, 2), (Op.INIT, 3, 2), (Op.FENCE, Fence.MBARRIER_INIT, 0), (Op.WRITE, 1, 1)]
    end = _SYNC if rng.random() < 0.5 else []
    if rng.random() < 0.5:  # one more tells the loader that all of the second arrives have come
        inits, first, loader = [(Op.INIT, 0, 1), *inits], [*first, arrive(0)], [*loader, (Op.WAIT, 0, 0, 0)]
    codes = [[*inits, *_SYNC, *loader, *end], [*_SYNC, *other, *end], [*_SYNC, *first, *end]]
    return assembled(codes, [0, rng.choice([0, ctas - 1]), ctas - 1], 2, 1, ctas=ctas)


class _Orders:
    """The orders and scopes of one program: most are strong enough."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def arrive(self) -> int:
        return semantics(self._rng.choice([Order.DEFAULT] * 6 + [Order.RELAXED]), self._scope())

    def wait(self) -> int:
        return semantics(self._rng.choice([Order.DEFAULT] * 9 + [Order.RELAXED]), self._scope())

    def fence(self) -> Code:
        return [(Op.FENCE, Fence.PROXY_ASYNC, 0)] if self._rng.random() < 0.5 else []

    def _scope(self) -> Scope:
        return self._rng.choice([Scope.CLUSTER] * 5 + [Scope.DEFAULT, Scope.CTA])


@dataclass(frozen=True)
class _Rings:
    """The rings of one program; ``primed``: consumers arrive before the first lap."""

    rng: random.Random
    ctas: int
    rings: int
    laps: int
    primed: bool
    orders: _Orders | None

    def consumer(self, me: int, cta: int, size: int) -> Code:
        """It waits for tiles, reads them, and arrives with ``size`` at the *empty* of its own rings or of all."""
        rng, orders = self.rng, self.orders
        mine = [cta if self.ctas == 2 else me % self.rings]
        if self.ctas == 1 and rng.random() < 0.7:
            mine = list(range(self.rings))
        every = list(range(self.rings)) if rng.random() < 0.85 else mine

        def arrive() -> Code:
            to = rng.sample(every, len(every))
            return [(Op.ARRIVE, 2 * r + 1, size, 0, -1, orders.arrive() if orders else 0) for r in to]

        code = arrive() if self.primed else []
        looks = [ring for ring in mine if rng.random() < 0.9]  # else it arrives whatever has been filled
        for lap in range(self.laps):
            for ring in looks:
                code.append((Op.WAIT, 2 * ring, lap % 2, orders.wait() if orders else 0))
                code.append((Op.READ, ring, lap + 1))
                code += orders.fence() if orders else []
            code += arrive()
        return [*code, *(arrive()[:1] if rng.random() < 0.1 else [])]

    def loader(self, me: int, fills: list[int]) -> Code:
        """It waits for its own ring, or for all that it fills if these are in its CTA."""
        rng, orders, code = self.rng, self.orders, Code()
        first_waits = self.primed and rng.random() < 0.5

        def wait(ring: int, lap: int) -> Operation:
            return Op.WAIT, 2 * ring + 1, (lap if self.primed else lap - 1) % 2, orders.wait() if orders else 0

        for lap in range(self.laps):
            waits = [ring for ring in fills if rng.random() < 0.8] if self.ctas == 1 else [me]
            if lap or first_waits:
                code += [wait(ring, lap) for ring in waits]
            for ring in fills:
                semantics = orders.arrive() if orders else 0
                if orders and rng.random() < 0.7:
                    code.append((Op.ARRIVE, 2 * ring, 1, _BYTES, -1, semantics))
                    code.append((Op.TMA_LOAD, 2 * ring, ring, _BYTES, lap + 1, 0))
                else:
                    code += [(Op.WRITE, ring, lap + 1), (Op.ARRIVE, 2 * ring, 1, 0, -1, semantics)]
        if rng.random() < 0.4:  # it drains its ring, so that its CTA outlives what others signal there
            code.append(wait(me, self.laps))
        return code


def _mistaken(rng: random.Random, op: Operation) -> Operation:
    """The operation, or one in its place."""
    if rng.random() < 0.99 or op[0] not in (Op.WAIT, Op.ARRIVE):
        return op
    if op[0] == Op.WAIT:
        return (op[0], op[1], op[2] ^ 1, *op[3:]) if rng.random() < 0.5 else (Op.FENCE, Fence.MBARRIER_INIT, 0)
    return (Op.FENCE, Fence.MBARRIER_INIT, 0)


def assembled(codes: list[Code], agents: list[int], rings: int, homes: int, ctas: int = 0) -> Program:
    """A program of these codes, with the CTA of each agent; ring ``r`` has the barriers ``2 * r`` (full) and
    ``2 * r + 1`` (empty), and tile ``r``, all in CTA ``r`` if two CTAs are their ``homes``; ``ctas``: if they are more.
    """
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in codes)
    counts = [len(agent) for agent in code]
    where = [ring if homes == 2 else 0 for ring in range(rings)]
    return Program(
        name="exchanged",
        params={},
        agents=tuple(Agent(cta, a, ALL_LANES, f"r{a}", 0) for a, cta in enumerate(agents)),
        barriers=tuple(Barrier(where[r], name, r) for r in range(rings) for name in ("full", "empty")),
        accesses=tuple(Access(Space.SHARED, where[r], r * _BYTES, _BYTES) for r in range(rings)),
        tiles=(),
        code=code,
        lines=tuple(tuple(range(sum(counts[:a]), sum(counts[: a + 1]))) for a in range(len(agents))),
        sources=tuple(f"exchanged:{n}" for n in range(sum(counts))),
        registers=1,
        smem_bytes=1024,
        ctas=max(homes, ctas),
    )
