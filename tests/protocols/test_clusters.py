"""Blackwell's GEMM on clusters of M by N CTAs: what they copy, what is proved, and wrong twins that are found."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pipesim.answers.any_size import family
from pipesim.errors import ParameterError
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.pipelines import InputProducer, KernelContext, StandardTilePayload
from pipesim.protocols.blackwell.gemm_sm100 import GemmSm100
from pipesim.prove.check import check
from pipesim.targets import find
from tests.support.lanes import slow_but

#: CTAs along M and along N, and how many of them multiply together.
SHAPES = [(2, 1, 1), (1, 2, 1), (2, 2, 1), (4, 1, 1), (1, 4, 1), (2, 1, 2), (2, 2, 2), (4, 1, 2), (4, 2, 2), (2, 4, 2)]


SMALL = {"stages": 1, "accumulators": 1, "clc_stages": 1}


def gemm(shape: tuple[int, int, int], name: str = "gemm_sm100", **params: int) -> Program:
    m, n, group = shape
    sizes = {"k_iters": 3, "stages": 2, "tiles": 2} | params
    return find(name).build({"cluster_m": m, "cluster_n": n, "cta_group": group, **sizes})


def counts(program: Program) -> dict[str, int]:
    """What the barriers of CTA 0 are initialised with, by name, stage 0."""
    found = {}
    for op in program.operations:
        if op[0] == Op.INIT:
            found[program.barrier_name(operand(op, "barrier"))] = operand(op, "count")
    return found


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("shape", slow_but(SHAPES[:6], SHAPES))
def test_it_is_proved(shape: tuple[int, int, int]) -> None:
    sizes: list[dict[str, int]] = [{}, {"k_iters": 1, "tiles": 3}, {"k_iters": 0}]
    for params in [*sizes, {"stages": 4, "k_group_size": 2, "lookahead": 1}]:
        found = check(gemm(shape, "gemm_sm100", **params), max_states=1)
        assert found.verdict is Verdict.PROVED, (params, found.doubts[:3])


@pytest.mark.long
def test_it_is_proved_for_any_number_of_tiles() -> None:
    found = family(find("gemm_sm100"), {"cluster_m": 2, "k_iters": 1} | SMALL, "tiles").verdict()
    assert found.lap
    assert found.least == 0


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("shape", slow_but(SHAPES[:6], SHAPES))
def test_the_blockwise_kernel_is_proved(shape: tuple[int, int, int]) -> None:
    for params in ({"tiles": 3}, {"k_iters": 1}):
        program = gemm(shape, "gemm_sm100_blockwise", fence=1, **params)
        found = check(program, max_states=1)
        assert found.verdict is Verdict.PROVED, (params, found.doubts[:3])
        m, n, group = shape
        assert counts(program)["input.empty[0]@0"] == m // group + n - 1 + 4 * m * n


@pytest.mark.parametrize("shape", SHAPES)
def test_every_leader_counts_exactly_the_bytes_it_expects(shape: tuple[int, int, int]) -> None:
    m, n, _ = shape
    program = gemm(shape, k_iters=1, tiles=1, stages=1, clc_stages=0)
    landed: Counter[int] = Counter()
    expected: Counter[int] = Counter()
    for op in program.operations:
        if op[0] == Op.TMA_LOAD:
            mask = operand(op, "cta_mask") or 1 << program.accesses[operand(op, "access")].cta
            for rank in (r for r in range(m * n) if mask >> r & 1):
                bar, _ = program.at_rank(operand(op, "barrier"), operand(op, "access"), rank)
                landed[bar] += operand(op, "bytes")
        elif op[0] == Op.ARRIVE and operand(op, "expect"):
            expected[operand(op, "barrier")] += operand(op, "expect")
    assert landed == expected
    assert len(landed) == m * n // shape[2]


SELF = property(lambda ctx: 1 << ctx.block_rank_in_cluster)


def next_row(ctx: KernelContext) -> int:
    """The mask of the row after its own: A lands where other rows of A belong."""
    row = (ctx.rank_m + ctx.cta_group) % ctx.cluster_m
    return sum(1 << n * ctx.cluster_m + row for n in range(ctx.cluster_n))


def half(payload: StandardTilePayload, k_group_size: int, cta_group: int = 1) -> int:
    return cta_group * k_group_size * sum(tiles.nbytes for tiles in payload.arrays.values()) // 2


def consumers(change: int) -> Callable[[GemmSm100], int]:
    right = GemmSm100.input_consumers
    return lambda gemm: right(gemm) + change


DEADLOCK = {Ending.DEADLOCK}
WRONG: dict[str, tuple[Any, str, Any, set[Any]]] = {
    "one commit too few is counted": (
        GemmSm100, "input_consumers", consumers(-1),
        {FaultKind.RACE, FaultKind.WRONG_ITEM, FaultKind.OVER_ARRIVAL, *DEADLOCK},
    ),
    "one commit too many is counted": (GemmSm100, "input_consumers", consumers(1), DEADLOCK),
    "the commit reaches its own CTA only": (KernelContext, "input_commit_mask", SELF, DEADLOCK),
    "A reaches its own CTA only": (KernelContext, "a_multicast_mask", SELF, DEADLOCK),
    "B reaches its own CTA only": (KernelContext, "b_multicast_mask", SELF, DEADLOCK),
    "A reaches the wrong row": (KernelContext, "a_multicast_mask", property(next_row), {FaultKind.WRONG_ITEM}),
    "half of the bytes are expected": (
        StandardTilePayload, "stage_bytes", half, {FaultKind.RACE, FaultKind.UNINITIALISED_READ},
    ),
    "nobody drains": (InputProducer, "drain", lambda _: None, {FaultKind.EXITED_CTA}),
}  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("shape", [(2, 2, 1), pytest.param((4, 2, 2), marks=pytest.mark.long)])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_twin_is_found(wrong: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, instead, expected = WRONG[wrong]
    monkeypatch.setattr(where, name, instead)
    found = check(gemm(shape, tiles=1))
    assert found.verdict is Verdict.REFUTED
    shown = {shown.kind for shown in found.refutations}
    assert shown
    assert shown <= expected, shown


@pytest.mark.parametrize(
    ("params", "fact"),
    [
        ({"cluster_m": 3, "cta_group": 2}, "cluster_m = 3 with cta_group = 2"),
        ({"cluster_m": 1, "cta_group": 2}, "cluster_m = 1 with cta_group = 2"),
        ({"cluster_m": 8, "cluster_n": 4}, "cluster_m = 8 with cluster_n = 4 are 32 CTAs"),
        ({"cluster_m": 17}, "cluster_m = 17 is out of range"),
        ({"cluster_n": 3}, "cluster_n makes 3 slices of 128 rows of A"),
        ({"cluster_m": 3}, "cluster_m makes 3 slices of 128 rows of B"),
    ],
)
def test_shapes_that_no_kernel_has(params: dict[str, int], fact: str) -> None:
    with pytest.raises(ParameterError) as caught:
        find("gemm_sm100").build(params)
    assert caught.value.fact == fact
    assert caught.value.correction
