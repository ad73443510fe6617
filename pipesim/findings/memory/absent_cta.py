"""absent_cta: a thread accesses the shared memory of a CTA that may not have started, or may have exited."""

from pipesim.explain.operation_words import memory_name
from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _memory(program: Program, fault: Fault) -> str:
    when = "what comes before its end is too weak" if fault.expected else "nothing of it comes before"
    return f": {memory_name(program, fault.found)}; {when}"


ABSENT_CTA = FindingKind(
    FaultKind.ABSENT_CTA,
    what=(
        "A thread of a kernel accesses the shared memory of another CTA of its cluster, and nothing that this CTA does "
        "comes before, so that it may not have started; or it exits after no more than a relaxed operation, so that "
        "the access may not have ended."
    ),
    ptx="barrier.cluster; CUDA C++ Programming Guide, Distributed Shared Memory",
    shows="Nothing in most launches: the CTAs of a cluster start together. Else what is stored is lost, or elsewhere.",
    corrected=(
        "Let all CTAs of the cluster meet before the first access (barrier.cluster.arrive.relaxed is enough there) and "
        "after the last one, by barrier.cluster.arrive and .wait in their default order."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    detail=_memory,
    example=PtxExample(
        " mov.u32 %r5, %cluster_ctarank;\n xor.b32 %r5, %r5, 1;\n mapa.shared::cluster.u32 %r6, tile, %r5;\n"
        " setp.ne.u32 %p1, %r0, 0;\n barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n"
        " @!%p1 st.shared::cluster.u32 [%r6], %r5;\n"
        " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n",
        ExampleEdit(
            "the CTAs do not meet first",
            "%r0, 0;\n barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n",
            "%r0, 0;\n",
        ),
        warps=1,
        cluster=2,
    ),
)
