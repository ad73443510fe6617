"""The kernels of words in global memory: they compile, every wait of theirs is bounded, and cycles become values."""

import numpy as np
import pytest

from hwkernels.microbench.words import ROUNDS, SOURCE, WordKind, compile_kernel, measure

CYCLES = {
    WordKind.LOADS: 330, WordKind.RELAXED: 39, WordKind.RELEASES: 612, WordKind.ADDS: 620, WordKind.BARRIER: 1700,
}  # fmt: skip


def test_cycles_become_values() -> None:
    found = measure(lambda kind, _: np.full(ROUNDS, CYCLES[kind], dtype=np.uint32))
    assert found == {"word.load": 330, "word.store": 39, "word.release": 612, "word.count": 585}


@pytest.mark.slow
def test_every_kind_compiles_and_its_waits_are_bounded() -> None:
    for kind in WordKind:
        assert compile_kernel(kind).cubin
    text = SOURCE.read_text(encoding="utf-8")
    assert "while" not in text
    assert text.count("for (") == text.count("i < TRIES") + text.count("i < rounds")
