"""reinitialised: the barrier is initialised again without an inval."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _one_lane(program: Program, fault: Fault) -> str:
    """The correction of an init that one line makes several times in a row: each lane makes it."""
    code, line = program.code[fault.agent], program.line(fault.agent, fault.pc)
    again = [op == code[fault.pc] and program.line(fault.agent, pc) == line for pc, op in enumerate(code)]
    if fault.pc == 0 or not again[fault.pc - 1]:
        return ""
    lanes = next((n for n, same in enumerate(again[fault.pc :]) if not same), len(code) - fault.pc) + 1
    return f"elect one lane for the init: {lanes} lanes make it, each of them once"


REINITIALISED = FindingKind(
    FaultKind.REINITIALISED,
    what="A barrier is initialised again without mbarrier.inval in between, which PTX does not allow.",
    ptx="mbarrier.init, mbarrier.inval",
    shows=(
        "The barrier is reset silently: arrivals and bytes of the open phase are lost, and those who wait may wait "
        "indefinitely (measured on H100 and H200)."
    ),
    corrected=(
        "Execute mbarrier.inval when all agents are done with the barrier, then init; or keep the barrier, since its "
        "phases repeat by themselves."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    correction=_one_lane,
    example=ProtocolExample("""The barrier gets another count without an inval in between.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].inval()
            full[0].init(2)
"""),
)
