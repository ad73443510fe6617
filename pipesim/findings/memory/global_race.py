"""global_race: CTAs access the same bytes of global memory in any order, and one of them writes."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import what_is_forbidden
from pipesim.model.finding import FaultKind

GLOBAL_RACE = FindingKind(
    FaultKind.GLOBAL_RACE,
    what=(
        "Two CTAs of one launch write the same bytes of global memory, or one writes what the other one reads, and "
        "neither learns how far the other one is: nothing orders the two accesses. Atomics may meet atomics; a "
        "strong load and store that are an update may not, since it may be lost. The addresses are those of the "
        "launch file, for all CTAs of the grid."
    ),
    ptx="Memory Consistency Model, Conflict and Data-races",
    shows=(
        "The result depends on which CTA runs first: wrong values in some launches, at the rows or columns where tiles "
        "meet, often only where a size is not a multiple of the tile."
    ),
    corrected=(
        "Let each CTA write bytes of its own: check the stride and the offset by the number of the CTA, and the guard "
        "of the last tile. Where several add to one place, use atomics, or a buffer for each and a second kernel."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " ld.param.u64 %rd1, [out];\n mov.u32 %r4, %ctaid.x;\n mul.wide.u32 %rd2, %r4, 256;\n"
        " add.u64 %rd3, %rd1, %rd2;\n mul.wide.u32 %rd4, %r0, 4;\n add.u64 %rd5, %rd3, %rd4;\n"
        " st.global.u32 [%rd5], %r0;\n",
        ExampleEdit("the rows of two CTAs overlap", "%r4, 256", "%r4, 128"),
        ctas=4,
    ),
)
