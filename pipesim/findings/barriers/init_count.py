"""init_count: the count of an init is outside 1..1,048,575."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

INIT_COUNT = FindingKind(
    FaultKind.INIT_COUNT,
    what="The count of an init is outside 1 to 1,048,575.",
    ptx="mbarrier: contents of the mbarrier object",
    shows=(
        "Nothing is detected: with a count of 0 the first arrive finds nothing pending, and a larger count spills into "
        "the other fields of the barrier (measured on H100 and H200)."
    ),
    corrected=(
        "Initialise with the number of arrivals that a phase receives; count consumers, not the warps that a "
        "configuration happens to leave out."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    detail=": {fault.found:,}",
    example=ProtocolExample("""The count of the init is 0.

    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        full[0].init(1 if right else 0)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.work(cycles=100)
"""),
)
