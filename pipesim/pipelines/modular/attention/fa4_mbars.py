"""``FA4MiscMBars``: every mbarrier of flash attention 4.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``. Its parameters and the offsets that
follow from them are :class:`FA4MBarLayout` here, because a protocol must know how many barriers to ask for before it
has them.
"""

from dataclasses import dataclass, fields

from pipesim.errors import ParameterError
from pipesim.lang.author import author_error
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import MBarType, mbars_at, name_mbars, require_within
from pipesim.pipelines.modular.attention.fa4 import WARP_GROUP, FA4Config
from pipesim.pipelines.modular.attention.staged import RolePipeline

MOST_MBARS = 64  #: one warp initialises them, one a lane, in at most two rounds


@dataclass(frozen=True)
class FA4MBarLayout:
    """Where each barrier lies and how many arrivals complete it. Upstream's kernel is built without order barriers."""

    num_qk_stages: int = 1
    num_pv_stages: int = 1
    num_kv_stages: int = 2
    use_fused_kv: bool = False
    pair_cta: bool = False
    num_qo: int = 2

    def __post_init__(self) -> None:
        if min(self.num_qk_stages, self.num_pv_stages, self.num_kv_stages) < 1 or self.num_qo not in (1, 2):
            raise ParameterError(f"{self}", correction="every count must be at least 1, and num_qo 1 or 2")
        if self.size > MOST_MBARS:
            raise ParameterError(
                f"{self.size} mbarriers",
                cause=f"upstream's init covers {MOST_MBARS}: two for each lane of a warp",
                correction="use fewer stages",
            )

    @classmethod
    def from_config(cls, config: FA4Config) -> "FA4MBarLayout":
        """The barriers of a configuration."""
        return cls(**{each.name: getattr(config, each.name) for each in fields(cls)})

    def groups(self) -> tuple[tuple[str, int], ...]:
        """Name and number of barriers of each group, as they lie one after the other."""
        pv, pairs = self.num_pv_stages, self.num_qk_stages * self.num_kv_stages
        k, v = ("KV", 0) if self.use_fused_kv else ("K", self.num_kv_stages)
        return (
            ("S0_cons", pv), ("S1_cons", pv), ("C0_prod", 1), ("C0_cons", 1), ("C1_prod", 1), ("C1_cons", 1),
            ("S0_prod", 1), ("S1_prod", 1),
            ("Q1Sync", self.num_qk_stages if self.num_qo == 2 else 0),
            (f"{k}_prod", pairs), (f"{k}_cons", pairs), ("V_prod", v), ("V_cons", v), ("O_prod", 2),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many mbarriers there are in all."""
        return sum(count for _, count in self.groups())

    def offset(self, group: str) -> int:
        """Index of the first barrier of a group, by its name in :meth:`groups`; where an empty one would begin."""
        first = 0
        for name, count in self.groups():
            if name == group:
                return first
            first += count
        raise ParameterError(f"FA4MiscMBars has no group {group}", correction="see FA4MBarLayout.groups()")

    def count(self, index: int) -> int:
        """Arrivals that complete a phase of the barrier at ``index``.

        Slot 0 of each S_cons takes softmax ("the P slice is written") and correction ("O is rescaled"); S_cons doubles
        in a pair of CTAs, whose threads all arrive at the leader.
        """
        pair = 2 if self.pair_cta else 1
        if index in (self.offset("S0_cons"), self.offset("S1_cons")):
            return 2 * WARP_GROUP * pair
        if index < self.offset("C0_prod"):
            return WARP_GROUP * pair
        return WARP_GROUP if index < self.offset("S0_prod") else 1


class FA4MiscMBars:
    """The barriers of one CTA and the pipelines over them. It is a pointer and no state: make it anywhere, share it.

    The pipelines that its methods return belong to the role that asks for them. O has no consumer barriers of its own:
    slot 0 of S_cons says both that P is written and that O is free.
    """

    def __init__(self, mbar_base: MBarType, layout: FA4MBarLayout) -> None:
        self.layout = layout
        self._mbars = mbars_at(mbar_base, layout.size, "FA4MiscMBars")
        self.mbar_base = self._mbars[0]
        first = 0
        for name, count in layout.groups():
            name_mbars(self._mbars[first : first + count], name)
            first += count

    def init(self) -> None:
        """Initialise every barrier with its count. One thread; upstream spreads it over the lanes of warp 0."""
        for index, mbar in enumerate(self._mbars):
            mbar.init(self.layout.count(index))

    # S: MMA → softmax, and back with P

    def producer_s0(self) -> RolePipeline:
        """The MMA's side of S of warp group 0."""
        return self._s(0, is_producer=True)

    def producer_s1(self) -> RolePipeline:
        """The MMA's side of S of warp group 1."""
        return self._s(1, is_producer=True)

    def consumer_s(self, wg_idx: int) -> RolePipeline:
        """The softmax's side of S: ``release_no_step(q)`` for each slice of P, ``release`` for the last."""
        return self._s(_group(wg_idx), is_producer=False)

    # C: softmax → correction, and back

    def consumer_c0(self) -> RolePipeline:
        """The correction's side of C of warp group 0."""
        return self._c(0, is_producer=False)

    def consumer_c1(self) -> RolePipeline:
        """The correction's side of C of warp group 1."""
        return self._c(1, is_producer=False)

    def producer_c(self, wg_idx: int) -> RolePipeline:
        """The softmax's side of C."""
        return self._c(_group(wg_idx), is_producer=True)

    # O: MMA → correction; what frees it is S_cons

    def consumer_o(self) -> RolePipeline:
        """The correction's side of O, both groups in turn: its ``release`` arrives on slot 0 of S0_cons, S1_cons, …"""
        return RolePipeline(
            self._barrier_at("O_prod"),
            self.mbar_base,
            2,
            is_producer=False,
            consumer_sub_stages=self.layout.num_pv_stages,
        )

    def producer_o0(self) -> RolePipeline:
        """The MMA's side of O of warp group 0."""
        return RolePipeline(self._barrier_at("O_prod"), self.combined_p_o_consumer(0), 1)

    def producer_o1(self) -> RolePipeline:
        """The MMA's side of O of warp group 1."""
        return RolePipeline(self._barrier_at("O_prod", 1), self.combined_p_o_consumer(1), 1)

    def combined_p_o_consumer(self, wg_idx: int) -> SharedMemBarrier:
        """Slot 0 of S_cons: the softmax arrives for P, the correction for O."""
        return self._barrier_at("S0_cons", self.layout.num_pv_stages * _group(wg_idx))

    # single barriers

    def q1_wait_mbar(self) -> SharedMemBarrier:
        """The first barrier of the second Q tile, which a kernel of one Q tile has not."""
        if self.layout.num_qo != 2:
            raise author_error(
                "these FA4MiscMBars have no Q1Sync barriers",
                cause="if they are omitted, their address is that of the group after them",
                correction="ask for a layout with num_qo 2",
            )
        return self._barrier_at("Q1Sync")

    def get_k_mbars(self) -> SharedMemBarrier:
        """The first barrier of the ring of K, or of the fused ring."""
        return self._barrier_at("KV_prod" if self.layout.use_fused_kv else "K_prod")

    def get_v_mbars(self) -> SharedMemBarrier:
        """The first barrier of the ring of V; of the fused ring that of K."""
        return self.get_k_mbars() if self.layout.use_fused_kv else self._barrier_at("V_prod")

    def _s(self, wg: int, *, is_producer: bool) -> RolePipeline:
        pv = self.layout.num_pv_stages
        producer, consumer = self._barrier_at("S0_prod", wg), self._barrier_at("S0_cons", pv * wg)
        return RolePipeline(producer, consumer, 1, is_producer=is_producer, consumer_sub_stages=pv)

    def _c(self, wg: int, *, is_producer: bool) -> RolePipeline:
        return RolePipeline(
            self._barrier_at("C0_prod", 2 * wg), self._barrier_at("C0_cons", 2 * wg), 1, is_producer=is_producer
        )

    def _barrier_at(self, group: str, index: int = 0) -> SharedMemBarrier:
        return self._mbars[self.layout.offset(group) + index]


def _group(wg_idx: int) -> int:
    return require_within("softmax warp group", wg_idx, 2)
