"""no_complete: an arrive.noComplete completes the phase, which PTX leaves undefined."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

NO_COMPLETE = FindingKind(
    FaultKind.NO_COMPLETE,
    what="mbarrier.arrive.noComplete completes the phase, which PTX leaves undefined.",
    ptx="mbarrier.arrive, .noComplete",
    shows="On H100 and H200 the phase completes as with an ordinary arrive; another GPU or compiler may do otherwise.",
    corrected="Use an ordinary arrive for what may be the last arrival of a phase.",
    certainty=Certainty.LETTER,
    example=ProtocolExample("""An arrive that promises not to complete the phase makes its last arrival.

    full = p.mbarriers("full", 1, count=2 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive_no_complete()
"""),
)
