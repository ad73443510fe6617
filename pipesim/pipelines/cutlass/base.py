"""What CUTLASS's pipelines have in common (``include/cutlass/pipeline/sm90_pipeline.hpp``).

A CUTLASS pipeline has barriers and no counters: every call takes a :class:`PipelineState`, which the caller steps. Its
constructor initialises the barriers; here that is the separate :meth:`init_barriers`, which CUTLASS has too, because
one init runs before the roles. A thread's flags (``is_leader``) are masks of lanes, and a thread's role
(``ThreadCategory``), which only debug builds check, is left out.

Against Modular's names: ``producer_acquire`` is ``wait_consumer``, ``consumer_wait`` is ``wait_producer``.
"""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, TryResult
from pipesim.pipelines.common.pipeline_state import PipelineState
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, ring_at, ring_mbars

Token = TryResult | bool  #: a try_wait's result; False is ``BarrierStatus::WaitAgain``, True ``WaitDone``
ClusterShape = tuple[int, int]  #: CTAs along x and along y


class CutlassPipeline(RegisterValue):
    """``full_barrier_[S]`` then ``empty_barrier_[S]`` at ``storage``, and the calls that all pipelines share.

    ``storage`` is an array of mbarriers or a pointer into one (``b[2]``), here and in ``init_barriers``.
    """

    _own = "which lanes lead and signal belongs"

    def __init__(self, storage: MBarType, num_stages: int) -> None:
        super().__init__()
        self.num_stages = num_stages
        self.full, self.empty = ring_at(storage, num_stages)

    # the producer

    def producer_try_acquire(self, state: PipelineState, skip_wait: bool = False) -> Token:  # noqa: FBT001, FBT002  # CUTLASS's signature
        """One try whether the stage is empty, or no try and yes with ``skip_wait``. Hand the token to the acquire."""
        self._mine()
        return True if skip_wait else self.empty[state.index()].try_wait(state.phase())

    def producer_acquire(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is empty, unless the token says so already."""
        self._mine()
        self.empty[state.index()].wait_if_needed(barrier_token, state.phase())

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until all stages are empty, so that no CTA exits while others signal it. The state stays as it was."""
        self._mine()
        at = state.copy()
        for _ in range(self.num_stages):
            self.empty[at.index()].wait(at.phase())
            at.step()

    def producer_get_barrier(self, state: PipelineState) -> SharedMemBarrier:
        """``full`` of the stage: what a TMA is given."""
        return self.full[state.index()]

    # the consumer

    def consumer_try_wait(self, state: PipelineState, skip_wait: bool = False) -> Token:  # noqa: FBT001, FBT002  # CUTLASS's signature
        """One try (``try_wait``) whether the stage is full, or no try and yes with ``skip_wait``."""
        self._mine()
        return True if skip_wait else self.full[state.index()].try_wait(state.phase())

    def consumer_wait(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is full, unless the token says so already."""
        self._mine()
        self.full[state.index()].wait_if_needed(barrier_token, state.phase())


def init_stages(storage: MBarType, num_stages: int, producer_arv_count: int, consumer_arv_count: int) -> None:
    """Initialise ``full[S]`` for the producer's arrivals, ``empty[S]`` for the consumers'."""
    for full, empty in zip(*ring_mbars(storage, num_stages), strict=True):
        full.init(producer_arv_count)
        empty.init(consumer_arv_count)


def block_id_in_cluster(cluster_shape: ClusterShape) -> tuple[int, int]:
    """Place of the executing CTA in its cluster; ProtocolError if the protocol's cluster has another size."""
    x, y = cluster_shape
    rec = recorder()
    if x * y != rec.tables.ctas:
        raise ProtocolError(
            f"{rec.who}: a cluster shape of {x} x {y} in a cluster of {rec.tables.ctas} CTAs",
            place=author_line(),
            correction="create the protocol with Protocol(name, cluster=x * y)",
        )
    return rec.cta % x, rec.cta // x
