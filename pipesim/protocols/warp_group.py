"""What the Hopper protocols share: the sizes of a warp group, its part of a tile, and its store of a result."""

from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

GROUP = 4  #: warps of a warp group
GROUP_THREADS = 128
ROWS = 64  #: of the output that a consumer group computes (wgmma's M)
BF16, F32 = 2, 4  #: bytes
MMA_K = 16  #: elements of K that one instruction of a bf16 product takes
_FLOPS_PER_CYCLE = 4096  #: dense bf16 of one H100 SM (data sheet: 989 TFLOP/s on 132 SMs at 1,830 MHz)


def mma_cycles(m: int, n: int, k: int) -> int:
    """Cycles of one Hopper SM's tensor cores for an m by n by k product of bf16."""
    return 2 * m * n * k // _FLOPS_PER_CYCLE


def share(slot: Slot, index: int, of: int) -> Slot:
    """The ``index``-th of ``of`` equal parts of a slot."""
    size = slot.nbytes // of
    return slot.part(index * size, size)


def store(
    w: Warp,
    mine: Slot,
    of_group: Slot,
    *,
    group: int,
    item: int,
    cycles: int = 0,
    work: str = "",
    copies: int = 1,
    **amounts: int,
) -> None:
    """Each warp of a group writes its part, works ``cycles``, and one lane stores the whole with a bulk copy.

    Named barrier ``1 + group`` is the group's own. That lane returns when the copy has read the part. ``work``: the
    kernel whose work ``store_rows`` this is, with its amounts: stores to shared memory are waited for at the fence.
    The copy is made by ``copies`` instructions.
    """
    w.write(mine, item)
    w.work(cycles)
    if work:
        w.compute(f"{work}/store_rows", **amounts)
    w.fence(Fence.PROXY_ASYNC)
    if work:
        w.compute(f"{work}/fence", shared_bytes=mine.nbytes)
    w.bar_sync(1 + group, GROUP_THREADS)
    if w.index % GROUP == 0:
        with w.elect_one():
            w.async_read(Engine.BULK, of_group, item)
            w.commit(Engine.BULK)
            if work:
                w.compute(f"{work}/store", copies=copies)
            w.wait_group(Engine.BULK)
