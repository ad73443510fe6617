"""``GridBarrier``: a barrier of all CTAs of a grid, which no instruction is: a counter in global memory."""

from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp
from pipesim.model.ops import Order


class GridBarrier:
    """A barrier of all CTAs of the grid, which a counter in global memory is."""

    def __init__(self, counter: Slot, ctas: int) -> None:
        self._counter, self._ctas = counter, ctas

    def sync(self, w: Warp) -> None:
        """Every thread of the CTA comes here (``__syncthreads``), then one of them raises the counter and waits until
        those of all CTAs have: what any thread of the grid has done before is ordered before what others do after.
        """
        w.sync_threads()
        if w.warp == 0:
            with w.elect_one():
                lap = 1 + w.times_raised(self._counter)
                w.atomic(self._counter, add=1, order=Order.RELEASE)
                w.spin_until(self._counter, at_least=lap * self._ctas, order=Order.ACQUIRE)
        w.sync_threads()
