"""Which programs the interpreter refuses, with the reason; the right twin of each runs."""

from typing import Any

import pytest

from hwkernels.interpreter.able import unable
from pipesim.model.ops import Fence, Space
from pipesim.model.program import Program
from pipesim.model.tables import Access, Agent, Barrier
from tests.support.small_programs import build

ALL = (1 << 32) - 1
TWO: dict[str, Any] = {
    "barriers": (Barrier(0, "b", 0), Barrier(1, "b", 0)),
    "accesses": (Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 1, 0, 64)),
    "ctas": 2,
    "agents": (Agent(0, 0, ALL, "a", 0), Agent(1, 0, ALL, "b", 0)),
}


def test_what_it_runs() -> None:
    assert unable(build("TMA_LOAD item=0; ARRIVE expect=64", "WAIT; READ item=0")) == ""
    assert unable(build("ARRIVE barrier=1", "WORK", **TWO)) == ""
    assert unable(build("ARRIVE register=0; PENDING_COUNT state_register=0 register=1; WAIT_STATE register=0")) == ""
    assert unable(build("TRANSFER_WRITE engine=CP_ASYNC item=0; CP_ASYNC_ARRIVE noinc=1")) == ""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (build("COMMIT engine=TCGEN05 barrier=0"), "it uses tcgen05"),
        (build("COMMIT engine=CP_ASYNC barrier=0"), "a commit arrives on an mbarrier"),
        (build("READ", accesses=(Access(Space.TENSOR, 0, 0, 64),)), "it uses tensor memory"),
        (build("WAIT barrier=1", "WORK", **TWO), "WAIT is on an mbarrier of another CTA"),
        (build("ARRIVE barrier=1 register=0", "WORK", **TWO), "an arrive on an mbarrier of another CTA keeps a state"),
        (build("WORK; INIT barrier=1", "WORK", **TWO), "an mbarrier of another CTA is initialised later than"),
        (build("TMA_LOAD barrier=0 access=1 item=0", "WORK", **TWO), "a copy signals an mbarrier of another CTA"),
        (build("TMA_LOAD bytes=32 item=0"), "a copy counts other bytes than it writes"),
        (build("BAR_SYNC threads=32", "WORK", **TWO, named_barriers=((1, 1),)), "a named barrier is another CTA's"),
        (build("CP_ASYNC_ARRIVE lanes=1"), "some lanes of a warp arrive for their cp.async"),
        (build("PENDING_COUNT register=0 state_register=1"), "a register that is asked for the state of an mbarrier"),
        (build("TRY_WAIT register=0; WAIT_STATE register=0"), "a register that is asked for the state of an mbarrier"),
        (build("WAIT_GROUP engine=BULK groups=8"), "it waits for all but more than 7 groups"),
        (build(f"FENCE fence={int(Fence.PROXY_TENSORMAP)}"), "it uses the fence PROXY_TENSORMAP"),
        (build("TRANSFER_READ engine=CP_ASYNC"), "cp.async reads shared memory"),
        (build("TRANSFER_WRITE engine=BULK item=0"), "a bulk copy of a group writes shared memory"),
        (build("TRANSFER_WRITE engine=WGMMA item=0"), "a wgmma writes shared memory"),
        (build("TRANSFER_READ engine=BULK access=1", "WORK", **TWO), "an engine works on the memory of another CTA"),
        (build("TRANSFER_READ engine=WGMMA"), "a wgmma is not of the four warps of a warp group"),
        (build("WORK", "WORK", agents=(Agent(0, 0, 1, "a", 0), Agent(0, 0, 2, "b", 0))), "its warps have several"),
        (build("WORK", agents=(Agent(0, 31, ALL, "a", 0),)), "a CTA has more than 31 warps"),
        (build("WORK", cut=(0,)), "a part of it was not read"),
        (build("READ", accesses=(Access(Space.SHARED, 0, 0, 231_000),)), "its CTA has no 2,048 bytes of shared memory"),
    ],
)  # fmt: skip
def test_what_it_refuses(program: Program, reason: str) -> None:
    assert unable(program).startswith(reason)


def test_a_warp_group_runs_its_products_together() -> None:
    products = "TRANSFER_READ engine=WGMMA; COMMIT engine=WGMMA barrier=-1; WAIT_GROUP engine=WGMMA"
    assert unable(build(*[products] * 4)) == ""
    assert unable(build(*[products] * 3, f"{products}; {products}")).startswith("a wgmma is not of the four warps")
    assert unable(build(*[f"TRY_WAIT register=0; JUMP_IF register=0 value=1 skip=1; WORK; {products}"] * 4)).startswith(
        "a warp group with wgmma decides"
    )
