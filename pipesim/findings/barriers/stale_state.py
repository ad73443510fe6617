"""stale_state: a wait by state uses the state of a phase that is neither the current nor the preceding one."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

STALE_STATE = FindingKind(
    FaultKind.STALE_STATE,
    what="A wait by state uses the state of a phase that is neither the current one nor the one before.",
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Only one bit of the phase is compared: the wait may pass too early, or wait for a phase that is long over.",
    corrected=(
        "Use the state that the arrive of this phase returned, before another phase completes; or wait by parity."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""A wait by state is made two phases after the arrive that returned the state.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            state = full[0].arrive()
            if not right:
                full[0].arrive()
            full[0].wait_state(state)
"""),
)
