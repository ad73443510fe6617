"""The work of random kernels: what is inserted changes no operation, no order and no verdict."""

import random

import pytest

from pipesim.model.ops import Op
from pipesim.prove.check import check
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.kernel_ptx import ptx_of
from tests.support.lanes import slow_but
from tests.support.random_kernels import random_kernel
from tools.judge_ptx import read

H200 = load_profile("h200")


@pytest.mark.sampled(10, 24)
@pytest.mark.parametrize("seed", slow_but(range(10), range(40)))
def test_the_program_with_work_is_proved_or_refuted_alike(seed: int) -> None:
    kernel = random_kernel(random.Random(seed))
    found = read(kernel, ptx_of(kernel, seed))
    assert check(found.timed).verdict is check(found.program).verdict
    for stream, before, after in zip(found.streams, found.program.code, found.timed.code, strict=True):
        assert len(stream.runs) == len(stream.code)
        if all(op[0] != Op.JUMP_IF for op in before):  # a jump leads over what was inserted
            assert [op for op in after if op != (Op.WORK, 0)] == list(before)


def test_work_takes_time() -> None:
    kernel = random_kernel(random.Random(1))
    found = read(kernel, ptx_of(kernel, 1))
    assert any(op == (Op.WORK, 0) for code in found.timed.code for op in code)
    assert all(name.partition("/")[0] == "random_kernel" for name in {work.name for work in found.timed.work})
    assert simulate(found.timed, H200).cycles != simulate(found.program, H200).cycles
