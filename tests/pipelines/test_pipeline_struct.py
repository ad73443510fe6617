"""The names of the pipeline structs that a protocol's roles make, as the flat program keeps them."""

from __future__ import annotations

import pytest

from pipesim import Protocol, Warp
from pipesim.model.program_json import dumps, loads
from pipesim.pipelines import (
    EpiLoadPipeline,
    InputTilePipeline,
    OutputTilePipeline,
    ProducerConsumerPipeline,
    StagedPipeline,
    StandardTilePayload,
    TmemAllocation,
)
from pipesim.pipelines.common.register_value import MODULAR_PIPELINES
from pipesim.targets import built_in


class _Mine(ProducerConsumerPipeline):
    """A user's own, which is one of upstream's."""


def test_a_struct_is_named_once_and_what_it_contains_is_not() -> None:
    p = Protocol("names")
    a, b = p.smem("a", 2, 128), p.smem("b", 2, 128)
    acc = p.tmem("acc", 2, 16384)
    tiles = InputTilePipeline.BarrierArray(p, "tiles", 2)
    outputs = OutputTilePipeline.BarrierArray(p, "outputs", 2)
    epi, ring = p.mbarriers("epi", 4), p.mbarriers("ring", 4)

    @p.init
    def init() -> None:
        InputTilePipeline.init_barriers(tiles, 1, 1)
        OutputTilePipeline.init_barriers(outputs, 1, 1)
        EpiLoadPipeline(epi, 2).init_barriers(1, 1)
        StagedPipeline(ring, 2).init()

    @p.role("load", warps=2)
    def load(w: Warp) -> None:
        pipe = InputTilePipeline(tiles, StandardTilePayload(a, b), 2, 1)
        if w.index:
            pipe.producer()
        EpiLoadPipeline(epi, 2)

    @p.role("mma")
    def mma(w: Warp) -> None:
        OutputTilePipeline(outputs, TmemAllocation(acc), 1, 2, 256, 1)
        _Mine(ring, 2).copy()

    program = p.flatten()
    assert program.pipelines == (
        "InputTilePipeline",
        "EpiLoadPipeline",
        "InputProducer",
        "OutputTilePipeline",
        "ProducerConsumerPipeline",
    )
    assert loads(dumps(program)) == program


def test_a_program_of_bare_barriers_names_none_and_an_older_file_has_none() -> None:
    p = Protocol("bare")
    ring = p.mbarriers("ring", 4)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(ring, 2).init_mbars(1, 1)  # it only initialises: no role has it

    @p.role("only")
    def only(w: Warp) -> None:
        ring[0].arrive(count=1)

    program = p.flatten()
    assert program.pipelines == ()
    older = "\n".join(line for line in dumps(program).splitlines() if '"pipelines"' not in line)
    assert loads(older) == program


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        *zip(
            MODULAR_PIPELINES,
            ("producer_consumer", "gemm_sm90", "gemm_sm90", "attention_sm90", "epilogue_residual"),
            strict=True,
        )
    ],
)
def test_every_struct_of_modulars_is_made_by_a_kernel_that_is_recorded(name: str, kernel: str) -> None:
    assert name in built_in(kernel)().flatten().pipelines
