"""A Triton GEMM that takes its tiles from a counter (`tl.atomic_add`), recorded on an H200: each launch got others."""

from pathlib import Path

import pytest

from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.ptx.kernel import read_kernel
from pipesim.trace.files import read_trace

FOLDER = Path(__file__).parents[2] / "traces" / "h200" / "handed_out"


@pytest.mark.long
@pytest.mark.parametrize("name", ["gemm_dynamic", pytest.param("gemm_dynamic-8", marks=pytest.mark.long)])
def test_it_conforms_with_the_tiles_that_it_got(name: str) -> None:
    """Of a grid of 20, and of one of 8, one CTA is recorded, with what its atomics returned."""
    trace = read_trace(FOLDER / f"{name}.parquet")
    kernel = read_kernel(FOLDER / "gemm_dynamic.ptx", FOLDER / f"{name}.json")
    found = compare_kernel(kernel, trace, name).comparison
    assert trace.meta.device.name == "NVIDIA H200"
    assert sorted(tiles := trace.meta.extra["handed_out"]) == tiles
    assert len(tiles) > 2
    assert (found.agreement, found.conformance.divergence) == (Agreement.CONFORMS, None)
