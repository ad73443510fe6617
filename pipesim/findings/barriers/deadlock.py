"""deadlock: agents wait indefinitely."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

DEADLOCK = FindingKind(
    "deadlock",
    "agents wait indefinitely",
    what=(
        "No agent can move, and some have not finished: each waits for a phase, a named barrier or a group that needs "
        "something which never comes."
    ),
    ptx="mbarrier: phase completion of the mbarrier object",
    shows=(
        "The kernel hangs: the launch does not end, and nothing reports why. With a time-out around the waits it traps "
        "or returns wrong results."
    ),
    corrected=(
        "Compare the count of the init with the arrivals of a phase, the bytes expected with the bytes copied, and the "
        "parity of the first wait with the phase that it means. Where the agents wait in a circle, one of them has to "
        "arrive before it waits."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""The barrier counts two arrivals, and one is made.

    full = p.mbarriers("full", 1, count=1 if right else 2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("consumer")
    def consumer(_: Warp) -> None:
        full[0].wait(0)
"""),
)
