"""Kernels with slips that were written down, with what was meant, before the tool was run on any of them.

Two sets of 60 and 45 mistakes; docs/check.md has their scores. What is offered here is what was judged then to be what
was meant, or the same in other words; () where nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipesim.lang.protocol import Protocol
from tests.support.blind.attentions import ATTENTION, TWO_GROUPS, attention, two_groups
from tests.support.blind.clusters import MULTICAST, PARTIAL_SUMS, multicast, partial_sums
from tests.support.blind.gemms import (
    BLOCK_SCALED,
    COLLECTIVE_MMA,
    PERSISTENT_GEMM,
    block_scaled,
    collective_mma,
    persistent_gemm,
)
from tests.support.blind.handoffs import (
    FINAL,
    NAMED_SPLIT,
    PING_PONG_MBARRIERS,
    SCHEDULER,
    final,
    named_split,
    ping_pong_mbarriers,
    scheduler,
)
from tests.support.blind.rings import (
    DOUBLE_BUFFER,
    MULTISTAGE_LOOP,
    STORE_RING,
    WARP_GROUP_RING,
    double_buffer,
    multistage_loop,
    store_ring,
    warp_group_ring,
)

#: Every kernel by its name, with what is offered for each slip.
KERNELS: dict[str, tuple[Callable[[str], Protocol], Mapping[str, tuple[str, ...]]]] = {
    "persistent_gemm": (persistent_gemm, PERSISTENT_GEMM),
    "collective_mma": (collective_mma, COLLECTIVE_MMA),
    "block_scaled": (block_scaled, BLOCK_SCALED),
    "attention": (attention, ATTENTION),
    "two_groups": (two_groups, TWO_GROUPS),
    "double_buffer": (double_buffer, DOUBLE_BUFFER),
    "multistage_loop": (multistage_loop, MULTISTAGE_LOOP),
    "warp_group_ring": (warp_group_ring, WARP_GROUP_RING),
    "store_ring": (store_ring, STORE_RING),
    "named_split": (named_split, NAMED_SPLIT),
    "ping_pong_mbarriers": (ping_pong_mbarriers, PING_PONG_MBARRIERS),
    "scheduler": (scheduler, SCHEDULER),
    "final": (final, FINAL),
    "multicast": (multicast, MULTICAST),
    "partial_sums": (partial_sums, PARTIAL_SUMS),
}
