"""Kernels with slips that were written down, with what was meant, before the tool was run on any of them.

Four sets, of which docs/check.md has the scores. What is offered here is what was judged then to be what
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
from tests.support.blind.later_clusters import CTA_SCHEDULER, ROW_LEADER, cta_scheduler, row_leader
from tests.support.blind.later_gemms import (
    COOPERATIVE,
    NAMED_WARP_GROUPS,
    TCGEN05_TILES,
    cooperative,
    named_warp_groups,
    tcgen05_tiles,
)
from tests.support.blind.later_rings import (
    GATHER,
    LAGGED_RING,
    PEELED_PROLOGUE,
    RELAY_OF_THREE,
    gather,
    lagged_ring,
    peeled_prologue,
    relay_of_three,
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
    "lagged_ring": (lagged_ring, LAGGED_RING),
    "relay_of_three": (relay_of_three, RELAY_OF_THREE),
    "gather": (gather, GATHER),
    "peeled_prologue": (peeled_prologue, PEELED_PROLOGUE),
    "tcgen05_tiles": (tcgen05_tiles, TCGEN05_TILES),
    "cooperative": (cooperative, COOPERATIVE),
    "named_warp_groups": (named_warp_groups, NAMED_WARP_GROUPS),
    "row_leader": (row_leader, ROW_LEADER),
    "cta_scheduler": (cta_scheduler, CTA_SCHEDULER),
}
