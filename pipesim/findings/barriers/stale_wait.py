"""stale_wait: a wait returns with a phase that its agent has been given before, and old data is read again."""

from pathlib import PurePath

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import who_at
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _instead(program: Program, fault: Fault) -> str:
    """Which phase, given to which wait, and what is left unread."""
    earlier = PurePath(program.line(fault.cause_agent, fault.cause_pc)).name
    given = f": phase {fault.found}, which its wait{f' at {earlier}' if earlier else ''} was given"
    copy = program.code[fault.other_agent][fault.other_pc]
    access = next(iter(program.accesses_of(copy)))
    left = f"{program.access_name(access)} of {who_at(program, fault.other_agent, fault.other_pc)}"
    return f"{given}; what it reads then it has read and handed back, and {left} is not read"


STALE_WAIT = FindingKind(
    FaultKind.STALE_WAIT,
    what=(
        "An agent waits again for a phase of an mbarrier that it has been given before, and reads again what it has "
        "read and handed back, while what was delivered later is never read: its stage and its parity have begun "
        "again, and those of the producer have not."
    ),
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Wrong results: a tile is computed from the data of an earlier one. No wait hangs and nothing traps.",
    corrected="Carry the stage and the parity on from tile to tile, as the producer does.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.RUN,
    causes_itself=True,
    detail=_instead,
    example=ProtocolExample("""The consumer begins with the first stage again at the second tile.

    tile = p.smem("tile", slots=2, nbytes=64)
    full, empty = p.mbarriers("full", 2, count=1), p.mbarriers("empty", 2, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for stage in range(2):
                empty[stage].wait(1)
                full[stage].expect_bytes(64)
                w.tma_load(tile[stage], full[stage], item=stage)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for turn in range(2):
            stage = turn if right else 0
            full[stage].wait(0)
            w.read(tile[stage])
            with w.elect_one():
                empty[stage].arrive()
"""),
)
