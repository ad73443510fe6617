"""What is held up in a schedule is what the schedule needs, not whatever happens to wait for longest."""

from pipesim import Protocol, Warp
from pipesim.prove.check import check
from pipesim.prove.counterexample.late import late_of


def test_an_agent_without_a_part_in_a_race_is_not_named() -> None:
    """The reader frees the tile before it reads it; another role, which meets nobody, may be late at will."""
    p = Protocol("frees_too_early")
    tile, full, empty = p.smem("tile", 1, 64), p.mbarriers("full", 1), p.mbarriers("empty", 1)

    @p.init
    def init() -> None:
        full[0].init(1)
        empty[0].init(1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for lap in range(3):
                empty[0].wait(lap % 2 ^ 1)
                full[0].expect_bytes(64)
                w.tma_load(tile[0], full[0], item=lap)

    @p.role("reader")
    def reader(w: Warp) -> None:
        with w.elect_one():
            for lap in range(3):
                full[0].wait(lap % 2)
                empty[0].arrive()
                w.read(tile[0], item=lap)

    @p.role("other")
    def other(w: Warp) -> None:
        w.work(10)

    program = p.flatten()
    refuted = check(program).refutations[0]
    late = late_of(program, refuted)
    assert late is not None
    assert late.agent == "reader"
    assert not late.transfer
