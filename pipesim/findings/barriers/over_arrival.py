"""over_arrival: more arrivals than the phase has pending."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

OVER_ARRIVAL = FindingKind(
    FaultKind.OVER_ARRIVAL,
    what=(
        "An arrive makes more arrivals than the phase has pending. Lanes of a warp that execute it together are one "
        "arrival of as many; it cannot complete two phases."
    ),
    ptx="mbarrier: arrive-on operation on the mbarrier object",
    shows="The launch fails with CUDA_ERROR_LAUNCH_FAILED, and the context is lost (measured on H100 and H200).",
    corrected=(
        "Let one lane arrive (elect_one), or initialise the barrier with the number of all arrivals of a phase. If an "
        "agent arrives for the next phase too early, let it wait for the present one first."
    ),
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    detail=": {fault.found} arrive, {fault.expected} pending",
    example=ProtocolExample("""All 32 lanes arrive where one arrival is pending.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        if right:
            with w.elect_one():
                full[0].arrive()
        else:
            full[0].arrive()
"""),
)
