"""``InputTilePipeline``: operand tiles from the load warp to the MMA warp, with views and handles for each side.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_pipeline.mojo``. One barrier pair guards a
group of ``k_group_size`` tiles. Giving a stage back only **steps**, on both sides: ``full`` completes by the bytes of
the TMA and the producer's ``expect_bytes``, ``empty`` by the MMA's commit on the consumer's ``mbar()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from pipesim.lang.author import author_error
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier, TryResult
from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.common.linear import Linear, RingSide
from pipesim.pipelines.common.register_value import MBarType, init_barriers, pipeline_struct, require_barriers
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline


@dataclass(frozen=True)
class TilePayload:
    """The base of all payloads: named tile arrays with the same number of slots."""

    def __post_init__(self) -> None:
        slots = {name: len(tiles) for name, tiles in self.arrays.items()}
        if len(set(slots.values())) != 1:
            counted = ", ".join(f"{name} {count}" for name, count in slots.items())
            raise author_error(
                f"the arrays of a payload differ in their slots: {counted}",
                cause="one pipeline stage is the same slots of every array",
                correction="give every array num_group_stages * k_group_size slots",
            )

    @cached_property
    def arrays(self) -> dict[str, TileArray]:
        """Every array by its upstream name, in upstream's order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def num_pipeline_stages(self) -> int:
        """Slots of each array."""
        return len(next(iter(self.arrays.values())))

    def stage_bytes(self, k_group_size: int, cta_group: int = 1) -> int:
        """What ``expect_bytes`` of one stage is: the tiles of all arrays, for the group, for both CTAs of a pair.

        It is constant: tiles beyond the end of K are zero-filled by the TMA, and their bytes count.
        """
        return cta_group * k_group_size * sum(tiles.nbytes for tiles in self.arrays.values())

    def get_tile(self, stage: int, k_idx: int, k_group_size: int) -> tuple[Slot, ...]:
        """The slot of each array that holds one tile of a stage's group.

        Upstream checks no bounds; here an index outside the group is an error.
        """
        if not 0 <= k_idx < k_group_size:
            raise author_error(
                f"tile {k_idx} of a group of {k_group_size} in {next(iter(self.arrays.values())).name}",
                cause="one stage holds tiles 0 to k_group_size - 1; the next belongs to another barrier",
            )
        return tuple(tiles[stage * k_group_size + k_idx] for tiles in self.arrays.values())


@dataclass(frozen=True)
class StandardTilePayload(TilePayload):
    """A and B tiles of an ordinary matrix multiplication."""

    a_tiles: TileArray
    b_tiles: TileArray


@dataclass(frozen=True)
class BlockScaledTilePayload(StandardTilePayload):
    """A and B tiles with the scale factors of both (MXFP8, NVFP4)."""

    sfa_tiles: TileArray
    sfb_tiles: TileArray


@dataclass(frozen=True)
class BlockwiseFP8TilePayload(StandardTilePayload):
    """A and B tiles with the scales of A; the scales of B are read from global memory in the epilogue."""

    a_scales_tiles: TileArray


Payload = TypeVar("Payload", bound=TilePayload)
_Tiles = TypeVar("_Tiles")
_Handle = TypeVar("_Handle")


@pipeline_struct
class InputTilePipeline(Generic[Payload]):
    """A ring of ``num_group_stages`` stages, each a group of ``k_group_size`` slots of every array of ``payload``.

    Like the pipeline inside it, it belongs to the agent that made it: stage and phase are that agent's own.
    ``barriers`` are a :meth:`BarrierArray`, or a pointer into a larger array (``b[2]``), which must hold the ring.
    """

    Pipeline = ProducerConsumerPipeline  #: what synchronises the stages

    def __init__(self, barriers: MBarType, payload: Payload, num_group_stages: int, k_group_size: int) -> None:
        require_barriers(barriers, num_group_stages)
        if k_group_size < 1 or num_group_stages * k_group_size > payload.num_pipeline_stages:
            raise author_error(
                f"{num_group_stages} group stages of {k_group_size} tiles need {num_group_stages * k_group_size} "
                f"slots; each array of the payload has {payload.num_pipeline_stages}",
                correction="num_group_stages is num_pipeline_stages / k_group_size",
            )
        self.pipeline = self.Pipeline(barriers, num_group_stages)
        self.payload = payload
        self.num_group_stages = num_group_stages
        self.k_group_size = k_group_size

    @staticmethod
    def BarrierArray(protocol: Protocol, name: str, num_group_stages: int) -> BarrierStorage:  # noqa: N802  # upstream's name
        """The ``2 * num_group_stages`` mbarriers of such a pipeline, in the memory of ``protocol``."""
        return protocol.mbarriers(name, 2 * num_group_stages)

    @staticmethod
    def init_barriers(
        storage: MBarType, producer_arv_count: int, consumer_arv_count: int, *, num_group_stages: int | None = None
    ) -> None:
        """Initialise every ``full`` for the producers' arrivals and every ``empty`` for the consumers'. One thread.

        ``num_group_stages`` is needed where ``storage`` is a pointer; an array is the barriers of one pipeline.
        """
        init_barriers(storage, producer_arv_count, consumer_arv_count, num_group_stages)

    # tries

    def try_acquire_producer(self) -> TryResult:
        """Called by the producer: one try whether the current stage is empty. Changes nothing.

        The public page continues with ``wait_producer_if_needed``, which waits for the other side's barrier with
        counters that never advance here. What belongs to this try is :meth:`wait_consumer_if_needed`.
        """
        return self.pipeline.try_wait_consumer()

    def try_acquire_consumer(self) -> TryResult:
        """Called by the consumer: one try whether the current stage is full. Changes nothing.

        The public page continues with ``wait_consumer_if_needed``: the mirrored mistake. What belongs to this try is
        :meth:`wait_producer_if_needed`.
        """
        return self.pipeline.try_wait_producer()

    def wait_producer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """Called by the **consumer**: wait for ``full`` unless its :meth:`try_acquire_consumer` already said so."""
        self.pipeline.wait_producer_if_needed(already_ready)

    def wait_consumer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """Called by the **producer**: wait for ``empty`` unless its :meth:`try_acquire_producer` already said so."""
        self.pipeline.wait_consumer_if_needed(already_ready)

    # stages and barriers

    def producer_stage(self) -> int:
        """Index of the current producer stage."""
        return self.pipeline.producer_stage()

    def consumer_stage(self) -> int:
        """Index of the current consumer stage."""
        return self.pipeline.consumer_stage()

    def producer_mbar(self, stage: int) -> SharedMemBarrier:
        """``full[stage]``."""
        return self.pipeline.producer_mbar(stage)

    def consumer_mbar(self, stage: int) -> SharedMemBarrier:
        """``empty[stage]``."""
        return self.pipeline.consumer_mbar(stage)

    # views and handles

    def producer(self) -> InputProducer[Payload]:
        """The load warp's view of this pipeline; the counters stay here."""
        return InputProducer(self)

    def consumer(self) -> InputConsumer[Payload]:
        """The MMA warp's view of this pipeline; the counters stay here."""
        return InputConsumer(self)

    def acquire_producer(self) -> InputProducerStage[Payload]:
        """Wait for an empty stage and return its handle. Acquiring does not advance: release it before the next."""
        return self.producer().acquire_stage()

    def acquire_consumer(self) -> InputConsumerStage[Payload]:
        """Wait for a full stage and return its handle, whose release, whatever the public page says, only advances."""
        return self.consumer().acquire_stage()

    def drain_producer(self) -> None:
        """Wait until everything that was produced is consumed, so that this CTA does not exit under its peers.

        The wait for a stage that was never filled passes immediately. Afterwards the producer side is dead: the stage
        is where it was and the phase is flipped, so its next wait, or a second drain, blocks indefinitely.
        """
        side = self.pipeline._producer()  # noqa: SLF001  # pipeline and ring are one unit
        side.require_no_step("a drain")
        for _ in range(self.num_group_stages):
            side.wait()
            side.step()


class _InputStage(Linear, Generic[Payload]):
    """What every acquired stage gives access to."""

    def __init__(self, pipeline: InputTilePipeline[Payload], side: RingSide) -> None:
        super().__init__(f"input {side.name} stage {side.stage}")
        self.pipeline_ptr = pipeline
        self._side = side
        self._stage = side.stage
        side.hold(self)

    def payload(self) -> Payload:
        """The tile arrays."""
        self.require_live("payload()")
        return self.pipeline_ptr.payload

    def stage(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("stage()")
        return self._stage

    def _give_back(self, verb: str) -> None:
        self.consume(verb)
        self._side.release()


class _EmptyStage(_InputStage[Payload]):
    """A stage that the producer is to fill."""

    def expect_bytes(self, num_bytes: int) -> None:
        """``expect_bytes`` of ``full``: expect them **and arrive once**, which upstream does not say, in each lane."""
        self.barrier().expect_bytes(num_bytes)

    def barrier(self) -> SharedMemBarrier:
        """``full`` of this stage, for the TMA."""
        self.require_live("barrier()")
        return self._side.signals[self._stage]


class _FullStage(_InputStage[Payload]):
    """A stage that the consumer is to read."""

    def mbar(self) -> SharedMemBarrier:
        """``empty`` of this stage: what the MMAs that read it must commit to, or the producer waits indefinitely."""
        self.require_live("mbar()")
        return self._side.signals[self._stage]


class _StageHandle(_InputStage[Payload]):
    """A stage as a linear handle: ``release()`` it exactly once."""

    def release(self) -> None:
        """Step. Signals nothing, although the public page says so of the consumer's: the MMA's commit does."""
        self._give_back("release()")


class _StageTiles(_InputStage[Payload]):
    """A stage as a context. Entering waits for nothing: ``acquire()`` has waited; leaving only steps.

    Upstream does not notice when it is never entered: the next acquire then returns the same stage. Here that is an
    error.
    """

    def __enter__(self) -> Self:
        self.require_live("with")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._give_back("the end of with")


class InputProducerStage(_EmptyStage[Payload], _StageHandle[Payload]):
    """An empty stage as a linear handle: ``release()`` it exactly once."""


class ProducerTiles(_EmptyStage[Payload], _StageTiles[Payload]):
    """An empty stage as a context: its acquire has waited, leaving it only steps."""


class InputConsumerStage(_FullStage[Payload], _StageHandle[Payload]):
    """A full stage as a linear handle: ``release()`` it exactly once."""


class ConsumerTiles(_FullStage[Payload], _StageTiles[Payload]):
    """A full stage as a context: its acquire has waited, leaving it only steps."""


class InputView(ABC, Generic[Payload, _Tiles, _Handle]):
    """One role's view of an input pipeline. It holds no state: entering returns itself, leaving does nothing."""

    _tiles: ClassVar[type[Any]]  #: what :meth:`acquire` returns
    _handle: ClassVar[type[Any]]  #: what :meth:`acquire_stage` returns

    def __init__(self, pipeline_ptr: InputTilePipeline[Payload]) -> None:
        self.pipeline_ptr = pipeline_ptr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def acquire(self) -> _Tiles:
        """Wait until the current stage is ready; ``with`` what is returned."""
        return self.acquire_if_needed(already_ready=False)

    def acquire_stage(self) -> _Handle:
        """Wait until the current stage is ready and return its linear handle."""
        made: _Handle = self._acquire_stage(self._handle, already_ready=False)
        return made

    def try_acquire(self) -> TryResult:
        """One try whether the current stage is ready. It must come after the step of the stage before."""
        return self._side().try_wait()

    def acquire_if_needed(self, already_ready: TryResult | bool) -> _Tiles:  # noqa: FBT001  # upstream's signature
        """:meth:`acquire` that skips its wait if ``already_ready``, which must be a try of this stage in this lap."""
        made: _Tiles = self._acquire_stage(self._tiles, already_ready)
        return made

    def _acquire_stage(self, kind: type[Any], already_ready: TryResult | bool) -> Any:  # noqa: FBT001  # upstream's signature
        side = self._side()
        side.require_free()
        side.wait_if_needed(already_ready)
        return kind(self.pipeline_ptr, side)

    @abstractmethod
    def _side(self) -> RingSide:
        """The side of the ring that the role is on."""


@pipeline_struct
class InputProducer(InputView[Payload, ProducerTiles[Payload], InputProducerStage[Payload]]):
    """The load warp's view: a stage is ready when it is empty. Leaving it does nothing, not even a drain."""

    PipelineType = InputTilePipeline
    _tiles = ProducerTiles
    _handle = InputProducerStage

    def drain(self) -> None:
        """Wait until everything that was produced is consumed: see :meth:`InputTilePipeline.drain_producer`."""
        self.pipeline_ptr.drain_producer()

    def _side(self) -> RingSide:
        return self.pipeline_ptr.pipeline._producer()  # noqa: SLF001  # view and ring are one unit


@pipeline_struct
class InputConsumer(InputView[Payload, ConsumerTiles[Payload], InputConsumerStage[Payload]]):
    """The MMA warp's view: a stage is ready when it is full. It has no drain."""

    _tiles = ConsumerTiles
    _handle = InputConsumerStage

    def _side(self) -> RingSide:
        return self.pipeline_ptr.pipeline._consumer()  # noqa: SLF001  # view and ring are one unit
