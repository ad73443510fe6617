"""Kernels with ``__syncthreads`` and shared memory alone: each is proved, and refuted with its mistake."""

from dataclasses import replace
from pathlib import Path

import pytest

import pipesim
from tests.support.plain_cuda import PLAIN, PlainKernel

pytest.importorskip("cuda.bindings.nvrtc")


@pytest.mark.sampled(4, 10)
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("kernel", PLAIN, ids=lambda kernel: kernel.name)
def test_it_is_proved_and_refuted_with_its_mistake(kernel: PlainKernel, wrong: bool, tmp_path: Path) -> None:
    found = pipesim.check(kernel.write(tmp_path, wrong=wrong), quick=True)
    assert found.verdict.value == ("refuted" if wrong else "proved")
    assert not wrong or any(place.startswith(f"{kernel.name}.cu:") for place in found.brief.places)
    assert wrong or not found.report.scope.not_judged or kernel.name == "last_block"


@pytest.mark.parametrize("wrong", [False, True])
def test_bytes_that_data_decides_are_in_order_by_barriers_of_the_block_alone(wrong: bool, tmp_path: Path) -> None:
    (histogram,) = (each for each in PLAIN if each.given)
    ptx = replace(histogram, given=False).write(tmp_path, wrong=wrong)
    assert pipesim.check(ptx, quick=True).verdict.value == ("unknown" if wrong else "proved")
