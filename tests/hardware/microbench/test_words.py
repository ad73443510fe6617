"""The kernels of words in global memory: they compile, every wait of theirs is bounded, and cycles become values."""

import numpy as np
import pytest

from hwkernels.microbench.words import ROUNDS, SOURCE, WordKind, compile_kernel, measure

CYCLES = {WordKind.LOADS: 330, WordKind.RELAXED: 39, WordKind.RELEASES: 612, WordKind.ADDS: 620}


class Counted:
    """A GPU on which a hop takes 1,050 cycles and a barrier 1,700, and one atomic operation comes every 4 cycles."""

    def rounds(self, kind: WordKind, count: int, first: int = 1, *, cluster: int = 1, data: bool = True) -> np.ndarray:
        of_all = {WordKind.FLAGS: 1050 * count, WordKind.TURNS: 1050 * count, WordKind.BARRIER: 1700}
        cycles = {**CYCLES, **of_all, WordKind.ATOMS: 4 * count * ROUNDS}
        return np.full(ROUNDS, cycles[kind], dtype=np.uint32)


def test_cycles_become_values() -> None:
    assert measure(Counted()) == {"word.load": 330, "word.store": 39, "word.release": 612, "word.count": 585}


@pytest.mark.slow
def test_every_kind_compiles_and_its_waits_are_bounded() -> None:
    for kind in WordKind:
        assert compile_kernel(kind, cluster=2).cubin
    text = SOURCE.read_text(encoding="utf-8")
    assert "while" not in text
    assert text.count("for (") == text.count("i < TRIES") + text.count("i < rounds")
