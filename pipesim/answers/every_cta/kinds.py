"""Every CTA of a launch: one cluster of each kind, where those of a kind do the same.

A run notes under which conditions on the cluster's place in the grid it continues as it does
(:mod:`pipesim.ptx.free.varying`). The first cluster that no run so far covers is followed next, until all are covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipesim.answers.every_cta.conditions import broken, covered
from pipesim.bounds import MAX_WARP_INSTRUCTIONS
from pipesim.ptx.coverage import place_in
from pipesim.ptx.extract import Extraction
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.values import Shape

if TYPE_CHECKING:
    import numpy as np  # which few checks need

MOST_KINDS = 64
_MOST_INSTRUCTIONS = 4 * MAX_WARP_INSTRUCTIONS  #: of all kinds together
_AT_ONCE = 1 << 20  #: clusters whose conditions are evaluated together


@dataclass(frozen=True)
class CtaKind:
    """Clusters that do the same as the first of them, whose first CTA this is. ``clusters``: how many, so far.

    ``inputs``: under which conditions they do, which ``instructions`` have shown.
    ``differs``: what is not so in this cluster that is in the one before, ``blockIdx.x > 62 at kernel.cu:55``.
    """

    cta: int
    inputs: FreeInputs
    instructions: int
    clusters: int = 0
    differs: str = ""


class EveryCta:
    """The kinds of clusters of a launch of which one was read; iterating gives one of each other kind, as it was read.

    ``looked_at``: the number of clusters, from the first on, that all are of one of the kinds.
    """

    def __init__(self, first: Extraction, most: int = MOST_KINDS) -> None:
        launch = first.kernel.launch
        self._grid, self._cluster = launch.grid, launch.cluster
        self._names = [launch.place_name(axis) for axis in range(3)]
        x, y, z = (g // c for g, c in zip(launch.grid, launch.cluster, strict=True))
        self._shape: Shape = (x, y, z)
        self._most = most
        self.clusters = x * y * z
        self.looked_at = 0
        self._first = first
        self.kinds = [CtaKind(launch.cta or 0, first.inputs, first.instructions)]

    @property
    def complete(self) -> bool:
        """Whether every cluster is of one of the kinds."""
        return self.looked_at == self.clusters

    def __iter__(self) -> Iterator[Extraction]:
        if not self.kinds[0].inputs.conditions:  # it does the same in every place
            self.looked_at = self.clusters
            self.kinds[0] = replace(self.kinds[0], clusters=self.clusters)
            return
        import numpy as np

        for start in range(0, self.clusters, _AT_ONCE):
            left = np.arange(start, min(start + _AT_ONCE, self.clusters), dtype=np.int64)
            for number in range(len(self.kinds)):
                left = self._take(number, left)
            while len(left):
                self.looked_at = int(left[0])
                if len(self.kinds) == self._most or self._spent > _MOST_INSTRUCTIONS:
                    return
                made = self._follow(int(left[0]))
                left = self._take(-1, left)
                yield made
                del made  # it is large
            self.looked_at = min(start + _AT_ONCE, self.clusters)

    @property
    def _spent(self) -> int:
        return sum(kind.instructions for kind in self.kinds)

    def _take(self, number: int, left: np.ndarray) -> np.ndarray:
        """Those of some clusters that are not of this kind."""
        kind = self.kinds[number]
        mine = covered(kind.inputs, self.places(left))
        self.kinds[number] = replace(kind, clusters=kind.clusters + int(mine.sum()))
        others: np.ndarray = left[~mine]
        return others

    def first_cta_of(self, cluster: int) -> int:
        """The number in the grid of the first CTA of a cluster, x counted first."""
        x, y, _ = self._shape
        at = cluster % x, cluster // x % y, cluster // (x * y)
        i, j, k = (place * size for place, size in zip(at, self._cluster, strict=True))
        return (k * self._grid[1] + j) * self._grid[0] + i

    def _follow(self, cluster: int) -> Extraction:
        import numpy as np

        found = broken(self.kinds[-1].inputs, self.places(np.array([cluster])))
        differs = ""
        if found is not None:
            differs = " at ".join(filter(None, (found.words, place_in(self._first.kernel, found.position))))
        cta = self.first_cta_of(cluster)
        made = self._first.with_setting("cta", cta)
        self.kinds.append(CtaKind(cta, made.inputs, made.instructions, 0, differs))
        return made

    def places(self, clusters: np.ndarray) -> dict[str, np.ndarray]:
        """The free inputs of clusters by their numbers, x counted first."""
        x, y, _ = self._shape
        at = clusters % x, clusters // x % y, clusters // (x * y)
        return dict(zip(self._names, at, strict=True))
