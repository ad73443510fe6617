"""``FA4Config`` and ``FA4MiscMBars``: upstream's table of barriers, the pipelines over them, and their hand-overs."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ParameterError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Op, Operation
from pipesim.pipelines import BF16, FA4Config, FA4MBarLayout, FA4MiscMBars, RolePipeline


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
    FA4MBarLayout.from_config(FA4Config(BF16, 64, 192, 4)),
    FA4MBarLayout.from_config(FA4Config(BF16, 128, 128, 5, use_fused_kv=True)),
    FA4MBarLayout.from_config(FA4Config(BF16, 128, 128, 5, 2, pair_cta=True)),
    FA4MBarLayout.from_config(FA4Config(BF16, 128, 128, 3, 2, num_qo=1)),
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
        ("S0_prod", 0, 1), ("S1_prod", 0, 1),
        *(("Q1Sync", q, 1) for q in range(qk if layout.num_qo == 2 else 0)),
        *((f"{k}_prod", i, 1) for i in range(qk * kv)), *((f"{k}_cons", i, 1) for i in range(qk * kv)),
        *((f"V_{side}", i, 1) for side in ("prod", "cons") for i in range(0 if layout.use_fused_kv else kv)),
        ("O_prod", 0, 1), ("O_prod", 1, 1),
    ]  # fmt: skip
    p = Protocol("fa4")
    storage = p.mbarriers("fa4", layout.size)
    p.init(lambda: FA4MiscMBars(storage, layout).init())
    p.role("r")(lambda _: None)
    program = p.flatten()
    inits = [op for op in program.code[0] if op[0] == Op.INIT]
    assert inits == [(Op.INIT, i, count) for i, (_, _, count) in enumerate(table)]
    assert [program.barrier_name(i) for i in range(len(table))] == [f"{name}[{i}]" for name, i, _ in table]
    assert layout.size == len(table)
    for name, i, _ in table:
        assert layout.offset(name) + i == table.index(next(row for row in table if row[:2] == (name, i)))


def test_a_layout_that_is_too_large_or_empty_is_an_error() -> None:
    assert FA4MBarLayout(num_kv_stages=12, num_pv_stages=2, num_qo=1).size == 60
    with pytest.raises(ParameterError, match="68 mbarriers") as caught:
        FA4MBarLayout(num_kv_stages=14, num_pv_stages=2, num_qo=1)
    assert "two for each lane" in caught.value.cause
    with pytest.raises(ParameterError, match="at least 1"):
        FA4MBarLayout(num_pv_stages=0)
    with pytest.raises(ParameterError, match="no group S2_cons"):
        FA4MBarLayout().offset("S2_cons")


SPLIT = FA4MBarLayout(num_qk_stages=2, num_pv_stages=2, num_kv_stages=2)
FUSED = FA4MBarLayout(num_pv_stages=2, num_kv_stages=3, use_fused_kv=True, num_qo=1)


def at(layout: FA4MBarLayout, group: str, index: int = 0) -> int:
    return layout.offset(group) + index


def recorded(layout: FA4MBarLayout, body: Callable[[FA4MiscMBars], Any]) -> list[Operation]:
    p = Protocol("fa4")
    storage = p.mbarriers("fa4", layout.size, count=1)
    mbars = FA4MiscMBars(storage, layout)
    p.role("r")(lambda _: body(mbars))
    return list(p.flatten().code[0][layout.size + 2 :])


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


def test_the_second_q_tile_s_barriers_are_not_those_of_a_kernel_of_one() -> None:
    with pytest.raises(ProtocolError, match="no Q1Sync barriers"):
        recorded(FUSED, lambda mbars: mbars.q1_wait_mbar())


# S alone: each way to forget a step or a slice
