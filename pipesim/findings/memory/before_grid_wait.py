"""before_grid_wait: global memory is accessed before the wait for earlier kernels."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.model.dependent_launch import LaunchAct
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program

#: Why an access is taken to meet an earlier kernel, by the number in the fault; 0 and 1: the launch says it.
WHY = (
    "which an earlier kernel may write",
    "which an earlier kernel may read",
    "and no load of this CTA comes after a wait",
    "which other warps load after a wait",
    "to which this kernel also stores",
    "which an earlier kernel may still use",
)


def _access(program: Program, fault: Fault) -> str:
    each = program.coverage.dependent[fault.found]
    done = "is loaded" if each.kind is LaunchAct.LOAD else "is stored to"
    why = WHY[fault.expected]
    return (
        f": {each.buffer or 'memory'}, {why}, {done}"
        if why[:5] == "which"
        else f": {each.buffer or 'memory'} {done}, {why}"
    )


def _wait(_: Program, fault: Fault) -> str:
    said = "execute griddepcontrol.wait before it, in the same thread or in one that it waits for"
    other = ', or give the buffer "earlier": "none" in the launch file if no earlier kernel uses it'
    return said + (other if fault.expected > 1 else "")


BEFORE_GRID_WAIT = FindingKind(
    FaultKind.BEFORE_GRID_WAIT,
    what=(
        "A kernel that is launched while the kernel before still runs accesses global memory which that may write or "
        "read, and no griddepcontrol.wait of any thread comes before the access in every schedule. The launch file "
        'says which buffers are meant ("earlier"). Without it a store is reported, and a load if the same CTA shows '
        "that it is not meant: no load at all follows a wait, other warps load the buffer after it, or the kernel "
        "stores to the buffer; any other load is an assumption."
    ),
    ptx="griddepcontrol",
    shows="Old data, or data of the kernel before overwritten while it is used; often only on a busy GPU.",
    corrected="Execute the wait before the access, or in a thread for which the accessing one waits.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=_access,
    correction=_wait,
    example=PtxExample(
        " mov.u64 %rd1, 268435456;\n griddepcontrol.wait;\n st.global.u32 [%rd1], %r0;\n",
        ExampleEdit(
            "the store comes before the wait",
            " griddepcontrol.wait;\n st.global.u32 [%rd1], %r0;\n",
            " st.global.u32 [%rd1], %r0;\n griddepcontrol.wait;\n",
        ),
    ),
)
