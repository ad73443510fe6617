"""CUTLASS's TMA pipelines: ``PipelineTmaAsync`` and ``PipelineTmaStore``.

Both are in ``include/cutlass/pipeline/sm90_pipeline.hpp``; what is said here is of versions that know SM100.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.lang.intrinsics import predicated
from pipesim.lang.recorder import recorder
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.common.pipeline_state import PipelineState
from pipesim.pipelines.common.register_value import MBarType, pipeline_struct
from pipesim.pipelines.cutlass.base import ClusterShape, CutlassPipeline, Token, block_id_in_cluster, init_stages

WARP_GROUP = 128
MAX_CLUSTER = 16  #: CTAs over which the arrivals of a warp group are spread


@dataclass(frozen=True)
class TmaParams:
    """``PipelineTmaAsync::Params``. ``is_leader`` is a mask of lanes, ``elect()`` in the producer; 0: no lane."""

    transaction_bytes: int = 0
    is_leader: int = 0
    num_consumers: int = 0
    num_producers: int = 1


@pipeline_struct
class PipelineTmaAsync(CutlassPipeline):
    """TMA producer, consumers that arrive. ``warp`` is needed by consumers in a cluster: it says which lanes signal."""

    def __init__(
        self,
        storage: MBarType,
        num_stages: int,
        params: TmaParams,
        cluster_shape: ClusterShape = (1, 1),
        *,
        warp: Warp | None = None,
    ) -> None:
        super().__init__(storage, num_stages)
        self.params = params
        self._block = block_id_in_cluster(cluster_shape)
        self._shape = cluster_shape
        self._warp = warp

    @staticmethod
    def init_barriers(
        storage: MBarType, num_stages: int, params: TmaParams, cluster_shape: ClusterShape = (1, 1)
    ) -> None:
        """``full``: ``num_producers``. ``empty``: every consumer thread; in a cluster one thread of each warp group of
        every CTA in the same row or column.
        """
        x, y = cluster_shape
        groups = -(-params.num_consumers // WARP_GROUP)
        consumers = params.num_consumers if x * y == 1 else (x + y - 1) * groups
        init_stages(storage, num_stages, params.num_producers, consumers)

    def producer_acquire(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is empty, **then the leader arrives on** ``full`` **and expects transaction_bytes**."""
        super().producer_acquire(state, barrier_token)
        with predicated(self.params.is_leader) as leads:
            if leads:
                self.full[state.index()].expect_bytes(self.params.transaction_bytes)

    def consumer_release(self, state: PipelineState) -> None:
        """Give the stage back: every executing lane arrives; in a cluster each signalling lane, on its own CTA.

        A whole warp calls it. In a cluster one lane of one warp signals a CTA for all four warps of the group, so they
        must have finished with the stage together, as they have after waiting for a wgmma.
        """
        self._mine()
        empty = self.empty[state.index()]
        if self._shape == (1, 1):
            empty.arrive_cluster(0)
            return
        for lane, cta in self._signals():
            with predicated(1 << lane) as executes:
                if executes:
                    empty.arrive_cluster(cta)

    def _signals(self) -> list[tuple[int, int]]:
        """(lane, CTA) of this warp's arrivals: those of its lanes' destinations in the same row or column."""
        x, y = self._shape
        column, row = self._block
        return [(lane, cta) for lane, cta in self._spread() if cta < x * y and (cta % x == column or cta // x == row)]

    def _spread(self) -> list[tuple[int, int]]:
        """How CUTLASS deals the 16 possible destinations to the lanes of a warp group, or of a single warp."""
        if self.params.num_consumers == 32:
            return [(2 * cta, cta) for cta in range(MAX_CLUSTER)]
        if self._warp is None or self.params.num_consumers % WARP_GROUP:
            raise ProtocolError(
                f"{recorder().who}: {self.params.num_consumers} consumers release a stage in a cluster"
                + (", and the warp is unknown" if self._warp is None else ""),
                place=author_line(),
                cause="CUTLASS spreads the arrivals over a warp, or over the warps of whole warp groups",
                correction="use 32 consumers or a multiple of 128, and create the pipeline with warp=w",
            )
        row = self._warp.warp % 4
        return [(8 * column, (row ^ column) * 4 + column) for column in range(4)]


@pipeline_struct
class PipelineTmaStore:
    """Bulk stores of one agent: no barrier, only groups of transfers. At most ``num_stages`` of them are unfinished."""

    def __init__(
        self, w: Warp, num_stages: int, unacquired_stages: int | None = None, *, always_wait: bool = False
    ) -> None:
        unacquired = max(num_stages - 1, 0) if unacquired_stages is None else unacquired_stages
        if num_stages < 0 or unacquired < 0:
            raise ProtocolError(
                f"a store pipeline of {num_stages} stages, {unacquired} of them unacquired",
                place=author_line(),
                correction="give 0 stages or more, and at least 0 unacquired",
            )
        self._w = w
        self.num_stages = num_stages
        self.unacquired_stages = unacquired
        self.always_wait = always_wait

    def producer_acquire(self, state: PipelineState) -> None:
        """Wait until at most ``unacquired_stages`` groups are unfinished; not before this many could be."""
        if not self.num_stages:
            raise ProtocolError(
                "producer_acquire of a store pipeline without stages",
                place=author_line(),
                cause="CUTLASS rejects it at compile time",
                correction="give the pipeline a stage",
            )
        if self.always_wait or state.count() > self.unacquired_stages:
            self._w.wait_group(Engine.BULK, self.unacquired_stages)

    def producer_commit(self, state: PipelineState) -> None:  # noqa: ARG002  # CUTLASS's signature
        """Close the group of the stores issued since the last commit."""
        self._w.commit(Engine.BULK)

    def producer_tail(self, state: PipelineState) -> None:  # noqa: ARG002  # CUTLASS's signature
        """Wait for all of them."""
        self._w.wait_group(Engine.BULK, 0)
