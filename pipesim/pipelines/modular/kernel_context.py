"""``KernelContext``: where a CTA is in its cluster, and whom its multicasts and commits reach.

Upstream: ``structured_kernels/kernel_common.mojo``; the mask of the commit is computed by ``MmaOpSM100_SS`` in
``linalg/arch/sm100/mma.mojo``. A cluster has ``CLUSTER_M`` by ``CLUSTER_N`` CTAs, the rank runs along M first. CTAs of
one row (the same ``rank_m``) multiply the same tile of A, each loads a slice of it, multicast to all of the row; those
of one column share B. With ``cta_group`` 2 CTAs 2i and 2i + 1, neighbours along M, are a pair: the even one leads, its
MMA warp multiplies for both, each of the two has its own half of B, and so a column shares B by parity.
"""

from dataclasses import dataclass

from pipesim.errors import ParameterError
from pipesim.lang.recorder import recorder

MAX_CLUSTER = 16  #: CTAs of a cluster: 8 everywhere, 16 where the kernel opts in to sizes that are not portable


def require_cluster_shape(cluster_m: int, cluster_n: int, cta_group: int) -> None:
    """Raise ParameterError unless such a cluster exists: whole groups along M, at most 16 CTAs."""
    if cta_group not in (1, 2):
        raise ParameterError(f"cta_group = {cta_group}", correction="use 1 or 2")
    if cluster_m < 1 or cluster_n < 1:
        raise ParameterError(
            f"a cluster of {cluster_m} by {cluster_n} CTAs", correction="use at least 1 CTA along M and along N"
        )
    if cluster_m % cta_group:
        raise ParameterError(
            f"cluster_m = {cluster_m} with cta_group = {cta_group}",
            cause="the CTAs of a pair are neighbours along M",
            correction=f"use cluster_m = {cluster_m + 1}, or another multiple of 2",
        )
    if cluster_m * cluster_n > MAX_CLUSTER:
        raise ParameterError(
            f"cluster_m = {cluster_m} with cluster_n = {cluster_n} are {cluster_m * cluster_n} CTAs",
            cause=f"a cluster has at most {MAX_CLUSTER} CTAs (8 without the opt-in for sizes that are not portable)",
            correction=f"use cluster_m * cluster_n = {MAX_CLUSTER} or less",
        )


def compute_input_consumer_count(
    cluster_m: int, cluster_n: int, cta_group: int, cluster_size: int = 0, epilogue_threads: int = 0
) -> int:
    """The count of ``empty`` of the input: commits of every leader that reads what this CTA multicasts.

    These are the leaders of its column, ``cluster_m / cta_group``, and those of its row, ``cluster_n``, its own counted
    once. Where the epilogue reads the input too (blockwise FP8), one lane of each of its warps in every CTA as well.
    """
    return cluster_m // cta_group + cluster_n - 1 + cluster_size * (epilogue_threads // 32)


def compute_accum_barrier_counts(epilogue_threads: int, cta_group: int) -> tuple[int, int]:
    """The counts of ``full`` and ``empty`` of the accumulators: a commit; the epilogue threads of all CTAs that share
    the tile, which are the pair's, however large the cluster is.
    """
    return 1, cta_group * epilogue_threads


@dataclass(frozen=True)
class KernelContext:
    """One CTA of a cluster: its coordinates, its peers and the masks of its multicasts.

    Raises ParameterError for a shape that does not exist, or a rank outside it.
    """

    cta_group: int
    cluster_m: int  #: upstream ``CLUSTER_M``
    cluster_n: int  #: upstream ``CLUSTER_N``
    block_rank_in_cluster: int

    def __post_init__(self) -> None:
        require_cluster_shape(self.cluster_m, self.cluster_n, self.cta_group)
        if not 0 <= self.block_rank_in_cluster < self.cluster_size:
            raise ParameterError(
                f"CTA {self.block_rank_in_cluster} of a cluster of {self.cluster_size}",
                correction=f"use 0 to {self.cluster_size - 1}",
            )

    @classmethod
    def here(cls, cta_group: int, cluster_m: int, cluster_n: int) -> "KernelContext":
        """The context of the CTA whose role, or init, is recorded now."""
        return cls(cta_group, cluster_m, cluster_n, recorder().cta)

    @property
    def cluster_size(self) -> int:
        """CTAs of the cluster."""
        return self.cluster_m * self.cluster_n

    # elections

    @property
    def elect_one_cta(self) -> bool:
        """True for the leader of a pair, and for every CTA that multiplies alone: it expects bytes, and multiplies."""
        return self.block_rank_in_cluster % self.cta_group == 0

    @property
    def is_first_cta_in_cluster(self) -> bool:
        """True for the CTA with the scheduler."""
        return self.block_rank_in_cluster == 0

    # coordinates

    @property
    def rank_m(self) -> int:
        """The row: which tile of A."""
        return self.block_rank_in_cluster % self.cluster_m

    @property
    def rank_n(self) -> int:
        """The column: which tile of B."""
        return self.block_rank_in_cluster // self.cluster_m

    @property
    def peer_cta_coord(self) -> tuple[int, int, int]:
        """The place in the pair; the slice of B that it loads; the slice of A that it loads."""
        return self.rank_m % self.cta_group, self.rank_m // self.cta_group, self.rank_n

    @property
    def a_slices(self) -> int:
        """Equal slices of a tile of A that the CTAs of a row load, one each."""
        return self.cluster_n

    @property
    def b_slices(self) -> int:
        """Equal slices of a CTA's tile of B, one for each CTA of its column with the same place in the pair."""
        return self.cluster_m // self.cta_group

    @property
    def group_ranks(self) -> tuple[int, ...]:
        """The CTAs that multiply together: itself, or both of its pair, the leader first."""
        leader = self.leader_rank
        return tuple(range(leader, leader + self.cta_group))

    @property
    def leader_rank(self) -> int:
        """The CTA that multiplies for this one, and counts its bytes."""
        return self.block_rank_in_cluster - self.block_rank_in_cluster % self.cta_group

    # masks

    @property
    def a_multicast_mask(self) -> int:
        """The CTAs of its row: where its slice of A lands."""
        return sum(1 << n * self.cluster_m for n in range(self.cluster_n)) << self.rank_m

    @property
    def b_multicast_mask(self) -> int:
        """The CTAs of its column with the same place in the pair: where its slice of B lands."""
        first = self.peer_cta_coord[0] + self.rank_n * self.cluster_m
        return sum(1 << i * self.cta_group for i in range(self.b_slices)) << first

    @property
    def mma_complete_mask(self) -> int:
        """Itself and its peer: where the commit of an accumulator arrives."""
        return sum(1 << rank for rank in self.group_ranks)

    @property
    def input_commit_mask(self) -> int:
        """Where the commit of an input stage arrives (upstream ``MmaOpSM100_SS.mask``): every CTA that loads for it.

        These are the CTAs of its column, of both parities, and of its row, for a pair of both rows. A cluster of one
        CTA commits without a mask.
        """
        column = ((1 << self.cluster_m) - 1) << self.rank_n * self.cluster_m
        rows = sum(1 << n * self.cluster_m for n in range(self.cluster_n))
        return column | sum(rows << rank % self.cluster_m for rank in self.group_ranks)
