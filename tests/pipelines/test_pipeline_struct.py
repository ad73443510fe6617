"""The names of the pipeline structs that a protocol's roles make, as the flat program keeps them."""

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
