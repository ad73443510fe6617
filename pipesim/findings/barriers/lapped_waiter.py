"""lapped_waiter: a deadlock of agents that wait for phases, and for which no other agent waits."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

LAPPED_WAITER = FindingKind(
    "lapped_waiter",
    "an agent for which no other one waits misses a phase, and waits indefinitely",
    what=(
        "A parity tells a phase from the one before and the one after it, and no more. An agent that waits in every "
        "lap of a ring, and does nothing for which the others wait, can be late: when two phases have completed before "
        "it looks, it asks for a parity that is not the current one any more, and waits for a phase that may never "
        "come."
    ),
    ptx="mbarrier.test_wait, mbarrier.try_wait: .parity",
    shows=(
        "Mostly nothing: an agent with little to do is early. Where it is held up for a lap, by a debugger, a trap "
        "handler, preemption or a busy scheduler, the kernel hangs at its end, where all threads meet."
    ),
    corrected=(
        "Let one warp wait, the one that fills or reads the stage; or let each of the others arrive on what is waited "
        "for before the stage is used again, and count them in its init."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""The second warp of the producer waits for every empty stage, and copies nothing.

    tile = p.smem("tile", 1, 64)
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)

    @p.role("producer", warps=2)
    def producer(w: Warp) -> None:
        for n in range(3):
            if w.index == 0 or not right:
                empty[0].wait((n + 1) % 2)
            if w.index == 0:
                with w.elect_one():
                    full[0].expect_bytes(64)
                    w.tma_load(tile[0], full[0], n)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for n in range(3):
            full[0].wait(n % 2)
            w.read(tile[0], n)
            with w.elect_one():
                empty[0].arrive()
"""),
)
