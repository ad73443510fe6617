"""The kernel without what ``check --redundant`` offers: proved from its own PTX, with a wait less for each tile."""

import pytest

from hwkernels.device.compile import compile_ptx
from hwkernels.twins import find_twin
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.text.read import read_module
from pipesim.targets import find
from tests.support.twin_launches import launch_of

KERNEL, CHANGES = "persistent_scheduler", {"tiles": 4, "k_iters": 1}


def program(*, throttled: bool) -> Program:
    """What the kernel does in a launch, read from its PTX."""
    twin, params = find_twin(KERNEL), {**find(KERNEL).defaults, **CHANGES}
    own = {"PIPESIM_TRACE": 0, "THROTTLE_EMPTY": int(throttled)}
    text = compile_ptx(twin.source, {**twin.defines(params), **own})
    return extract(read_module(text, "kernel.ptx"), launch_of(twin, params)).program


@pytest.mark.slow
def test_the_kernel_without_the_barriers_is_proved_and_waits_less() -> None:
    whole, less = program(throttled=True), program(throttled=False)
    assert [check(each).verdict for each in (whole, less)] == [Verdict.PROVED, Verdict.PROVED]
    waits = [sum(op[0] == Op.WAIT for code in each.code for op in code) for each in (whole, less)]
    assert waits[0] - waits[1] == CHANGES["tiles"]
