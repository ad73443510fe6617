"""The kernels of products and tries: they compile, have the instructions that are measured, and become values."""

import numpy as np

from hwkernels.microbench.units import COLUMNS, measure


class Counted:
    """A GPU on which a product takes as long as its columns halved, a round 109 more, and a try 7,760."""

    def products(self, batch: int, rounds: int) -> int:
        return 400 + rounds * (batch * COLUMNS // 2 + 109)

    def tries(self) -> np.ndarray:
        return np.array([53, 7770, 7760, 7760, 7760], dtype=np.uint32)


def test_cycles_become_values() -> None:
    assert measure(Counted()) == {"mma.per_kcycle": 2_048_000, "try.limit": 7760}
