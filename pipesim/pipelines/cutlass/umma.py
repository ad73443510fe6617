"""CUTLASS's pipelines of SM100, as far as they differ: an MMA arrives by ``tcgen05.commit``.

Upstream: ``include/cutlass/pipeline/sm100_pipeline.hpp``. ``atom_thr_shape`` is (2, 1) where two CTAs multiply
together, else (1, 1). The commits elect their lane themselves, so whole warps call them.
"""

from pipesim.lang.author import author_error
from pipesim.lang.intrinsics import elect, elect_mma_arrive, mma_arrive_multicast, predicated, umma_arrive_leader_cta
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import MBarType, PipelineState, init_barriers, pipeline_struct
from pipesim.pipelines.cutlass.base import (
    AsyncParams,
    ClusterShape,
    CutlassPipeline,
    PipelineTmaAsync,
    TmaParams,
    block_id_in_cluster,
)
from pipesim.pipelines.modular.kernel_context import KernelContext


@pipeline_struct
class PipelineTmaUmmaAsync(PipelineTmaAsync):
    """TMA producer, MMA consumer: ``consumer_release`` is a commit, in a cluster to every CTA that loaded for it."""

    def __init__(
        self,
        storage: MBarType,
        num_stages: int,
        params: TmaParams,
        cluster_shape: ClusterShape = (1, 1),
        atom_thr_shape: ClusterShape = (1, 1),
    ) -> None:
        _require_atom(cluster_shape, atom_thr_shape)
        super().__init__(storage, num_stages, params, cluster_shape)
        self.block_id_mask = _context(cluster_shape, atom_thr_shape).input_commit_mask
        self._alone = cluster_shape == (1, 1)

    @staticmethod
    def init_barriers(
        storage: MBarType,
        num_stages: int,
        params: TmaParams,  # noqa: ARG004  # CUTLASS's signature
        cluster_shape: ClusterShape = (1, 1),
        atom_thr_shape: ClusterShape = (1, 1),
    ) -> None:
        """``full``: 1. ``empty``: the MMAs that read the loads, one commit each; ``num_consumers`` is ignored."""
        _require_atom(cluster_shape, atom_thr_shape)
        x, y = cluster_shape[0] // atom_thr_shape[0], cluster_shape[1] // atom_thr_shape[1]
        init_barriers(storage, 1, x + y - 1, num_stages)

    def consumer_release(self, state: PipelineState) -> None:
        """Commit: ``empty`` gets its arrival when the MMAs issued so far are finished. A pair's leader calls it."""
        self._mine()
        _commit_to(self.empty[state.index()], 0 if self._alone else self.block_id_mask)


@pipeline_struct
class PipelineUmmaAsync(CutlassPipeline):
    """MMA producer (accumulators), consumers that arrive: in a pair at the leader, while the MMA commits to both."""

    def __init__(
        self,
        storage: MBarType,
        num_stages: int,
        params: AsyncParams | None = None,
        cluster_shape: ClusterShape = (1, 1),
        atom_thr_shape: ClusterShape = (1, 1),
    ) -> None:
        _require_atom(cluster_shape, atom_thr_shape)
        super().__init__(storage, num_stages)
        self.params = params if params is not None else AsyncParams()
        self.tmem_sync_mask = _context(cluster_shape, atom_thr_shape).mma_complete_mask
        self._pair = atom_thr_shape != (1, 1)

    @staticmethod
    def init_barriers(storage: MBarType, num_stages: int, params: AsyncParams | None = None) -> None:
        """``full``: ``producer_arv_count``; ``empty``: ``consumer_arv_count``. A commit is one arrival."""
        counts = params if params is not None else AsyncParams()
        init_barriers(storage, counts.producer_arv_count, counts.consumer_arv_count, num_stages)

    def producer_commit(self, state: PipelineState) -> None:
        """Commit: ``full`` gets its arrival when the MMAs issued so far are finished."""
        self._mine()
        _commit_to(self.full[state.index()], self.tmem_sync_mask if self._pair else 0)

    def consumer_release(self, state: PipelineState) -> None:
        """Each executing lane arrives on ``empty``, in a pair on the leader's."""
        self._mine()
        if self._pair:
            umma_arrive_leader_cta(self.empty[state.index()])
        else:
            self.empty[state.index()].arrive_cluster(self.params.destination())


def _context(cluster_shape: ClusterShape, atom_thr_shape: ClusterShape) -> KernelContext:
    """Where the executing CTA is among those that load and multiply together; a pair is along x."""
    block_id_in_cluster(cluster_shape)
    return KernelContext.here(atom_thr_shape[0], *cluster_shape)


def _commit_to(mbar: SharedMemBarrier, mask: int) -> None:
    """One lane commits to the barrier, in the CTAs of a mask if there is one."""
    if not mask:
        elect_mma_arrive(mbar, elect())
        return
    with predicated(elect()):
        mma_arrive_multicast(mbar, mask)


def _require_atom(cluster_shape: ClusterShape, atom_thr_shape: ClusterShape) -> None:
    if any(cluster % atom for cluster, atom in zip(cluster_shape, atom_thr_shape, strict=True)):
        raise author_error(
            f"CTAs multiply together as {atom_thr_shape} in a cluster of {cluster_shape}",
            correction="the cluster shape must be a multiple of the atom's in x and y",
        )
