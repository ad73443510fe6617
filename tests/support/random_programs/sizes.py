"""Random rings of two trip counts, some of which go wrong far out, or only where both counts are more than one."""

import random
from collections.abc import Callable

from pipesim import Protocol, Warp

MOST = 300  #: trips up to which something that goes wrong far out has done so

Sizes = Callable[..., Protocol]


def random_sizes(seed: int) -> Sizes:
    """The protocol of this seed, by ``tiles`` and ``k_iters``: a producer and a consumer around one or two stages.

    In some the consumer forgets an arrive or reads another item in every so many trips, or in one, or whenever there
    are a few trips in all; in some the phases
    begin anew with every tile, which is right for some counts of K iterations and for a single tile.
    """
    rng = random.Random(seed)
    stages = rng.choice([1, 1, 2])
    restarts = rng.random() < 0.4
    odd = rng.choice(["arrive", "item", "few", "", ""])
    period, once = rng.randint(3, MOST), rng.random() < 0.5
    k_default = rng.choice([2 * stages, 4 * stages, 1])

    few = rng.randint(1, 9)

    def is_odd(trip: int) -> bool:
        return trip == period - 1 if once else trip % period == period - 1

    def wrong_item(trip: int, trips: int) -> bool:
        return (odd == "item" and is_odd(trip)) or (odd == "few" and trips == few and not trip)

    def made(tiles: int = 1, k_iters: int = k_default) -> Protocol:
        p = Protocol("sizes")
        full, empty = p.mbarriers("full", stages, count=1), p.mbarriers("empty", stages, count=1)
        tile = p.smem("tile", stages, 128)

        def stage_and_phase(t: int, k: int) -> tuple[int, int]:
            trip = k if restarts else t * k_iters + k
            return trip % stages, trip // stages & 1

        @p.role("load")
        def load(w: Warp) -> None:
            with w.elect_one():
                for t in w.loop(tiles, "tiles"):
                    for k in w.loop(k_iters, "k_iters"):
                        s, phase = stage_and_phase(t, k)
                        empty[s].wait(phase ^ 1)
                        full[s].expect_bytes(128)
                        w.tma_load(tile[s], full[s], t * k_iters + k)

        @p.role("math")
        def math(w: Warp) -> None:
            with w.elect_one():
                for t in w.loop(tiles, "tiles"):
                    for k in w.loop(k_iters, "k_iters"):
                        (s, phase), trip = stage_and_phase(t, k), t * k_iters + k
                        full[s].wait(phase)
                        w.read(tile[s], trip + wrong_item(trip, tiles * k_iters))
                        if odd != "arrive" or not is_odd(trip):
                            empty[s].arrive()

        return p

    return made
