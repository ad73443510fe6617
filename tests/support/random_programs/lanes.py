"""Random rings whose consumer lets some of its lanes execute alone: described as together, or with lanes apart."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Order, Scope
from pipesim.model.program import Program

_BYTES = 64
_MEETS: dict[str, Callable[[Warp], None]] = {
    "": lambda _: None,
    "warp": Warp.sync_warp,
    "barrier": lambda w: w.bar_sync(1, 32),
}


def random_lanes(seed: int, *, apart: bool) -> Program:
    """The program of this seed. ``apart``: the lanes of the consumer run independently."""
    rng = random.Random(seed)
    stages, tiles = rng.choice([1, 2]), rng.choice([1, 2, 4])
    steps, weak = _steps(rng)
    meets = [rng.choice(["", "", "warp", "barrier"]) for _ in steps]
    p = Protocol("lanes")
    tile, own = p.smem("tile", stages, _BYTES), p.smem("own", 1, _BYTES)
    full, empty = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1 if steps[-1][1] else 32)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                empty[i % stages].wait((i // stages + 1) & 1)
                full[i % stages].expect_bytes(_BYTES)
                w.tma_load(tile[i % stages], full[i % stages], i)

    def does(w: Warp, step: str, i: int) -> None:
        match step:
            case "wait" if weak:
                full[i % stages].wait_relaxed(i // stages & 1)
            case "wait":
                full[i % stages].wait(i // stages & 1)
            case "read":
                w.read(tile[i % stages], i)
            case "write":
                w.write(own[0], 0)
            case "fence":
                w.fence(Fence.ACQ_REL, Scope.CTA)
            case "proxy":
                w.fence(Fence.PROXY_ASYNC)
            case "store":
                w.async_read(Engine.BULK, own[0])
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            case _:
                empty[i % stages].arrive(order=Order.RELAXED if weak else Order.DEFAULT)

    @p.role("consumer", lanes_apart=apart)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            for (step, elected), meet in zip(steps, meets, strict=True):
                lanes: AbstractContextManager[None] = w.elect_one() if elected else nullcontext()
                with lanes:
                    does(w, step, i)
                _MEETS[meet](w)

    return p.flatten({}, twice=False)


def _steps(rng: random.Random) -> tuple[list[tuple[str, bool]], bool]:
    """What the consumer does in an iteration, each by one lane or by all, and whether it needs fences for its order."""
    steps = [(step, rng.random() < 0.5) for step in ("wait", "read", "release")]
    if rng.random() < 0.3:
        steps.insert(rng.randrange(3), ("write", rng.random() < 0.5))
    weak = rng.random() < 0.3  # only fences make it an acquire and a release
    if weak:
        steps.insert(1, ("fence", rng.random() < 0.5))
        steps.insert(rng.randrange(2, len(steps)), ("fence", rng.random() < 0.5))
    elif rng.random() < 0.3:  # what is written is copied out
        steps[2:2] = [("write", rng.random() < 0.5), ("proxy", rng.random() < 0.5), ("store", True)]
    return steps, weak
