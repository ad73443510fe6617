"""The kernel whose copies meet in the copy engine: it compiles, reads its plans, and becomes a table."""

from __future__ import annotations

import numpy as np
import pytest

from hwkernels.microbench.transfers import AREA, BOX, WARPS, Copies, Kind, compiled, main, plan_words, plans, row


def test_it_compiles() -> None:
    found = compiled()
    assert (found.entry, found.log) == ("transfers", "")


def test_every_plan_is_one_that_the_kernel_can_carry_out() -> None:
    """Boxes have one size, and what a warp copies lies in its part of device memory."""
    every = list(plans())
    assert len(every) == len(set(every)) == 201
    for plan in every:
        assert 1 <= len(plan) <= WARPS
        for copies in plan:
            assert copies.nbytes % 16 == 0
            assert copies.nbytes <= AREA
            assert copies.count * copies.nbytes <= 1 << 20
            assert copies.nbytes == BOX or copies.kind in {Kind.LOAD, Kind.STORE}


def test_a_plan_is_a_row_for_each_warp() -> None:
    words = plan_words((Copies(Kind.STORE, 0, 2), Copies(Kind.LOAD_BOX, 50, 4)))
    assert words.tolist() == [[2, 0, 2, 8192], [3, 50, 4, 8192], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_row_shows_each_warp_that_copies() -> None:
    words = np.arange(16, dtype=np.uint32).reshape(4, 4)
    assert row((Copies(Kind.STORE, 0, 2), Copies(Kind.LOAD_BOX, 50, 1)), words) == (
        "2 store of 8192 at 0                 0     1     2     3"
        "  |1 load box of 8192 at 50             4     5     6     7"
    )


def test_without_a_gpu_it_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    if (code := main()) == 0:
        pytest.skip("there is a GPU")
    assert code == 3
    assert "GPU" in capsys.readouterr().err
