"""Likely corrections: what they do, their words and lines, their limits, and that nothing else is offered."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Engine, Op, Order
from pipesim.model.program_json import loads
from pipesim.prove.check import check
from pipesim.prove.repair import correction
from pipesim.prove.repair.applicable import repairs
from pipesim.prove.repair.correction import Correction, corrections
from pipesim.prove.repair.edits import apply_repair, place_of
from pipesim.prove.repair.kinds import OF_WORDS, Repair, RepairKind
from tests.support.mistakes import BROKEN
from tests.support.mistakes.kernel_mistakes import KERNEL_MISTAKES
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.ring_mistakes import RING_MISTAKES
from tests.support.offered import offered_for

K = RepairKind
FULL, EMPTY = "full", "empty"
#: Offered for a twin of a ready-made protocol (tests/protocols/test_corrected_twins.py, test_nearest_slip.py).
IN_READY_MADE = {RepairKind.PEERS, RepairKind.REGISTERS}
#: Offered for kernels only (tests/answers/test_led_past.py, test_kernel_corrections.py).
OF_KERNELS = {RepairKind.SLIP, RepairKind.NOT_PAST, RepairKind.TENSOR_WAIT}


@pytest.mark.long
def test_every_kind_of_correction_is_offered_for_some_mistake() -> None:
    found = {each.repair.kind for name in RING_MISTAKES | KERNEL_MISTAKES for each in offered_for(name)[1]}
    assert set(RepairKind) - found == IN_READY_MADE | OF_KERNELS | OF_WORDS


def test_nothing_is_offered_that_mends_the_small_program_only() -> None:
    """A ring of nine tiles whose consumer is one arrival short is not mended by what mends one of three tiles."""
    small = BROKEN["empty_count_too_high"](stages=2, tiles=3).flatten()
    (found,) = check(small).refutations
    assert [each.repair.kind for each in corrections(small, found, small)] == [K.COUNT]
    still_wrong = BROKEN["consumer_never_arrives"](stages=2, tiles=9).flatten()
    assert corrections(small, found, still_wrong) == ()


def test_nothing_is_tried_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    program = BROKEN["empty_count_too_high"]().flatten()
    (found,) = check(program).refutations
    assert corrections(program, found, program)
    assert corrections(program, found, program, most=0) == ()
    monkeypatch.setattr(correction, "MOST_ASKED", 5)
    assert corrections(program, found, program) == ()


def test_a_correction_in_words_with_its_line() -> None:
    program = BROKEN["expects_half"]().flatten()
    found, *_ = check(program).refutations
    (offered,) = corrections(program, found, program)
    assert offered == Correction(
        Repair(K.EXPECT, "producer", FULL, 64, 32),
        "producer expects 64 bytes on full instead of 32: as many as are copied",
        offered.line,
        offered.line,
    )
    assert "ring.py:" in offered.line


def test_what_is_left_out_at_the_end_has_its_own_line() -> None:
    protocol = Protocol("last")
    bars = protocol.mbarriers("bar", 1, 1)

    @protocol.role("only")
    def only(w: Warp) -> None:
        bars[0].arrive()

    program = protocol.flatten()
    place = place_of(program, Repair(K.DROP, "only", "bar"))
    assert place == program.line(0, len(program.code[0]) - 1)
    assert "test_correction.py:" in place


def test_a_right_ring_could_be_changed_in_many_ways_and_stays_a_program() -> None:
    """Every correction on the list of a right ring makes a program or nothing, and most make it wrong."""
    program = right_ring().flatten()
    ranked = list(repairs(program, frozenset({EMPTY})))
    tried = [repair for _, repair in ranked]
    assert len(tried) == len(set(tried)) > 20
    ranks = [rank for rank, _ in ranked]
    assert ranks == sorted(ranks), "the likeliest come first"
    assert ranked[0][1].group == EMPTY, "and of those the ones about the group"
    verdicts = [check(right, 500).verdict for repair in tried if (right := apply_repair(program, repair)) is not None]
    assert verdicts.count(Verdict.REFUTED) > 5


def test_what_a_change_does_to_the_operations() -> None:
    program = right_ring(stages=1, tiles=2).flatten()
    producer = [op for op in program.code[0] if op[0] in (Op.WAIT, Op.ARRIVE)]
    assert [op[:4] for op in producer] == [(8, 1, 1, 0), (3, 0, 1, 64), (8, 1, 0, 0), (3, 0, 1, 64)]
    consumer = [op for op in program.code[1] if op[0] in (Op.WAIT, Op.READ, Op.ARRIVE)]
    assert [op[0] for op in consumer] == [Op.WAIT, Op.READ, Op.ARRIVE] * 2

    def ops(repair: Repair, agent: int) -> list[tuple[int, ...]]:
        after = apply_repair(program, repair)
        assert after is not None
        return [op for op in after.code[agent] if op[0] in (Op.WAIT, Op.READ, Op.ARRIVE)]

    assert [op[2] for op in ops(Repair(K.PHASES, "producer", EMPTY, 0), 0) if op[0] == Op.WAIT] == [0, 1]
    assert [op[0] for op in ops(Repair(K.DROP, "consumer", EMPTY, 0), 1)] == [Op.WAIT, Op.READ] * 2
    assert [op[3] for op in ops(Repair(K.EXPECT, "producer", FULL, 32), 0) if op[0] == Op.ARRIVE] == [32, 32]
    assert apply_repair(program, Repair(K.PHASES, "producer", EMPTY, 1)) is None, "it is so already"
    assert apply_repair(program, Repair(K.DROP, "consumer", EMPTY, 1)) is None, "nothing is repeated"
    assert apply_repair(program, Repair(K.ARRIVE, "consumer", EMPTY)) is None, "it arrives already"
    assert apply_repair(program, Repair(K.LATER, "consumer", EMPTY)) is None, "it is behind the read"
    silent = replace(program, code=(program.code[0], tuple(op for op in program.code[1] if op[0] != Op.ARRIVE)),
                     lines=(program.lines[0], tuple(
                         at for op, at in zip(program.code[1], program.lines[1], strict=True) if op[0] != Op.ARRIVE
                     )))  # fmt: skip
    again = apply_repair(silent, Repair(K.ARRIVE, "consumer", EMPTY))
    assert again is not None
    assert again.code == program.code
    assert place_of(silent, Repair(K.ARRIVE, "consumer", EMPTY)).rpartition("/")[2].startswith("ring.py:")
    assert place_of(program, Repair(K.LATER, "consumer", EMPTY)) == ""


@pytest.mark.slow
def test_a_group_may_have_other_stages_in_another_cta() -> None:
    """A program in which three stages of a group are in one CTA and the fourth is in the other one."""
    text = Path(__file__).with_name("uneven_ctas.json").read_text(encoding="utf-8")
    program = loads(text)
    for each in check(program).refutations:
        corrections(program, each, program)
    assert apply_repair(program, Repair(K.CARRY, "r0", "b", was=2)) is None


def products(given: int, left: int = 0, out: int = 2) -> Protocol:
    """Products of tiles in a ring of three, and their sums in a ring of ``out``, which another warp reads.

    ``given``: the stage that is given back for each product is 0 its own, 1 the one before, 2 that of its sums.
    ``left``: the products that may be under way then.
    """
    p = Protocol("products")
    a, sums, tiles, stages = p.smem("a", 3, 128), p.smem("sums", out, 128), 7, 3
    full, empty = p.mbarriers("full", stages), p.mbarriers("empty", stages)
    ready, free = p.mbarriers("ready", out), p.mbarriers("free", out)

    @p.init
    def init() -> None:
        for each in (*full, *free):
            each.init(1)
        for each in (*empty, *ready):
            each.init(4)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for n in w.loop(tiles, "tiles"):
                empty[n % stages].wait(1 - n // stages % 2)
                full[n % stages].expect_bytes(128)
                w.tma_load(a[n % stages], full[n % stages], n)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        for n in w.loop(tiles, "tiles"):
            full[n % stages].wait(n // stages % 2)
            w.mma(Engine.WGMMA, reads=[(a[n % stages].part(32 * w.index, 32), n)], writes=[], cycles=128)
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, left)
            free[n % out].wait(1 - n // out % 2)
            w.write(sums[n % out].part(32 * w.index, 32), n)
            with w.elect_one():
                if given != 1 or n:
                    empty[(n, n - 1, n % out)[given] % stages].arrive()
                ready[n % out].arrive()
        w.wait_group(Engine.WGMMA)

    @p.role("store")
    def store(w: Warp) -> None:
        for n in w.loop(tiles, "tiles"):
            ready[n % out].wait(n // out % 2)
            w.read(sums[n % out], n)
            with w.elect_one():
                free[n % out].arrive()

    return p


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "right", "offered"),
    [
        (
            (2, 0),
            (0, 0),
            "math: the arrive on empty (test_correction.py:{}) is for all stages in turn, not those of a ring of 2",
        ),
        (
            (0, 1),
            (1, 1),
            (
                "math executes the arrive on empty one iteration later, after the next wait for its wgmmas"
                " (test_correction.py:{})"
            ),
        ),
    ],
)
def test_a_stage_that_is_given_back_is_that_of_its_own_ring_and_not_too_early(
    wrong: tuple[int, int], right: tuple[int, int], offered: str
) -> None:
    program = products(*wrong).flatten()
    assert check(products(*right).flatten()).verdict is Verdict.PROVED
    (found, *_) = check(program).refutations
    given = [re.sub(r":\d+", ":{}", each.said) for each in corrections(program, found, program)]
    assert given == [offered]


def test_a_relaxed_arrive_at_the_cluster_is_corrected() -> None:
    p = Protocol("relaxed", cluster=2)
    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("writer")
    def writer(w: Warp) -> None:
        w.write(tile[0], item=w.cta)
        w.cluster_arrive(Order.RELAXED)
        w.cluster_wait()

    @p.role("reader")
    def reader(w: Warp) -> None:
        w.cluster_sync()
        w.read(tile[0], item=w.cta)

    program = p.flatten()
    found = check(program).refutations[0]
    assert {each.repair.kind for each in corrections(program, found, program)} == {K.STRONGER}
