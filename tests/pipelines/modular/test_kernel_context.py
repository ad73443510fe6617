"""The masks of a cluster against who needs what, worked out from the tiles themselves, for every shape up to 4 by 4."""

from collections import Counter
from itertools import product

import pytest

from pipesim.errors import ParameterError
from pipesim.pipelines import KernelContext

SHAPES = [(m, n, g) for m, n, g in product(range(1, 5), range(1, 5), (1, 2)) if m % g == 0]


def contexts(m: int, n: int, group: int) -> list[KernelContext]:
    return [KernelContext(group, m, n, rank) for rank in range(m * n)]


def bits(mask: int) -> set[int]:
    return {rank for rank in range(mask.bit_length()) if mask >> rank & 1}


@pytest.mark.parametrize(("m", "n", "group"), SHAPES)
def test_every_cta_gets_every_slice_of_its_tiles_once(m: int, n: int, group: int) -> None:
    got_a: Counter[tuple[int, int]] = Counter()
    got_b: Counter[tuple[int, int]] = Counter()
    for ctx in contexts(m, n, group):
        _, b_slice, a_slice = ctx.peer_cta_coord
        got_a.update((rank, a_slice) for rank in bits(ctx.a_multicast_mask))
        got_b.update((rank, b_slice) for rank in bits(ctx.b_multicast_mask))
    assert got_a == Counter({(rank, s): 1 for rank in range(m * n) for s in range(n)})
    assert got_b == Counter({(rank, s): 1 for rank in range(m * n) for s in range(m // group)})


@pytest.mark.parametrize(
    ("m", "n", "group", "fact"),
    [
        (3, 1, 2, "cluster_m = 3 with cta_group = 2"),
        (1, 1, 2, "cluster_m = 1 with cta_group = 2"),
        (4, 5, 1, "cluster_m = 4 with cluster_n = 5 are 20 CTAs"),
        (0, 1, 1, "a cluster of 0 by 1 CTAs"),
        (2, 1, 3, "cta_group = 3"),
    ],
)
def test_shapes_that_do_not_exist(m: int, n: int, group: int, fact: str) -> None:
    with pytest.raises(ParameterError) as caught:
        KernelContext(group, m, n, 0)
    assert caught.value.fact == fact
    assert caught.value.correction
