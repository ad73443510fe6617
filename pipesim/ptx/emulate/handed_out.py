"""Which tiles this cluster is handed out, by cluster launch control or by a counter: any increasing choice of them.

Where a launch does not fix them, each is a free input: an element of an array that rises.
"""

from __future__ import annotations

from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.file import MOST_FREE
from pipesim.ptx.launch.values import HANDED_OUT, Launch


class HandedOut:
    """The tiles of one cluster, in their order. ``fixed``: they are the next ones. ``clusters``: of the grid."""

    def __init__(self, launch: Launch, inputs: FreeInputs, *, fixed: bool = False) -> None:
        self._inputs, self._given, self._left = inputs, launch.policies.handed_out, launch.left
        self._fixed = fixed or bool(self._given)
        self._step = 0  # of the counter
        self._chosen = {index: value for name, index, value in launch.contents if name == HANDED_OUT}
        x, y, z = (g // c for g, c in zip(launch.grid, launch.cluster, strict=True))
        self.clusters = x * y * z

    def by_launch_control(self, number: int, count: int) -> int:
        """The number of the cluster whose work is handed out as the ``number``-th of ``count``, x counted first."""
        array = FreeArray(HANDED_OUT, 1, 1, self.clusters - 2, count, tuple(range(count)))
        after = self._given[-1] - len(self._given) if self._given else 0
        return self._tile(number, after + number + 1, array)

    def by_counter(self, number: int, usual: int, step: int) -> int:
        """The ``number``-th answer of a counter to which each tile adds ``step``; without others ``usual``."""
        array, self._step = None, self._step or step
        if self._left is not None and step == self._step:
            count, first, end = self._left
            low = (end - first) // step  # of the answers that other CTAs have when nothing is left
            most = min(low + self.clusters - 1, MOST_FREE)
            last = tuple(range(low - count, low + 1))
            array = FreeArray(HANDED_OUT, first, step, most, count + 1, last, late=(count, low))
        return self._tile(number, usual, array)

    def _tile(self, number: int, usual: int, array: FreeArray | None) -> int:
        if number < len(self._given):
            return self._given[number]
        now = self._chosen.get(number, usual)
        if array is None or self._fixed or number >= array.count:
            return now
        made = array.rising(self._chosen)
        return now if made is None else self._inputs.element(made, number, int.__int__(now))
