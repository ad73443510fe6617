"""``FA4Config`` and ``FA4MiscMBars``: upstream's configurations, its table of barriers, and one loop over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import ConfigurationError, ParameterError, PipesimError, ProtocolError
from pipesim.lang.predicate import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import BF16, FP8, FA4Config, FA4MBarLayout, FA4MiscMBars, RolePipeline
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

# depth, arguments → BN, fused, kv, qk: what upstream's formula gives on a B200
UPSTREAM: list[tuple[int, dict[str, Any], tuple[int, bool, int, int]]] = [
    (64, {}, (192, False, 4, 1)),
    (128, {}, (128, True, 5, 1)),
    (128, {"pair_cta": True}, (128, False, 5, 2)),
    (128, {"num_qo": 1}, (128, False, 3, 2)),
    (128, {"dtype": FP8}, (128, False, 6, 2)),
]


@pytest.mark.parametrize(("depth", "arguments", "expected"), UPSTREAM)
def test_upstream_s_configurations(depth: int, arguments: dict[str, Any], expected: tuple[int, bool, int, int]) -> None:
    config = FA4Config.for_b200(depth, **arguments)
    assert (config.BN, config.use_fused_kv, config.num_kv_stages, config.num_qk_stages) == expected
    assert (config.depth, config.padded_depth, config.num_pv_stages) == (depth, depth, 2)
    assert (config.dtype, config.num_qo) == (arguments.get("dtype", BF16), arguments.get("num_qo", 2))


def test_what_follows_from_a_configuration() -> None:
    pair = FA4Config.for_b200(128, pair_cta=True)
    assert (pair.cta_group(), pair.k_rows_per_cta(), pair.v_cols_per_cta(), pair.BK0, pair.BK1) == (2, 64, 64, 64, 128)
    single = FA4Config.for_b200(80)
    assert (single.padded_depth, single.BN, single.cta_group()) == (128, 128, 1)
    assert (single.k_rows_per_cta(), single.v_cols_per_cta(), single.BK0) == (128, 128, 128)
    assert FA4Config.for_b200(64).BK0 == 64


@pytest.mark.parametrize(
    ("depth", "arguments", "kind", "said"),
    [
        (256, {}, ConfigurationError, "leave 0 keys a tile"),
        (32, {}, ConfigurationError, "depth 32"),
        (64, {"pair_cta": True}, ConfigurationError, "65 to 128"),
        (192, {"pair_cta": True}, ConfigurationError, "65 to 128"),
        (128, {"pair_cta": True, "num_qo": 1}, ConfigurationError, "two Q tiles"),
        (128, {"num_qo": 3}, ParameterError, "num_qo 1 or 2"),
    ],
)
def test_what_the_chip_does_not_take(depth: int, arguments: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(PipesimError, match=said) as caught:
        FA4Config.for_b200(depth, **arguments)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"num_kv_stages": 0}, "at least 1"),
        ({"use_fused_kv": True, "num_qk_stages": 2}, "V has one slice"),
        ({"num_qk_stages": 3}, "does not divide into 3 slices"),
        ({"pair_cta": True, "BN": 63}, "an even BN"),
        ({"pair_cta": True, "num_qo": 1}, "two Q tiles"),
    ],
)
def test_a_configuration_by_hand_must_make_sense(wrong: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"dtype": BF16, "depth": 128, "BN": 64, "num_kv_stages": 2}
    assert FA4Config(**right).num_pv_stages == 2
    with pytest.raises(ParameterError, match=said):
        FA4Config(**{**right, **wrong})


# the table of barriers

LAYOUTS = [
    FA4MBarLayout.of(FA4Config.for_b200(depth, **arguments), use_order_barriers=order)
    for depth, arguments, _ in UPSTREAM
    for order in (False, True)
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_and_counts_are_those_of_upstream_s_table(layout: FA4MBarLayout) -> None:
    pv, qk, kv = layout.num_pv_stages, layout.num_qk_stages, layout.num_kv_stages
    pair = 2 if layout.pair_cta else 1
    k = "KV" if layout.use_fused_kv else "K"
    table = [
        *(("S0_cons", q, (128 if q else 256) * pair) for q in range(pv)),
        *(("S1_cons", q, (128 if q else 256) * pair) for q in range(pv)),
        ("C0_prod", 0, 128), ("C0_cons", 0, 128), ("C1_prod", 0, 128), ("C1_cons", 0, 128),
        *(("order", i, 128) for i in range(2 * layout.use_order_barriers)),
        ("S0_prod", 0, 1), ("S1_prod", 0, 1),
        *(("Q1Sync", q, 1) for q in range(qk if layout.num_qo == 2 else 0)),
        *((f"{k}_prod", i, 1) for i in range(qk * kv)), *((f"{k}_cons", i, 1) for i in range(qk * kv)),
        *((f"V_{side}", i, 1) for side in ("prod", "cons") for i in range(0 if layout.use_fused_kv else kv)),
        ("O_prod", 0, 1), ("O_prod", 1, 1),
    ]  # fmt: skip
    p = Protocol("fa4")
    storage = p.mbarriers("fa4", FA4MiscMBars.num_mbars(layout))
    p.init(lambda: FA4MiscMBars(storage, layout).init())
    p.role("r")(lambda _: None)
    program = p.flatten()
    inits = [op for op in program.code[0] if op[0] == Op.INIT]
    assert inits == [(Op.INIT, i, count) for i, (_, _, count) in enumerate(table)]
    assert [program.barrier_name(i) for i in range(len(table))] == [f"{name}[{i}]" for name, i, _ in table]
    assert layout.size == len(table)
    for name, i, _ in table:
        assert layout.offset(name) + i == table.index(next(row for row in table if row[:2] == (name, i)))


def test_sizes_of_upstream_s_configurations() -> None:
    sizes = [FA4MBarLayout.of(FA4Config.for_b200(depth, **arguments)).size for depth, arguments, _ in UPSTREAM]
    assert sizes == [29, 23, 44, 30, 50]
    assert FA4MBarLayout() == FA4MBarLayout(1, 1, 2, use_order_barriers=True), "upstream's defaults have order barriers"


def test_a_layout_that_is_too_large_or_empty_is_an_error() -> None:
    assert FA4MBarLayout(num_kv_stages=12, num_pv_stages=2, num_qo=1).size == 62
    with pytest.raises(ParameterError, match="66 mbarriers") as caught:
        FA4MBarLayout(num_kv_stages=13, num_pv_stages=2, num_qo=1)
    assert "two for each lane" in caught.value.cause
    with pytest.raises(ParameterError, match="at least 1"):
        FA4MBarLayout(num_pv_stages=0)
    with pytest.raises(ParameterError, match="no group S2_cons"):
        FA4MBarLayout().offset("S2_cons")


SPLIT = FA4MBarLayout(num_qk_stages=2, num_pv_stages=2, num_kv_stages=2)
FUSED = FA4MBarLayout(num_pv_stages=2, num_kv_stages=3, use_order_barriers=False, use_fused_kv=True, num_qo=1)


def at(layout: FA4MBarLayout, group: str, index: int = 0) -> int:
    return layout.offset(group) + index


def recorded(layout: FA4MBarLayout, body: Callable[[FA4MiscMBars], Any]) -> list[Operation]:
    p = Protocol("fa4")
    storage = p.mbarriers("fa4", layout.size, count=1)
    mbars = FA4MiscMBars(storage, layout)
    p.role("r")(lambda _: body(mbars))
    return list(p.flatten().code[0][layout.size + 2 :])


def test_the_api_surface_is_complete() -> None:
    members = (
        "num_mbars init producer_s0 producer_s1 consumer_s consumer_c0 consumer_c1 producer_c pipeline_order_wait "
        "pipeline_order_arrive q1_wait_mbar get_k_mbars get_v_mbars combined_p_o_consumer consumer_o producer_o0 "
        "producer_o1"
    )
    assert set(pipelines.__all__) >= {"FA4Config", "FA4MBarLayout", "FA4MiscMBars"}
    for member in members.split():
        assert getattr(FA4MiscMBars, member).__doc__, f"{member} says what it does"


# producer or consumer, stages, consumer sub-stages, then the first barrier of each side: its group, its index in it
PIPELINES: dict[str, tuple[Callable[[FA4MiscMBars], RolePipeline], tuple[bool, int, int, str, str, int, int]]] = {
    "producer_s0": (lambda m: m.producer_s0(), (True, 1, 2, "S0_prod", "S0_cons", 0, 0)),
    "producer_s1": (lambda m: m.producer_s1(), (True, 1, 2, "S1_prod", "S1_cons", 0, 0)),
    "consumer_s(0)": (lambda m: m.consumer_s(0), (False, 1, 2, "S0_prod", "S0_cons", 0, 0)),
    "consumer_s(1)": (lambda m: m.consumer_s(1), (False, 1, 2, "S1_prod", "S1_cons", 0, 0)),
    "consumer_c0": (lambda m: m.consumer_c0(), (False, 1, 1, "C0_prod", "C0_cons", 0, 0)),
    "consumer_c1": (lambda m: m.consumer_c1(), (False, 1, 1, "C1_prod", "C1_cons", 0, 0)),
    "producer_c(0)": (lambda m: m.producer_c(0), (True, 1, 1, "C0_prod", "C0_cons", 0, 0)),
    "producer_c(1)": (lambda m: m.producer_c(1), (True, 1, 1, "C1_prod", "C1_cons", 0, 0)),
    "consumer_o": (lambda m: m.consumer_o(), (False, 2, 2, "O_prod", "S0_cons", 0, 0)),
    "producer_o0": (lambda m: m.producer_o0(), (True, 1, 1, "O_prod", "S0_cons", 0, 0)),
    "producer_o1": (lambda m: m.producer_o1(), (True, 1, 1, "O_prod", "S1_cons", 1, 0)),
}


@pytest.mark.parametrize("layout", [SPLIT, FUSED])
@pytest.mark.parametrize("name", PIPELINES)
def test_each_pipeline_lies_over_its_barriers(name: str, layout: FA4MBarLayout) -> None:
    make, (is_producer, stages, subs, producers, consumers, first, second) = PIPELINES[name]

    def body(mbars: FA4MiscMBars) -> None:
        pipe = make(mbars)
        assert (pipe.is_producer, pipe.num_stages, pipe.consumer_sub_stages) == (is_producer, stages, subs)
        assert pipe.producer_mbar_base.index == at(layout, producers, first)
        assert pipe.consumer_mbar_base.index == at(layout, consumers, second)
        assert pipe.producer_sub_stages == 1

    assert recorded(layout, body) == []


def test_o_is_given_back_on_slot_0_of_each_group_s_s_cons() -> None:
    def body(mbars: FA4MiscMBars) -> None:
        pipe = mbars.consumer_o()
        pipe.wait()
        pipe.release()
        pipe.wait()
        pipe.release()
        assert [mbars.combined_p_o_consumer(wg).index for wg in (0, 1)] == [0, 2]

    o = at(SPLIT, "O_prod")
    assert recorded(SPLIT, body) == [
        (Op.WAIT, o, 0, 0), (Op.ARRIVE, at(SPLIT, "S0_cons"), 32, 0, -1, 0),
        (Op.WAIT, o + 1, 0, 0), (Op.ARRIVE, at(SPLIT, "S1_cons"), 32, 0, -1, 0),
    ]  # fmt: skip


def test_single_barriers_and_rings() -> None:
    def split(mbars: FA4MiscMBars) -> None:
        order = at(SPLIT, "order")
        assert [mbars.pipeline_order_wait(wg).index - order for wg in (0, 1)] == [0, 1]
        assert [mbars.pipeline_order_arrive(wg).index - order for wg in (0, 1)] == [1, 0]
        assert mbars.q1_wait_mbar().index == at(SPLIT, "Q1Sync")
        assert mbars.get_k_mbars().index == at(SPLIT, "K_prod")
        assert mbars.get_v_mbars().index == at(SPLIT, "V_prod")

    def fused(mbars: FA4MiscMBars) -> None:
        assert mbars.get_k_mbars().index == mbars.get_v_mbars().index == at(FUSED, "KV_prod")

    recorded(SPLIT, split)
    recorded(FUSED, fused)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.pipeline_order_wait(0), "no order barriers"),
        (lambda m: m.pipeline_order_arrive(1), "no order barriers"),
        (lambda m: m.q1_wait_mbar(), "no Q1Sync barriers"),
        (lambda m: m.consumer_s(2), "softmax warp group 2 of 2"),
    ],
)
def test_barriers_that_a_layout_has_not_are_an_error(call: Callable[[FA4MiscMBars], Any], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        recorded(FUSED, call)


def test_too_few_barriers_are_an_error() -> None:
    p = Protocol("few")
    storage = p.mbarriers("fa4", SPLIT.size - 1)
    with pytest.raises(ProtocolError, match=f"FA4MiscMBars needs {SPLIT.size} mbarriers; fa4 has {SPLIT.size - 1}"):
        FA4MiscMBars(storage, SPLIT)


# S, P, C and O of one warp group


def one_group(*, dummy: bool = True, last_slice: bool = True, tiles: int = 4) -> Program:
    """S0 = Q K, softmax → P in two slices, correction rescales O, O += P V: as upstream's roles hand over.

    ``dummy``: the correction arrives once before there is an O to rescale.
    """
    layout = FA4MBarLayout(num_pv_stages=2, use_order_barriers=False)
    p = Protocol("one group")
    scores, output = p.tmem("scores", 1, 512), p.tmem("output", 1, 512)
    factor = p.smem("factor", 1, 512)
    mbars = FA4MiscMBars(p.mbarriers("fa4", layout.size), layout)
    p.init(mbars.init)

    @p.role("mma")
    def mma(w: Warp) -> None:
        s, o = mbars.producer_s0(), mbars.producer_o0()
        slices = s.copy()
        slices.step()  # P of tile i completes phase i of S_cons; nothing is waited for before the first S
        with w.elect_one():
            for i in range(tiles):
                w.mma(Engine.TCGEN05, writes=[(scores[0], i)])
                s.commit_mma(elect())
                for q in range(layout.num_pv_stages):
                    slices.acquire(q)
                w.mma(Engine.TCGEN05, reads=[(scores[0], 100 + i)], writes=[(output[0], i)])
                o.commit_mma(elect())
                slices.step()

    @p.role("softmax", warps=4)
    def softmax(w: Warp) -> None:
        s, c = mbars.consumer_s(0), mbars.producer_c(0)
        c.acquire()
        for i in range(tiles):
            s.wait()
            w.read(scores[0].part(128 * w.index, 128), i)
            w.write(factor[0].part(128 * w.index, 128), i)
            c.commit()
            w.write(scores[0].part(128 * w.index, 128), 100 + i)
            s.release_no_step(0)
            if last_slice:
                s.release(1)
            else:
                s.step()
            c.acquire()

    @p.role("correction", warps=4)
    def correction(w: Warp) -> None:
        c = mbars.consumer_c0()
        o = RolePipeline(mbars.producer_o0().producer_mbar(), mbars.combined_p_o_consumer(0), 1, is_producer=False)
        if dummy:
            o.release_no_step()
        for i in range(tiles):
            c.wait()
            w.read(factor[0].part(128 * w.index, 128), i)
            c.release()
            o.wait()
            w.read(output[0].part(128 * w.index, 128), i)
            if i + 1 < tiles:
                o.release()

    return p.flatten()


def test_p_and_o_meet_at_one_barrier_of_256_arrivals(outcomes: Any) -> None:
    assert outcomes(one_group(), schedules=40) == {"finished"}
    result = simulate(one_group(), load_profile("h100"))
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())


@pytest.mark.parametrize("wrong", [{"dummy": False}, {"last_slice": False}])
def test_half_of_its_arrivals_or_a_slice_too_few_hang(wrong: dict[str, bool], outcomes: Any) -> None:
    """Without the correction's first arrive the MMA waits on S0_cons[0] for 128 more; without a slice on S0_cons[1]."""
    assert outcomes(one_group(**wrong), schedules=20) == {"stuck"}
    deadlock = simulate(one_group(**wrong), load_profile("h100")).deadlock
    assert deadlock is not None
    blocked = next(b for b in deadlock.blocked if b.agent == "mma")
    assert blocked.arrivals_missing == 128
    assert blocked.barrier == ("S0_cons[0]" if "dummy" in wrong else "S0_cons[1]")
