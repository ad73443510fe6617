"""Small kernels in PTX for tests of the reader's emulation: a body of instructions, one CTA, a few parameters."""

from collections.abc import Sequence
from dataclasses import replace

from pipesim.model.ops import describe
from pipesim.model.program import Program
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.launch.values import Content, Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target, target_of

_HEAD = """.version 8.6
.target {target}
.address_size 64
.visible .entry kernel({params})
{{
 .reg .pred %p<40>;
 .reg .b32 %r<64>;
 .reg .b64 %rd<20>;
 .shared .align 8 .b64 bars[8];
 .shared .align 128 .b8 tile[4096];
"""
#: Lane 0 of warp 0 makes bars[0] (count {first}) and bars[1] (count {count}); all meet.
SET_UP = """ mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 and.b32 %r2, %r0, 31;
 mov.u32 %r3, bars;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], {first};
 mbarrier.init.shared::cta.b64 [%r3+8], {count};
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
"""


def text_of(body: str, params: str = "", target: str = "sm_90a") -> str:
    """A whole file with one kernel."""
    return _HEAD.format(params=params, target=target) + body + " ret;\n}\n"


def program_of(
    body: str,
    warps: int = 2,
    *,
    params: str = "",
    values: Sequence[Content] = (),
    cluster: int = 1,
    target: str = "sm_90a",
) -> Program:
    """The flat program of a kernel of ``warps`` warps and its parameters."""
    return extraction_of(body, warps, params=params, values=values, cluster=cluster, target=target).program


def extraction_of(
    body: str,
    warps: int = 2,
    *,
    params: str = "",
    values: Sequence[Content] = (),
    cluster: int = 1,
    limits: EmulationLimits | None = None,
    target: str = "sm_90a",
) -> Extraction:
    """What is read of that kernel."""
    given = tuple(Parameter("", value) for value in values)
    shape = (cluster, 1, 1)
    launch = Launch("kernel", shape, (32 * warps, 1, 1), shape, parameters=given)
    return extract(read_module(text_of(body, params, target), "small.ptx"), launch, limits)


def kernel_target(body: str, warps: int = 2, ctas: int = 1, cluster: int = 1) -> Target:
    """That kernel as what is checked: of several CTAs, each a cluster, with a pointer ``out``; or of one cluster."""
    if ctas == 1:
        return target_of(program_of(body, warps, cluster=cluster))
    launch = Launch("kernel", (ctas, 1, 1), (32 * warps, 1, 1), parameters=(Parameter("out", Pointer()),))
    made = extract(read_module(text_of(body, ".param .u64 out"), "small.ptx"), launch)
    return replace(target_of(made.program), kernel=made)


def word(value: int | None) -> Content:
    """A 32-bit parameter, None for one that the launch leaves open."""
    return Number("u32", value)


def said(program: Program, warp: int, cta: int = 0) -> list[str]:
    """What the agents of a warp do, in words."""
    return [
        describe(op)
        for agent, code in zip(program.agents, program.code, strict=True)
        if (agent.cta, agent.warp) == (cta, warp)
        for op in code
    ]
