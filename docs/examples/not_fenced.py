"""A result is written and stored by a bulk copy without ``fence.proxy.async``: the copy may read what was before."""

from pipesim import Engine, Protocol, Warp


def store_not_fenced(tiles: int = 2) -> Protocol:
    p = Protocol("store_not_fenced")
    out = p.smem("out", slots=1, nbytes=64)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(out[0], i)
            w.bar_sync(1, 64)
            w.bar_sync(2, 64)

    @p.role("storer")
    def storer(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, 64)
            with w.elect_one():
                w.async_read(Engine.BULK, out[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            w.bar_sync(2, 64)

    return p
