"""``Depth512MBars``: every mbarrier of the attention of heads of depth 256 and 512.

Upstream: ``nn/attention/gpu/nvidia/sm100/mha_depth512/barriers.mojo``. The comments of its accessors give the counts of
a single CTA; both CTAs of the pair arrive at the leader, as its header says and its code does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ParameterError, ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import MBarType, mbars_at, name_mbars
from pipesim.pipelines.modular.attention.depth512 import Depth512SM100Config
from pipesim.pipelines.modular.attention.fa4 import WARP_GROUP
from pipesim.pipelines.modular.attention.role_pipeline import RolePipeline

PAIR = 2  #: CTAs


@dataclass(frozen=True)
class Depth512MBarLayout:
    """Where each barrier lies and how many arrivals complete it. ``split_o``: the output has two halves."""

    num_kv_stages: int
    split_o: bool = True

    def __post_init__(self) -> None:
        if self.num_kv_stages < 1:
            raise ParameterError(f"{self}", correction="use at least 1 slot")

    @classmethod
    def of(cls, config: Depth512SM100Config) -> Depth512MBarLayout:
        """The barriers of a configuration."""
        return cls(config.num_kv_stages, config.split_o)

    def groups(self) -> tuple[tuple[str, int, int], ...]:
        """Name, number of barriers and count of each group, as they lie one after the other."""
        hi, wide, kv = int(self.split_o), WARP_GROUP * PAIR, self.num_kv_stages
        return (
            ("PO_lo", 1, 2 * wide), ("PO_hi", hi, wide), ("S_even_cons", 1, wide), ("S_odd_cons", 1, wide),
            ("C_prod", 1, WARP_GROUP), ("C_cons", 1, WARP_GROUP), ("S_even_prod", 1, 1), ("S_odd_prod", 1, 1),
            ("O_mma_lo", 1, 1), ("O_mma_hi", hi, 1), ("KV_prod", kv, 1), ("KV_cons", kv, 1),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many mbarriers there are in all."""
        return sum(count for _, count, _ in self.groups())

    def offset(self, group: str) -> int:
        """Index of the first barrier of a group, by its name in :meth:`groups`."""
        first = 0
        for name, size, _ in self.groups():
            if name == group and size:
                return first
            first += size
        raise ProtocolError(
            f"these Depth512MBars have no {group}",
            place=author_line(),
            cause="without the halves of the output its address is that of the group after it",
            correction="ask for a layout with split_o, or see Depth512MBarLayout.groups()",
        )


class Depth512MBars:
    """The barriers of one CTA and the pipelines over them. It is a pointer and no state: make it anywhere, share it.

    The pipelines that its methods return belong to the role that asks for them. What frees the output for the MMA is
    PO: PO_lo says as well that P is written.
    """

    def __init__(self, mbar_base: MBarType, layout: Depth512MBarLayout) -> None:
        self.layout = layout
        self._mbars = mbars_at(mbar_base, layout.size, "Depth512MBars")
        self.mbar_base = self._mbars[0]
        first = 0
        for name, size, _ in layout.groups():
            name_mbars(self._mbars[first : first + size], name)
            first += size

    @staticmethod
    def num_mbars(layout: Depth512MBarLayout) -> int:
        """How many mbarriers it needs."""
        return layout.size

    def init(self) -> None:
        """Initialise every barrier with its count. One thread; upstream spreads it over the lanes of a warp."""
        counts = [count for _, size, count in self.layout.groups() for _ in range(size)]
        for mbar, count in zip(self._mbars, counts, strict=True):
            mbar.init(count)

    # S: MMA → softmax

    def producer_s_even(self) -> RolePipeline:
        """The MMA's side of the scores of even tiles."""
        return self._pipe("S_even_prod", "S_even_cons", is_producer=True)

    def producer_s_odd(self) -> RolePipeline:
        """The MMA's side of the scores of odd tiles."""
        return self._pipe("S_odd_prod", "S_odd_cons", is_producer=True)

    def consumer_s_even(self) -> RolePipeline:
        """The softmax's side of the scores of even tiles: its ``release`` says that they are in registers."""
        return self._pipe("S_even_prod", "S_even_cons", is_producer=False)

    def consumer_s_odd(self) -> RolePipeline:
        """The softmax's side of the scores of odd tiles."""
        return self._pipe("S_odd_prod", "S_odd_cons", is_producer=False)

    # C: softmax → correction, in each CTA

    def producer_c(self) -> RolePipeline:
        """The softmax's side of the factors."""
        return self._pipe("C_prod", "C_cons", is_producer=True)

    def consumer_c(self) -> RolePipeline:
        """The correction's side of the factors."""
        return self._pipe("C_prod", "C_cons", is_producer=False)

    # O: MMA → correction; what frees it is PO

    def producer_o_lo(self) -> RolePipeline:
        """The MMA's side of O, or of O_lo: its ``acquire`` waits for P and for the correction."""
        return self._pipe("O_mma_lo", "PO_lo", is_producer=True)

    def producer_o_hi(self) -> RolePipeline:
        """The MMA's side of O_hi."""
        return self._pipe("O_mma_hi", "PO_hi", is_producer=True)

    def consumer_o_lo(self) -> RolePipeline:
        """The correction's side of O, or of O_lo: its ``release`` arrives on PO_lo."""
        return self._pipe("O_mma_lo", "PO_lo", is_producer=False)

    def consumer_o_hi(self) -> RolePipeline:
        """The correction's side of O_hi."""
        return self._pipe("O_mma_hi", "PO_hi", is_producer=False)

    # single barriers

    def po_lo_mbar(self) -> SharedMemBarrier:
        """Where the softmax arrives when P is written, and the correction when O is rescaled."""
        return self._at("PO_lo")

    def po_hi_mbar(self) -> SharedMemBarrier:
        """Where the correction arrives when O_hi is rescaled."""
        return self._at("PO_hi")

    def get_kv_mbars(self) -> SharedMemBarrier:
        """The first barrier of the ring: ``StagedPipeline(get_kv_mbars(), num_kv_stages)``."""
        return self._at("KV_prod")

    def _pipe(self, producer: str, consumer: str, *, is_producer: bool) -> RolePipeline:
        group = 1 if producer.startswith("C_") else PAIR
        return RolePipeline(
            self._at(producer), self._at(consumer), 1, is_producer=is_producer, cta_group=group if is_producer else 1
        )

    def _at(self, group: str) -> SharedMemBarrier:
        return self._mbars[self.layout.offset(group)]
