"""Random programs whose warps use the same engines in the same cycles: copies, multiplications, groups, registers."""

import random

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.model.program import Program

_WARPS = 4  #: of a warp group


def random_engines(seed: int) -> Program:
    """The program of this seed: warps that copy, and one or two warp groups that multiply what one of them copies.

    Some of the groups ask for registers that the copying one gives back.
    """
    draw = random.Random(seed)
    loaders, groups, tiles = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 4)
    cycles, pending = draw.choice([0, 1, 20, 90]), draw.choice([0, 0, 1])
    registers = draw.choice([(0, 0), (40, 168 if groups == 2 else 232), (24, 104)])
    p = Protocol("engines", registers=draw.choice([0, 0, 104]))
    slots = p.smem("tile", tiles, 256)
    more = p.smem("more", loaders * tiles, 64)
    full, other = p.mbarriers("full", tiles), p.mbarriers("other", loaders * tiles)

    def init() -> None:
        for bar in (*full, *other):
            bar.init(1)

    p.init(init)

    @p.role("load", warps=_WARPS)
    def load(w: Warp) -> None:
        if registers[0]:
            w.setmaxnreg(registers[0])
        if w.index >= loaders:
            return
        with w.elect_one():
            for i in range(tiles):
                if w.index == 0:
                    full[i].expect_bytes(256)
                    w.tma_load(slots[i], full[i], i)
                mine = w.index * tiles + i
                other[mine].expect_bytes(64)
                w.tma_load(more[mine], other[mine], i)

    @p.role("multiply", warps=_WARPS * groups)
    def multiply(w: Warp) -> None:
        if registers[1]:
            w.setmaxnreg(registers[1])
        for i in range(tiles):
            full[i].wait(0)
            w.mma(Engine.WGMMA, reads=[(slots[i], i)], cycles=cycles)
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, min(i, pending))
        w.wait_group(Engine.WGMMA, 0)

    return p.flatten({})
