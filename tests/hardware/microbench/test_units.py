"""The kernels of products and tries: they compile, have the instructions that are measured, and become values."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.microbench.units import TRIES, Beside, Operands, Products, main, measure, row
from tests.support.cuda_tools import nvdisasm


class Counted:
    """A GPU on which a product takes as long as its columns halved, a round 109 more, and a try 7,760."""

    def products(self, what: Products, rounds: int) -> np.ndarray:
        both = 2 if what.operands is Operands.BOTH else 1
        words = np.zeros((8, 4), dtype=np.uint32)
        words[:, 0] = 400 + rounds * (both * what.batch * what.columns // 2 + 109)
        words[:, 1], words[4:, 2] = rounds * 135, 1000
        return words

    def tries(self) -> np.ndarray:
        return np.array([53, 7770, 7760, 7760, 7760], dtype=np.uint32)


def test_cycles_become_values() -> None:
    assert measure(Counted()) == {"mma.per_kcycle": 2_048_000, "try.limit": 7760}


def test_a_row_says_what_each_side_takes() -> None:
    assert row(Counted(), Products(128, Operands.SHARED, Beside.NOTHING)) == (
        " 128 shared     beside nothing      621.0 cycles a round,   135.0 to issue"
    )
    assert row(Counted(), Products(64, Operands.BOTH, Beside.EXP2)).endswith("0.98 cycles an instruction beside")


@pytest.mark.parametrize(
    ("what", "products"),
    [(Products(), 8), (Products(64, Operands.REGISTERS, Beside.SOFTMAX, 4), 4), (Products(128, Operands.BOTH), 16)],
)
def test_a_round_has_these_products_and_no_serialisation(what: Products, products: int, tmp_path: Path) -> None:
    """ptxas says nothing: it serialises products whose accumulators are touched between them, and warns."""
    found = what.compiled()
    assert (found.entry, found.log) == ("tensor", "")
    (tmp_path / "tensor.cubin").write_bytes(found.cubin)
    text = subprocess.run(
        [nvdisasm(), "-c", tmp_path / "tensor.cubin"], check=True, capture_output=True, text=True
    ).stdout
    assert len(re.findall(r"\bHGMMA\b", text)) == products


def test_every_try_is_a_try_of_its_own(tmp_path: Path) -> None:
    found = compile_cubin(TRIES, {})
    assert (found.entry, found.log) == ("tries", "")
    (tmp_path / "tries.cubin").write_bytes(found.cubin)
    text = subprocess.run(
        [nvdisasm(), "-c", tmp_path / "tries.cubin"], check=True, capture_output=True, text=True
    ).stdout
    assert len(re.findall(r"TRYWAIT", text)) == 5


def test_without_a_gpu_it_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    if (code := main()) == 0:
        pytest.skip("there is a GPU")
    assert code == 3
    assert "GPU" in capsys.readouterr().err
