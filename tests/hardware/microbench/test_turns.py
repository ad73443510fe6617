"""The kernel of two warp groups that multiply: it compiles, has the products that are measured, and becomes a table."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hwkernels.microbench.turns import compiled, main, row
from tests.support.cuda_tools import nvdisasm


@pytest.mark.parametrize(("columns", "first", "second"), [(128, 4, 0), (64, 8, 8)])
def test_it_has_these_products_and_no_serialisation(columns: int, first: int, second: int, tmp_path: Path) -> None:
    found = compiled(columns, first, second)
    assert (found.entry, found.log) == ("turns", "")
    (tmp_path / "turns.cubin").write_bytes(found.cubin)
    text = subprocess.run(
        [nvdisasm(), "-c", tmp_path / "turns.cubin"], check=True, capture_output=True, text=True
    ).stdout
    assert len(re.findall(r"\bHGMMA\b", text)) == first + second


def test_a_row_shows_one_warp_of_each_group() -> None:
    words = np.arange(40, dtype=np.uint32).reshape(8, 5)
    assert row(128, (8, 0), 20, words) == (
        " 128  8 +  0  later    20       0     1     2     3     4  |    20    21    22    23    24"
    )


def test_without_a_gpu_it_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    if (code := main()) == 0:
        pytest.skip("there is a GPU")
    assert code == 3
    assert "GPU" in capsys.readouterr().err
