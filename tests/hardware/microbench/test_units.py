"""The kernels of products and tries: they compile, have the instructions that are measured, and become values."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.microbench.units import COLUMNS, TRIES, compile_kernel, measure
from tests.support.cuda_tools import nvdisasm


class Counted:
    """A GPU on which a product takes as long as its columns halved, a round 109 more, and a try 7,760."""

    def products(self, batch: int, rounds: int) -> int:
        return 400 + rounds * (batch * COLUMNS // 2 + 109)

    def tries(self) -> np.ndarray:
        return np.array([53, 7770, 7760, 7760, 7760], dtype=np.uint32)


def test_cycles_become_values() -> None:
    assert measure(Counted()) == {"mma.per_kcycle": 2_048_000, "try.limit": 7760}


def disassembled(kernel: CompiledKernel, folder: Path) -> str:
    (folder / "kernel.cubin").write_bytes(kernel.cubin)
    command = [str(nvdisasm()), "-c", str(folder / "kernel.cubin")]
    return str(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, 8])
def test_a_round_has_these_products_and_no_serialisation(batch: int, tmp_path: Path) -> None:
    """ptxas says nothing: it serialises products whose accumulators are touched between them, and warns."""
    found = compile_kernel(batch)
    assert (found.entry, found.log) == ("tensor", "")
    assert len(re.findall(r"\bHGMMA\b", disassembled(found, tmp_path))) == batch


@pytest.mark.slow
def test_every_try_is_a_try_of_its_own(tmp_path: Path) -> None:
    found = compile_cubin(TRIES, {})
    assert (found.entry, found.log) == ("tries", "")
    assert len(re.findall(r"TRYWAIT", disassembled(found, tmp_path))) == 5
