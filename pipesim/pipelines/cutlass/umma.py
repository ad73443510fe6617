"""CUTLASS's pipelines of SM100, as far as they differ: an MMA arrives by ``tcgen05.commit``.

Upstream: ``include/cutlass/pipeline/sm100_pipeline.hpp``. ``atom_thr_shape`` is (2, 1) where two CTAs multiply
together, else (1, 1). The commits elect their lane themselves, so whole warps call them.
"""

from pipesim.lang.author import author_error
from pipesim.lang.intrinsics import elect, elect_mma_arrive, mma_arrive_multicast, predicated, umma_arrive_leader_cta
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import MBarType, PipelineState, pipeline_struct
from pipesim.pipelines.cutlass.base import (
    AsyncParams,
    ClusterShape,
    CutlassPipeline,
    PipelineTmaAsync,
    TmaParams,
    block_id_in_cluster,
    init_stages,
)


def calculate_multicast_mask(cluster_shape: ClusterShape, atom_thr_shape: ClusterShape) -> int:
    """The CTAs whose loads, along a row or a column, this CTA's MMA has read: it signals them when it is finished.

    A pair counts as one place.
    """
    mine = _pair(block_id_in_cluster(cluster_shape), atom_thr_shape)
    mask = 0
    for y in range(cluster_shape[1]):
        for x in range(cluster_shape[0]):
            other = _pair((x, y), atom_thr_shape)
            if other[0] == mine[0] or other[1] == mine[1]:
                mask |= 1 << x + y * cluster_shape[0]
    return mask


def calculate_umma_peer_mask(cluster_shape: ClusterShape, atom_thr_shape: ClusterShape) -> int:
    """The CTAs that multiply together with this one, itself included."""
    at = _pair(block_id_in_cluster(cluster_shape), atom_thr_shape)
    first_x, first_y = at[0] * atom_thr_shape[0], at[1] * atom_thr_shape[1]
    return sum(
        1 << first_x + x + (first_y + y) * cluster_shape[0]
        for y in range(atom_thr_shape[1])
        for x in range(atom_thr_shape[0])
    )


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
        self.block_id_mask = calculate_multicast_mask(cluster_shape, atom_thr_shape)
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
        init_stages(storage, num_stages, 1, x + y - 1)

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
        self.tmem_sync_mask = calculate_umma_peer_mask(cluster_shape, atom_thr_shape)
        self._pair = atom_thr_shape != (1, 1)

    @staticmethod
    def init_barriers(storage: MBarType, num_stages: int, params: AsyncParams | None = None) -> None:
        """``full``: ``producer_arv_count``; ``empty``: ``consumer_arv_count``. A commit is one arrival."""
        counts = params if params is not None else AsyncParams()
        init_stages(storage, num_stages, counts.producer_arv_count, counts.consumer_arv_count)

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


def _pair(block: tuple[int, int], atom_thr_shape: ClusterShape) -> tuple[int, int]:
    return block[0] // atom_thr_shape[0], block[1] // atom_thr_shape[1]


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
