"""Two CTAs that load half of each tile and send it to both: tensor maps, a cluster, and a multicast."""

from pipesim import Protocol, Warp

CTAS = 2
EVERYONE = (1 << CTAS) - 1


def exchange(
    stages: int = 3, tiles: int = 24, tile_bytes: int = 8192, math_warps: int = 4, work: int = 400
) -> Protocol:
    """Each CTA's loader multicasts its half of every tile; a slot is free when the math warps of both have read it."""
    p = Protocol("exchange", cluster=CTAS)
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    full = p.mbarriers("full", stages, 1)
    empty = p.mbarriers("empty", stages, CTAS * math_warps)
    half = tile_bytes // CTAS

    @p.role("math", warps=math_warps)
    def math(w: Warp) -> None:
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.read(tile[i % stages], item=i)
            w.work(work)
            with w.elect_one():
                for rank in range(CTAS):
                    empty[i % stages].arrive_cluster(rank)

    @p.role("loader")
    def loader(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % stages].wait(i // stages % 2 ^ 1)
                full[i % stages].expect_bytes(tile_bytes)
                w.tma_load(tile[i % stages].part(w.cta * half, half), full[i % stages], item=i, cta_mask=EVERYONE)
            for i in range(tiles, tiles + stages):  # until all that this CTA sent has been given back
                empty[i % stages].wait(i // stages % 2 ^ 1)

    return p
