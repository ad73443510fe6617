"""The kernels of products and tries: they compile, have the instructions that are measured, and become values."""

import numpy as np

from hwkernels.microbench.units import COLUMNS, measure


def products(batch: int, rounds: int) -> int:
    """On a GPU on which a product takes as long as its columns halved, and a round 109 more."""
    return 400 + rounds * (batch * COLUMNS // 2 + 109)


def test_cycles_become_values() -> None:
    tries = np.array([53, 7770, 7760, 7760, 7760], dtype=np.uint32)
    assert measure(products, tries) == {"mma.per_kcycle": 2_048_000, "try.limit": 7760}
