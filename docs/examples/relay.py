"""A kernel in another style: cp.async into one ring, named barriers around a second one, a bulk store at its end."""

from pipesim import Protocol, Warp
from pipesim.model.ops import Engine, Fence

SLOTS = 2  #: of the second ring
MATH, FREE = 1, 2  #: named barriers: the math warps among themselves, and one for each slot that the store gave back
WARPS = 4  #: that load, and that calculate
LANES = 32 * WARPS


def relay(stages: int = 3, tiles: int = 32, noinc: int = 1, work: int = 300) -> Protocol:
    """Four warps load with cp.async, four calculate, one stores. ``noinc`` 0: each load also arrives by itself."""
    p = Protocol("relay")
    tile = p.smem("in", slots=stages, nbytes=64 * LANES)
    out = p.smem("out", slots=SLOTS, nbytes=64 * LANES)
    in_full = p.mbarriers("in_full", stages, LANES)
    in_empty = p.mbarriers("in_empty", stages, WARPS)
    out_full = p.mbarriers("out_full", SLOTS, 1)

    @p.role("math", warps=WARPS)
    def math(w: Warp) -> None:
        for i in w.loop(tiles, "tiles"):
            stage, slot, share = i % stages, i % SLOTS, 64 * LANES // WARPS
            in_full[stage].wait(i // stages % 2)
            w.read(tile[stage].part(w.index * share, share), item=i)
            with w.elect_one():
                in_empty[stage].arrive()
            w.work(work)
            w.bar_sync(FREE + slot, LANES + 32)
            w.write(out[slot].part(w.index * share, share), item=i)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(MATH, LANES)
            if w.index == 0:
                with w.elect_one():
                    out_full[slot].arrive()

    @p.role("load", warps=WARPS)
    def load(w: Warp) -> None:
        for i in w.loop(tiles, "tiles"):
            stage, share = i % stages, 64 * LANES // WARPS
            in_empty[stage].wait(i // stages % 2 ^ 1)
            w.async_write(Engine.CP_ASYNC, tile[stage].part(w.index * share, share), item=i)
            in_full[stage].cp_async_arrive(noinc=bool(noinc))
            if not noinc:
                in_full[stage].arrive()

    @p.role("store")
    def store(w: Warp) -> None:
        for slot in reversed(range(SLOTS)):
            w.bar_arrive(FREE + slot, LANES + 32)
        for i in w.loop(tiles, "tiles"):
            slot = i % SLOTS
            out_full[slot].wait(i // SLOTS % 2)
            w.async_read(Engine.BULK, out[slot], item=i)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)
            if i + SLOTS < tiles:
                w.bar_arrive(FREE + slot, LANES + 32)

    return p
