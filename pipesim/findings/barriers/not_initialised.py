"""not_initialised: the barrier is used before its init."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def _never(program: Program, fault: Fault) -> str:
    """The correction of a barrier that no operation initialises."""
    inits = (op for op in program.operations if op[0] == Op.INIT)
    if fault.barrier < 0 or any(operand(op, "barrier") == fault.barrier for op in inits):
        return ""
    return f"initialise {program.barrier_name(fault.barrier)} in the init: the program never does"


NOT_INITIALISED = FindingKind(
    FaultKind.NOT_INITIALISED,
    what="A barrier is used and nothing orders the use after its init.",
    ptx="mbarrier.init",
    shows=(
        "If the use comes first, the launch usually fails; what the barrier unit finds is whatever the shared memory "
        "held. If the init happens to come first, all is well: so it may fail rarely."
    ),
    corrected=(
        "Initialise the barriers in one thread, then fence.mbarrier_init and __syncthreads(), in a cluster a cluster "
        "barrier, before anyone uses them."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    correction=_never,
    example=ProtocolExample('''One warp initialises the barrier, and nothing makes the other wait for that.

    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].init(1)
        if right:
            w.sync_threads()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            w.sync_threads()
        with w.elect_one():
            full[0].arrive()
'''),
)
