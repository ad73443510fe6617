"""``LoadOrderBarrier`` (upstream ``nn/conv/gpu/nvidia/sm100/epilogue_load_pipeline.mojo``).

The main-load warp arrives when the first loads of a tile are under way, then the epilogue-load warp starts its own.

A hazard that the source implies: **nothing holds the arriver back**. If it arrives twice before the waiter has tested
once, the parity is back where it was, the wait misses both arrivals, and without a third one it hangs. conv2d arrives
once for every output tile, and its load warp may be two tiles ahead. CUTLASS
(``include/cutlass/gemm/kernel/sm100_gemm_tma_warpspecialized.hpp``) arrives and waits for the first tile only: one
arrival and one wait cannot miss each other.
"""

from __future__ import annotations

from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, mbars_at


@pipeline_struct
class LoadOrderBarrier(RegisterValue):
    """One mbarrier at ``storage``, an array or a pointer into one, and the phase of one side.

    Each role makes an object of its own.
    """

    def __init__(self, storage: MBarType, initial_phase: int = 0, *, group: str = "load_order") -> None:
        super().__init__()
        (self.barrier,) = mbars_at(storage, 1, "a LoadOrderBarrier")
        self.phase = initial_phase
        self.barrier.storage.label(self.barrier.index, 1, group)

    def init(self, arrive_count: int = 1) -> None:
        """Initialise the barrier; one thread calls it. The count of 1 is the main-load warp's elected lane."""
        self.barrier.init(arrive_count)

    def arrive(self) -> None:
        """Called by the main-load warp: arrive, once for each executing lane."""
        self._mine()
        self.barrier.arrive()

    def wait(self) -> None:
        """Called by the epilogue-load warp: wait for the phase of this side's parity."""
        self._mine()
        self.barrier.wait(self.phase)

    def step(self) -> None:
        """Toggle the phase of this side."""
        self._mine()
        self.phase ^= 1

    def arrive_and_step(self) -> None:
        """:meth:`arrive`, then :meth:`step`."""
        self.arrive()
        self.step()

    def wait_and_step(self) -> None:
        """:meth:`wait`, then :meth:`step`."""
        self.wait()
        self.step()
