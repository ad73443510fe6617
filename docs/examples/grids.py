"""CTAs that talk by words of global memory: a flag, a split-K semaphore, the last block, and a barrier of the grid."""

from pipesim import Order, Protocol, Warp


def handed_on(tiles: int = 2, tile_bytes: int = 4096) -> Protocol:
    """One CTA hands tiles to another one through a buffer in global memory, with a flag for each direction."""
    p = Protocol("handed_on", grid=2)
    tile, full, empty = p.gmem("tile", 1, tile_bytes), p.gmem("full", 1, 4), p.gmem("empty", 1, 4)

    @p.role("worker")
    def worker(w: Warp) -> None:
        for i in w.loop(tiles, "tiles"):
            if w.cta == 0:
                w.spin_until(empty[0], at_least=i, order=Order.ACQUIRE)
                w.gstore(tile[0], item=i)
            else:
                w.spin_until(full[0], at_least=i + 1, order=Order.ACQUIRE)
                w.gload(tile[0], item=i)
            w.sync_warp()
            with w.elect_one():
                w.gstore(full[0] if w.cta == 0 else empty[0], value=i + 1, order=Order.RELEASE)

    return p


def split_k(splits: int = 3, tile_bytes: int = 4096) -> Protocol:
    """CTAs add their parts of a tile one after the other: each waits until the semaphore says that it is its turn."""
    p = Protocol("split_k", grid=splits)
    tile, turn = p.gmem("tile", 1, tile_bytes, item=0), p.gmem("turn", 1, 4)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.work(cycles=400)
        w.spin_until(turn[0], equals=w.cta, order=Order.ACQUIRE)
        w.gload(tile[0], item=w.cta)
        w.gstore(tile[0], item=w.cta + 1)
        w.sync_warp()
        with w.elect_one():
            w.gstore(turn[0], value=(w.cta + 1) % splits, order=Order.RELEASE)

    return p


def last_block(blocks: int = 3, part_bytes: int = 4096) -> Protocol:
    """Each CTA writes its part; the one that counts last adds all of them, and sets the counter back."""
    p = Protocol("last_block", grid=blocks)
    parts, count = p.gmem("parts", blocks, part_bytes), p.gmem("count", 1, 4)

    @p.role("reduce")
    def reduce(w: Warp) -> None:
        w.gstore(parts[w.cta], item=w.cta)
        w.sync_warp()
        with w.elect_one():
            ticket = w.atomic(count[0], add=1, order=Order.ACQ_REL)
        w.sync_warp()
        if ticket.old == blocks - 1:
            for block in range(blocks):
                w.gload(parts[block], item=block)
            w.sync_warp()
            with w.elect_one():
                w.gstore(count[0], value=0)

    return p


def laps(blocks: int = 3, rounds: int = 2, part_bytes: int = 4096) -> Protocol:
    """In each round a CTA writes its part, and reads that of the next CTA after a barrier of the grid."""
    p = Protocol("laps", grid=blocks)
    parts, everyone = p.gmem("parts", 2 * blocks, part_bytes), p.grid_barrier("everyone")

    @p.role("worker", warps=2)
    def worker(w: Warp) -> None:
        half = part_bytes // 2
        for lap in w.loop(rounds, "rounds"):
            mine, other = (lap % 2 * blocks + (w.cta + n) % blocks for n in (0, 1))
            w.gstore(parts[mine].part(w.index * half, half), item=lap)
            everyone.sync(w)
            w.gload(parts[other], item=lap)

    return p
