"""Where the compiler puts the softmax of Hopper's attention kernels between the releases of the tiles that it follows.

In the source of the twins a consumer gives a tile of K back when its scores are there, computes its softmax, waits for
the product with V, and gives V back. In a kernel that records, two records are around the softmax, and it stays
between them. Without them the compiler moves instructions past the releases, differently for each size, and that
decides when the producer continues. Read from the machine code (NVRTC 13.0, ``nvdisasm``): how many of the comparisons
and exponentials come before each release.
"""

from dataclasses import dataclass

from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp

#: Parts of the search for the largest scores, and of the exponentials after it.
_PARTS = 1000


@dataclass(frozen=True)
class SoftmaxOrder:
    """How much of a softmax comes before K is given back, before the wait for V's product, and before V is given back.

    In thousandths: up to 1,000 of the search for the largest scores, from there to 2,000 of the exponentials.
    """

    keys: int
    wait: int
    values: int


#: By keys of a block, elements of a head, and whether the groups take turns: K and V in rings of their own.
_STAGED = {
    (64, 64, False): SoftmaxOrder(0, 690, 1060),
    (64, 128, False): SoftmaxOrder(0, 1150, 1150),
    (128, 64, False): SoftmaxOrder(0, 500, 1260),
    (128, 128, False): SoftmaxOrder(0, 680, 700),
    (64, 64, True): SoftmaxOrder(1120, 1120, 1150),
    (64, 128, True): SoftmaxOrder(1090, 1090, 1150),
    (128, 64, True): SoftmaxOrder(500, 500, 1380),
    (128, 128, True): SoftmaxOrder(490, 490, 1000),
}
#: The same of K and V in one ring.
_FUSED = {
    (64, 64, False): SoftmaxOrder(1350, 1350, 1380),
    (64, 128, False): SoftmaxOrder(1350, 1350, 1380),
    (128, 64, False): SoftmaxOrder(0, 470, 470),
    (128, 128, False): SoftmaxOrder(1300, 1320, 1320),
    (64, 64, True): SoftmaxOrder(1290, 1290, 1320),
    (64, 128, True): SoftmaxOrder(560, 560, 560),
    (128, 64, True): SoftmaxOrder(490, 490, 490),
    (128, 128, True): SoftmaxOrder(1260, 1260, 1330),
}
_AS_WRITTEN = SoftmaxOrder(0, 500, 500)  #: of sizes that the twins do not have: a guess


def softmax_order(block_n: int, depth: int, *, turns: bool, fused: bool) -> SoftmaxOrder:
    """The order for a kernel of these sizes. ``fused``: K and V share a ring."""
    return (_FUSED if fused else _STAGED).get((block_n, depth, turns), _AS_WRITTEN)


@dataclass
class Softmax:
    """The softmax of one block by one warp, in the parts that a kernel computes at a time.

    ``scores``: the warp's, which each part reads; ``block``: their item. ``done``: thousandths, as in SoftmaxOrder.
    """

    scores: Slot
    block: int
    block_n: int
    depth: int
    done: int = 0

    def until(self, w: Warp, done: int) -> None:
        """What a launch that records nothing computes up to there."""
        largest, weights = min(done, _PARTS) - min(self.done, _PARTS), max(done, _PARTS) - max(self.done, _PARTS)
        if largest > 0:
            found = self.done < _PARTS <= done
            w.read(self.scores, self.block)
            w.compute(
                "attention/largest" if found else "attention/largest_begin",
                alu=self.block_n // 2 * largest // _PARTS,
                shuffles=2 * found,
                unrecorded=1,
            )
        if weights > 0:
            w.read(self.scores, self.block)
            w.compute("attention/weights_begin", **self._weights(weights), unrecorded=1)
        self.done = max(self.done, done)

    def all_at_once(self, w: Warp, cycles: int) -> None:
        """What a launch that records computes between the two records of the work, which takes ``cycles`` where
        nothing is known about it.
        """
        w.read(self.scores, self.block)
        w.work(cycles)
        w.compute("attention/softmax", alu=self.block_n // 2, shuffles=2, **self._exponentials(_PARTS), recorded=1)

    def end(self, w: Warp) -> None:
        """The rest: the former sums to the new scale, and the weights as an operand of the next product."""
        self.until(w, _PARTS)
        w.read(self.scores, self.block)
        left = 2 * _PARTS - max(self.done, _PARTS)
        w.compute("attention/weights", **_sum(self._weights(left), {"fma": self.depth // 2}), unrecorded=1)
        w.read(self.scores, self.block)
        w.compute("attention/convert", alu=self.block_n // 4, fma=self.depth // 2, recorded=1)

    def _exponentials(self, parts: int) -> dict[str, int]:
        return {"exp2": (self.block_n // 2 + 2) * parts // _PARTS, "fma": self.block_n * parts // _PARTS}

    def _weights(self, parts: int) -> dict[str, int]:
        """Exponentials, their sums, and their conversion."""
        return self._exponentials(parts) | {"alu": self.block_n // 4 * parts // _PARTS}


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in one | other}
