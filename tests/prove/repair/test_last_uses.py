"""What is given back after its first use is given back after the last one of the same lap, not of the next."""

from pipesim import Protocol, Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.check import check
from pipesim.prove.repair.changes.other_operands import of_ctas
from pipesim.prove.repair.correction import corrections
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.side_effects import leaves_more
from pipesim.prove.repair.sites import sites_of


def query(given_back: int, laps: int = 3, blocks: int = 3) -> Program:
    p = Protocol("query")
    q, full, empty = p.smem("q", 1, 1024), p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for lap in range(laps):
                empty[0].wait(lap & 1 ^ 1)
                full[0].expect_bytes(1024)
                w.tma_load(q[0], full[0], lap)

    @p.role("math")
    def math(w: Warp) -> None:
        for lap in range(laps):
            full[0].wait(lap & 1)
            for block in range(blocks):
                w.read(q[0], lap)
                if block == given_back:
                    with w.elect_one():
                        empty[0].arrive()

    return p.flatten()


def test_the_last_use_is_that_before_the_next_lap() -> None:
    assert check(query(2)).verdict is Verdict.PROVED
    wrong = query(0)
    assert check(wrong).verdict is Verdict.REFUTED
    arrive = next(site for site in sites_of(wrong, "math") if site.op == Op.ARRIVE)
    use = SourceInstruction(int(Op.READ), "", "q")
    right = apply_repair(wrong, Repair(RepairKind.MOVE, "math", "empty", 2, at=arrive, past=use))
    assert right is not None
    assert check(right).verdict is Verdict.PROVED


def two_uses(first: bool, laps: int = 6, stages: int = 3) -> Program:
    """Each stage is used twice, the second time while the next one is used for the first time."""
    p = Protocol("two")
    q, full, empty = p.smem("q", stages, 1024), p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for lap in range(laps):
                empty[lap % stages].wait(lap // stages & 1 ^ 1)
                full[lap % stages].expect_bytes(1024)
                w.tma_load(q[lap % stages], full[lap % stages], lap)

    @p.role("math")
    def math(w: Warp) -> None:
        for lap in range(laps + 1):
            if lap < laps:
                full[lap % stages].wait(lap // stages & 1)
                w.read(q[lap % stages], lap)
                if first:
                    with w.elect_one():
                        empty[lap % stages].arrive()
            if lap:
                w.read(q[(lap - 1) % stages], lap - 1)
                if not first:
                    with w.elect_one():
                        empty[(lap - 1) % stages].arrive()

    return p.flatten()


def test_the_last_use_is_that_of_the_same_slot() -> None:
    assert check(two_uses(first=False)).verdict is Verdict.PROVED
    wrong, use = two_uses(first=True), SourceInstruction(int(Op.READ), "", "q")
    assert check(wrong).verdict is Verdict.REFUTED
    arrives = SourceInstruction(int(Op.ARRIVE), "", "empty")
    right = apply_repair(wrong, Repair(RepairKind.MOVE, "math", "empty", 4, at=arrives, past=use))
    assert right is not None
    assert check(right).verdict is Verdict.PROVED


def told(last: bool, laps: int = 4) -> Program:
    """What is read in each lap says whether there is another one."""
    p = Protocol("told")
    word, full, empty = p.smem("word", 2, 128), p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, 1)
    q = p.smem("q", 2, 1024)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for lap in range(laps + 1):
                empty[lap % 2].wait(lap // 2 & 1 ^ 1)
                w.write(word[lap % 2], lap)
                if lap < laps:
                    full[lap % 2].expect_bytes(1024)
                    w.tma_load(q[lap % 2], full[lap % 2], lap)
                elif last:
                    full[lap % 2].arrive()

    @p.role("math")
    def math(w: Warp) -> None:
        for lap in range(laps + 1):
            full[lap % 2].wait(lap // 2 & 1)
            w.read(word[lap % 2], lap)
            if lap < laps:
                w.read(q[lap % 2], lap)
            with w.elect_one():
                empty[lap % 2].arrive()

    return p.flatten()


def test_what_is_written_last_is_told_as_well() -> None:
    assert check(told(last=True)).verdict is Verdict.PROVED
    wrong = told(last=False)
    offered = [each.said for refuted in check(wrong).refutations for each in corrections(wrong, refuted, wrong)]
    assert offered == ["load arrives on full once more, after what it writes last: no signal follows that"]


def test_what_comes_after_the_last_use_stays_in_its_lap() -> None:
    right = query(2)
    arrive = next(site for site in sites_of(right, "math") if site.op == Op.ARRIVE)
    use = SourceInstruction(int(Op.READ), "", "q")
    assert apply_repair(right, Repair(RepairKind.MOVE, "math", "empty", 2, at=arrive, past=use)) is None


def halves(written: tuple[int, ...], read: tuple[int, ...]) -> Program:
    """The slots that one agent writes, and then reads."""
    p = Protocol("halves")
    acc = p.smem("acc", 2, 64)

    @p.role("alone")
    def alone(w: Warp) -> None:
        for item, slot in enumerate(written):
            w.write(acc[slot], item)
        for slot in read:
            w.read(acc[slot], max((n for n, each in enumerate(written) if each == slot), default=0))

    return p.flatten()


def test_more_is_left_where_it_is_written_more_often_and_not_read() -> None:
    before = halves((0, 0, 1), (0, 0))
    assert not leaves_more(before, halves((0, 0, 1), (0, 0, 0)))
    assert leaves_more(before, halves((0, 1, 1), (0, 0)))
    assert leaves_more(halves((0,), (0, 1)), halves((0,), (0, 1, 1)))


def pair(wrong: bool) -> Program:
    """Two CTAs, in each a role that arrives on its own CTA's barrier; two more arrive on that of each, or of one."""
    p = Protocol("pair", cluster=2)
    full = p.mbarriers("full", 1, 3)

    @p.role("own")
    def own(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("first")
    def first(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive_cluster(0)

    @p.role("second")
    def second(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive_cluster(0 if wrong else 1)

    @p.role("user")
    def user(_: Warp) -> None:
        full[0].wait(0)

    return p.flatten()


def test_an_arrive_is_meant_for_the_cta_that_gets_the_least() -> None:
    assert check(pair(wrong=False)).verdict is Verdict.PROVED
    ranked = {(each.role, each.value): rank for rank, each in of_ctas(pair(wrong=True)) if each.was < 0}
    assert ranked["second", 1] < ranked["second", 0]
    assert {rank for rank, each in of_ctas(pair(wrong=False)) if each.value >= 0 and each.was < 0} == {6}
