"""``TensorMapSwizzle``: how TMA permutes the rows of a tile (upstream ``gpu/host/nvidia/tma.mojo``).

The permutation itself is not modelled. Its width is: a tile's depth is padded to it.
"""

from __future__ import annotations

from enum import IntEnum


class TensorMapSwizzle(IntEnum):
    """The swizzle mode of a tensor map, by upstream's names and values."""

    SWIZZLE_NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3

    def bytes(self) -> int:
        """Bytes of one swizzle atom's row: 16 without a swizzle."""
        return 16 << self.value
