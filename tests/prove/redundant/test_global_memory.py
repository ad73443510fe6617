"""What is not offered of a kernel whose barriers order accesses to global memory."""

import pytest

from pipesim.answers.redundant import redundant
from pipesim.model.finding import Verdict
from pipesim.prove.redundant.kept_proof import Withheld
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target
from tests.support.small_ptx import text_of

#: Each thread stores a word, and loads {other} after the barrier.
MIRRORED = """ ld.param.u64 %rd1, [x];
 mov.u32 %r0, %tid.x;
 sub.u32 %r1, 63, %r0;
 mul.wide.u32 %rd2, %r0, 4;
 mul.wide.u32 %rd3, %r1, 4;
 add.u64 %rd4, %rd1, %rd2;
 add.u64 %rd5, %rd1, %rd3;
 st.global.u32 [%rd4], %r0;
 bar.sync 0;
 ld.global.u32 %r2, [{other}];
 st.global.u32 [%rd4+4096], %r2;
"""


@pytest.mark.parametrize(("other", "withheld"), [("%rd5", Withheld.GLOBAL), ("%rd4", None)])
def test_a_barrier_between_a_store_and_the_load_of_another_warp_is_not_offered(
    other: str, withheld: Withheld | None
) -> None:
    module = read_module(text_of(MIRRORED.format(other=other), ".param .u64 x"), "small.ptx")
    made = extract(module, Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=(Parameter("x", Pointer()),)))
    report = redundant(Target("kernel", None, made.program, {}, "", kernel=made), {})
    assert (report.verdict, report.withheld) == (Verdict.PROVED, withheld)
    assert bool(report.alone) is (withheld is None)
