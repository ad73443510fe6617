"""Any trip count: proved where a loop is a loop, and nowhere else; what is said of every value holds for later ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.answers.any_size import Families, family, trip_counts
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import AT, Engine, Fence, Op
from pipesim.model.program import Program
from pipesim.prove.any_size.family import Family, ProvedRange, Stop, repeated_laps
from pipesim.prove.any_size.laps import NUMBERINGS, Outline, each_holds, holds, items_are_even, place_laps
from pipesim.targets import Target, find, target_of
from tests.support.lanes import long_after, slow_after
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import Ring, ring

#: One of each protocol, then others of the same.
PINNED = {
    ("producer_consumer", "tiles", ()): ProvedRange("tiles", 0, 37, 21, 8),
    ("cluster_multicast", "tiles", ()): ProvedRange("tiles", 0, 41, 25, 8),
    ("persistent_scheduler", "tiles", ()): ProvedRange("tiles", 0, 19, 11, 4),
    ("gemm_sm90", "tiles", (("k_iters", 8),)): ProvedRange("tiles", 0, 10, 6, 2),
    ("attention_sm90", "kv_blocks", ()): ProvedRange("kv_blocks", 0, 20, 12, 4),
    ("attention_sm90_fused", "kv_blocks", ()): ProvedRange("kv_blocks", 0, 25, 15, 5),
    ("conv_epilogue", "tiles", (("first_tile_only", 1), ("k_iters", 4), ("fence", 1))): ProvedRange(
        "tiles", 0, 20, 12, 4
    ),
    ("cutlass_sm90_cooperative", "tiles", (("k_tiles", 8),)): ProvedRange("tiles", 0, 10, 6, 2),
    ("producer_consumer", "tiles", (("stages", 1),)): ProvedRange("tiles", 0, 9, 5, 2),
    ("attention_sm90", "kv_blocks", (("fused", 1), ("stages", 4))): ProvedRange("kv_blocks", 0, 19, 11, 4),
    ("attention_sm90_fused", "kv_blocks", (("stages", 2),)): ProvedRange("kv_blocks", 0, 10, 6, 2),
    ("attention_sm90_fused", "kv_blocks", (("stages", 3),)): ProvedRange("kv_blocks", 0, 15, 9, 3),
}


def of(target: Target, parameter: str, **params: int) -> Family:
    return family(target, params, parameter)


def renumbered(program: Program, numbers: Sequence[int]) -> Outline:
    def of(op: tuple[int, ...]) -> tuple[int, ...]:
        at = AT["item"].get(op[0], -1)
        return op if at < 0 or op[at] < 0 else (*op[:at], numbers[op[at]], *op[at + 1 :])

    return Outline(replace(program, code=tuple(tuple(map(of, code)) for code in program.code)))


def test_only_which_items_are_equal_matters_for_the_laps() -> None:
    """A PTX reader's numbers say when warps came there, which differs by size."""
    target = find("producer_consumer")
    programs = [target.build({"tiles": tiles}) for tiles in (21, 29, 37)]
    short, long, longest = map(Outline, programs)
    worth = {tuple(b - a for a, b in zip(short.lengths, long.lengths, strict=True)): 8}
    laps = place_laps(short, long, [lap for lap, _ in repeated_laps(short.program, worth)])
    assert laps is not None
    one, two, three = (
        renumbered(each, [(7 * item + 3 * n) % 64 for item in range(64)]) for n, each in enumerate(programs)
    )
    wrong = renumbered(longest.program, [*range(31), 30, *range(32, 64)])
    for last, found in ((three, [False, True]), (wrong, [False, False])):
        assert [items_are_even([*map(each, (one, two, last))], laps) for each in NUMBERINGS] == found


def test_a_longer_program_follows_the_rule_of_the_numbers_that_the_shorter_ones_follow() -> None:
    """Not one of numbers in their order in two of them, here 10 and 12 tiles, which that of 14 does not follow: by it
    the consumer of 26 expects other tiles than are loaded."""

    def built(
        tiles: int, load: Callable[[int], int], read: Callable[[int], int], write: Callable[[int], int]
    ) -> Program:
        r = ring("ring", 1, tiles)
        beside = r.p.smem("beside", slots=1, nbytes=64)

        @r.role("consumer")
        def consumer(w: Warp) -> None:
            for i in range(tiles):
                r.of_full(i).wait(r.phase(i))
                w.read(r.tile[0], read(i) if i > 4 else i)
                if i > 4:
                    w.write(beside[0], write(i))
                r.release(i)

        @r.role("producer")
        def producer(w: Warp) -> None:
            for i in range(tiles):
                r.acquire(i)
                r.of_full(i).expect_bytes(64)
                w.tma_load(r.tile[0], r.of_full(i), load(i) if i > 4 else i)

        return r.p.flatten({})

    looked = Family("tiles", lambda n: built(n, int, int, lambda i: 2 * i - 4))
    every = looked.verdict()
    assert every == ProvedRange("tiles", 0, 14, 10, 2)
    assert looked.covers(every, 26, built(26, int, int, lambda i: 2 * i - 4))
    assert looked.covers(every, 26, built(26, lambda i: 90 - i, lambda i: 90 - i, lambda i: 94 - 2 * i))
    loads = [(3 * i - 5) // 2 if i % 2 else max(i - 1, 6) for i in range(26)]
    reads = [loads[i] if i % 2 or i == 24 else i // 2 + 3 for i in range(26)]
    wrong = built(26, loads.__getitem__, reads.__getitem__, lambda i: (3 * i - 3) // 2)
    assert not holds(wrong)
    assert not looked.covers(every, 26, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter", "params"), long_after(1, slow_after(2, PINNED)))
def test_every_number_of_trips_is_proved(name: str, parameter: str, params: tuple[tuple[str, int], ...]) -> None:
    target = find(name)
    looked = of(target, parameter, **dict(params))
    every = looked.verdict()
    assert every == PINNED[name, parameter, params]
    assert every.lap
    for value in (every.checked + 1, every.checked + 2 * every.lap + 1):
        program = target.build({**dict(params), parameter: value})
        assert looked.covers(every, value, program)
        assert holds(program)


@pytest.mark.slow
def test_no_wrong_twin_is_right_for_every_number_of_trips() -> None:
    right = set()
    for name, function in BROKEN.items():
        target = target_of(function)
        for parameter in trip_counts(target, {}, target.build()):
            said = of(target, parameter).verdict()
            if said.lap:
                right.add(name)
            else:
                assert (said.why, said.fails) == (Stop.NOT_RIGHT, said.checked + 1)
    assert right == {"producer_runs_on"}  # nothing is wrong but a copy under way at the exit


def ring_of(
    tiles: int, *, stages: int = 2, at: int = 1 << 30, late: Callable[[Ring, Warp, int], None] | None = None,
    ahead: int = 0,
) -> Protocol:  # fmt: skip
    """A ring whose producer does more from tile ``at`` on, and tests ``ahead`` whether a stage is free."""
    r = ring("ring", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            if ahead and i + ahead < tiles:
                r.of_empty(i + ahead).test_wait(r.phase(i + ahead) ^ 1)
            r.acquire(i)
            if i >= at and late is not None:
                late(r, w, i)
            r.load(w, i)

    r.right_consumer()
    return r.p


def rings(**settings: object) -> Family:
    return Family("tiles", lambda n: ring_of(n, **settings).flatten({}))  # type: ignore[arg-type]


def ring_in_rows(steps: int) -> Program | None:
    """A ring of four stages, gone through in three rows that a fence ends; of up to 46 steps a row."""
    r = ring("ring", 4, 3 * steps)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(3 * steps):
            r.acquire(i)
            r.load(w, i)
            if (i + 1) % steps == 0:
                w.fence(Fence.ACQ_REL)

    r.right_consumer()
    return r.p.flatten({}) if 0 < steps < 47 else None


@pytest.mark.slow
def test_a_loop_in_rows_is_proved_from_fewer_steps_where_more_are_too_many() -> None:
    """From 24 on 47 steps would have to be looked at."""
    assert Family("steps", ring_in_rows).verdict() == ProvedRange("steps", 1, 45, 22, 8)


def counting_down(tiles: int) -> Protocol:
    """A ring whose tiles are numbered from the last to the first, so that every item differs from size to size."""
    r = ring("ring", 2, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(64)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), tiles - i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.read(r.tile[r.slot(i)], tiles - i)
            r.of_empty(i).arrive()

    return r.p


def test_items_that_differ_between_sizes_are_looked_at_two_laps_on() -> None:
    """A lap's worth of sizes like the first are seen with one lap more; others with two."""
    assert rings().verdict() == ProvedRange("tiles", 0, 19, 11, 4)
    looked = Family("tiles", lambda n: counting_down(n).flatten({}))
    every = looked.verdict()
    assert every == ProvedRange("tiles", 0, 22, 11, 4)
    assert looked.covers(every, 70, counting_down(70).flatten({}))
    other_names = ring_of(70).flatten({})
    assert looked.covers(every, 70, other_names)
    assert not looked.covers(every, 70, renumbered(other_names, [*range(31), 30, *range(32, 71)]).program)


def wait_again(r: Ring, w: Warp, i: int) -> None:
    r.acquire(i)


def test_what_changes_far_out_is_no_later_program_of_the_family() -> None:
    looked = rings(at=60, late=wait_again)
    every = looked.verdict()
    assert every.lap
    assert looked.covers(every, 59, ring_of(59).flatten({}))
    assert not looked.covers(every, 70, ring_of(70, at=60, late=wait_again).flatten({}))
    assert not looked.covers(every, 70, ring_of(69).flatten({}))
    assert looked.covers(every, 5, ring_of(5).flatten({}))
    assert not looked.covers(every, 5, ring_of(5, at=4, late=wait_again).flatten({}))


def late_ring(tiles: int = 8) -> Protocol:
    """A ring whose producer waits once more from tile 60 on."""
    return ring_of(tiles, at=60, late=wait_again)


def test_a_program_that_went_another_way_takes_back_every_value() -> None:
    target = target_of(late_ring)
    for tiles, ranges in {
        60: (ProvedRange("tiles", 0, 19, fails=95, why=Stop.CHANGES),),
        61: (ProvedRange("tiles", 0, 19, why=Stop.OTHERWISE),),
    }.items():
        assert Families(target, {"tiles": tiles}, target.build({"tiles": tiles})).ranges(1) == ranges


def test_a_value_that_is_left_out_is_none_that_was_run() -> None:
    with_a_gap = Family("tiles", lambda n: ring_of(n).flatten({}) if n != 5 else None)
    assert (rings().verdict(), with_a_gap.verdict()) == (
        ProvedRange("tiles", 0, 19, 11, 4),
        ProvedRange("tiles", 6, 19, 11, 4),
    )


def multiplied(tiles: int, *, waits: bool) -> Program:
    """A ring whose tiles are read by products, which arrive on its mbarriers, with a wait for all groups at the end.

    ``waits``: the producer waits for a product before it loads the next tile.
    """
    r = ring("products", 2, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            if waits or i < 2:
                r.acquire(i)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.mma(Engine.TCGEN05, reads=[(r.tile[r.slot(i)], i)])
            w.commit(Engine.TCGEN05, r.of_empty(i))

    made = r.p.flatten({})
    if not tiles:
        return made
    *others, last = made.code
    groups = (int(Op.COMMIT), int(Engine.TCGEN05), -1), (int(Op.WAIT_GROUP), int(Engine.TCGEN05), 0)
    lines = (*made.lines[:-1], made.lines[-1] + made.lines[-1][:2])
    return replace(made, code=(*others, (*last, *groups)), lines=lines)


@pytest.mark.parametrize("waits", [True, False])
def test_products_that_mbarriers_tell_of_are_not_remembered_until_a_wait_for_groups(*, waits: bool) -> None:
    """Else no state of the run would repeat an earlier one: each had one product more under way."""
    said = Family("tiles", lambda n: multiplied(n, waits=waits)).verdict()
    if waits:
        assert said.lap == 4
    else:
        assert said.why is Stop.NOT_RIGHT


@pytest.mark.slow
def test_tables_that_change_are_no_loop() -> None:
    said = Family("tiles", lambda n: ring_of(n, stages=3 if n % 2 else 2).flatten({})).verdict()
    assert not said.lap
    assert (said.least, said.fails, said.why) == (0, -1, Stop.NO_LOOP)


def test_a_value_that_does_not_exist_ends_the_family() -> None:
    said = Family("tiles", lambda n: ring_of(n).flatten({}) if n < 9 else None).verdict()
    assert said == ProvedRange("tiles", 0, 6, why=Stop.NO_LOOP)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(stages=st.integers(1, 4), ahead=st.integers(0, 3), first=st.integers(0, 30), rest=st.integers(0, 40))
def test_a_fork_says_what_a_run_of_its_own_says(stages: int, ahead: int, first: int, rest: int) -> None:
    programs = [ring_of(n, stages=stages, ahead=ahead).flatten({}) for n in range(first, first + rest, 7)]
    assert each_holds([Outline(program) for program in programs]) == [holds(program) for program in programs]


def test_a_fork_of_what_goes_wrong_late_goes_wrong() -> None:
    values = range(12)
    programs = [target_of(BROKEN["consumer_never_arrives"]).build({"stages": 4, "tiles": n}) for n in values]
    assert each_holds([Outline(program) for program in programs]) == [n <= 4 for n in values]


def nested(tiles: int, k_iters: int, *, more: int = 0, skip: int = 0) -> Protocol:
    """A ring through which every tile passes in ``k_iters`` steps, the last one in ``more`` times as many again."""
    p = Protocol("nested")
    stages = 2
    tile = p.smem("tile", slots=stages, nbytes=64)
    full, empty = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            i = 0
            for t in w.loop(tiles, "tiles"):
                for _ in w.loop(k_iters * (1 + more * (t == tiles - 1)), "k_iters"):
                    empty[i % stages].wait(i // stages + 1 & 1)
                    full[i % stages].expect_bytes(64)
                    w.tma_load(tile[i % stages], full[i % stages], i)
                    i += 1

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            i = 0
            for t in w.loop(tiles, "tiles"):
                for k in w.loop(k_iters * (1 + more * (t == tiles - 1)), "k_iters"):
                    full[i % stages].wait(i // stages & 1)
                    w.read(tile[i % stages], i + skip * (k > 60))
                    empty[i % stages].arrive()
                    i += 1
                w.work(100)

    return p


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [2, 3, 5])
def test_a_loop_that_is_gone_through_several_times(tiles: int) -> None:
    """A lap in each tile; what is said of every value is so at later ones, operation by operation."""
    looked = Family("k_iters", lambda n: nested(tiles, n).flatten({}))
    every = looked.verdict()
    assert every == ProvedRange("k_iters", 0, 23, 12, 4)
    for value in (24, 41):
        program = nested(tiles, value).flatten({})
        assert looked.covers(every, value, program)
        assert holds(program)
    assert not looked.covers(every, 41, nested(tiles, 42).flatten({}))
    assert not looked.covers(every, 70, nested(tiles, 70, skip=1).flatten({}))  # another item, far out


@pytest.mark.slow
def test_places_that_grow_unevenly_are_no_lap_each() -> None:
    said = Family("k_iters", lambda n: nested(2, n, more=1).flatten({})).verdict()
    assert not said.lap
    assert (said.fails, said.why) == (-1, Stop.NO_LOOP)
