"""Flash attention 4 on Blackwell: two softmax groups, a correction group, an MMA warp and a load warp.

Upstream: ``nn/attention/gpu/nvidia/sm100/`` (``kernel.mojo`` and a file for each role). The MMA warp writes scores S to
tensor memory, a softmax group makes P of them in the same place, the MMA warp adds P V to the output O there, which the
correction group rescales between two blocks; each of these hand-overs has a barrier of ``FA4MiscMBars``. A CTA runs one
tile of the output and then ends, so nothing is drained; a pair of CTAs ends with a cluster barrier.

Left out, as both are before and after the pipelines: the allocation of tensor memory in the prologue, and masks (all
blocks count). P is in slices of equal size.
"""

from dataclasses import dataclass

from pipesim.lang.intrinsics import umma_arrive_leader_cta
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp
from pipesim.pipelines.common.register_value import mbars_at
from pipesim.pipelines.modular.attention.fa4 import BF16, FP8, WARP_GROUP, FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.modular.attention.staged import RolePipeline
from pipesim.protocols.blackwell.fa4_tiles import LANES, FA4Tiles, KVProducer, MmaWarp
from pipesim.protocols.blackwell.sm100 import FP32, lanes, rows
from pipesim.protocols.limits import ranges, require
from pipesim.protocols.warp_group import GROUP, store

_SOFTMAX_REGISTERS, _CORRECTION_REGISTERS, _OTHER_REGISTERS, _IDLE_REGISTERS = 192, 88, 40, 24
_TMEM_READ, _EXCHANGE = 3, 4  #: named barriers of both softmax groups; 1 and 2 are one group's each


@ranges(depth=(16, 256, 16), block_n=(16, 256, 16), qk_stages=(1, 4), num_qo=(1, 2), element_bytes=(1, 2))
def attention_sm100(
    kv_blocks: int = 16,
    kv_stages: int = 5,
    depth: int = 128,
    block_n: int = 128,
    fused: int = 1,
    qk_stages: int = 1,
    pv_stages: int = 2,
    num_qo: int = 2,
    pair_cta: int = 0,
    element_bytes: int = 2,
    softmax: int = 400,
    correction: int = 200,
) -> Protocol:
    """Blackwell's attention: MMA warp, two softmax groups and a correction group meet in tensor memory.

    ``kv_blocks`` blocks of ``block_n`` keys and values of ``depth`` elements of ``element_bytes`` (2: bf16, 1: fp8).
    ``fused``: K and V in one ring of ``kv_stages`` tiles instead of a ring each. ``qk_stages``: slices in which K
    arrives, ``pv_stages``: slices in which P is written. ``num_qo`` 1: one Q tile, the groups share the blocks.
    ``softmax``, ``correction``: cycles per block and warp beside its loads.
    """
    require("kv_stages", kv_stages, 1 + (fused == 1), 32)  # a fused ring holds a V while it waits for the next K
    require("pv_stages", pv_stages, 1, 4, one_of=(1, 2, 4))
    config = FA4Config(
        FP8 if element_bytes == 1 else BF16,
        depth,
        block_n,
        kv_stages,
        qk_stages,
        pv_stages,
        use_fused_kv=bool(fused),
        pair_cta=bool(pair_cta),
        num_qo=num_qo,
    )

    p = Protocol("attention_sm100", cluster=config.cta_group())
    layout = FA4MBarLayout.from_config(config)
    attention = AttentionSm100(
        FA4Tiles.for_protocol(p, config), layout, p.mbarriers("fa4", layout.size), kv_blocks, softmax, correction
    )
    p.init(attention.init)
    p.role("softmax0", warps=GROUP)(attention.softmax0)
    p.role("softmax1", warps=GROUP)(attention.softmax1)
    p.role("correction", warps=GROUP)(attention.correction)
    p.role("mma")(attention.mma)
    p.role("load")(attention.load)
    p.role("idle", warps=2)(attention.idle)
    return p


@dataclass(frozen=True)
class AttentionSm100:
    """The kernel's memory and sizes, and its roles."""

    tiles: FA4Tiles
    layout: FA4MBarLayout
    storage: BarrierStorage
    blocks: int
    softmax_cycles: int
    correction_cycles: int

    def init(self) -> None:
        """Initialise every barrier."""
        self.mbars().init()

    def mbars(self) -> FA4MiscMBars:
        """The barriers, a pointer for any role."""
        return FA4MiscMBars(self.storage, self.layout)

    @property
    def config(self) -> FA4Config:
        """What upstream knows at compile time."""
        return self.tiles.config

    def steps(self, wg: int) -> int:
        """Blocks of a softmax group: all of them, or with one Q tile every other, group 0 first."""
        return self.blocks if self.config.num_qo == 2 else (self.blocks + 1 - wg) // 2

    # load

    def load(self, w: Warp) -> None:
        """The load warp: K0 with Q0, Q1, V0, then K and V of each block; with one Q tile K, K, V, V of two."""
        w.setmaxnreg(_OTHER_REGISTERS)
        if self.blocks:
            kv, tiles = KVProducer(self.mbars(), self.tiles.kv), self.tiles
            for step in w.loop(self.steps(0), "kv_blocks"):
                blocks = [step] if self.config.num_qo == 2 else range(2 * step, min(2 * step + 2, self.blocks))
                for block in blocks:
                    for j, k in enumerate(kv.k(acquire=block > 0)):
                        q = [] if block else [(tiles.slice_of_q(0, j), 0)]
                        self._copy(w, k.mbar, [*q, (k.smem, tiles.item_of_k(block))])
                if not step and self.config.num_qo == 2:
                    self._load_q1(w)
                for block in blocks:
                    for v in kv.v():
                        self._copy(w, v.mbar, [(v.smem, tiles.item_of_v(block))])
        self._leave(w)

    def _load_q1(self, w: Warp) -> None:
        for j, mbar in enumerate(mbars_at(self.mbars().q1_wait_mbar(), self.config.num_qk_stages, "Q1Sync")):
            self._copy(w, mbar, [(self.tiles.slice_of_q(1, j), 1)])

    def _copy(self, w: Warp, mbar: SharedMemBarrier, copies: list[tuple[Slot, int]]) -> None:
        """Each CTA of a pair loads its part; the leader's barrier counts, and the leader expects, the bytes of both."""
        with w.elect_one():
            if w.cta == 0:
                mbar.expect_bytes(sum(slot.nbytes for slot, _ in copies) * self.config.cta_group())
            for slot, item in copies:
                w.tma_load(slot, mbar.mapa(0), item)

    # MMA

    def mma(self, w: Warp) -> None:
        """The MMA warp; in a pair of CTAs the leader's, for both."""
        w.setmaxnreg(_OTHER_REGISTERS)
        if self.blocks and not w.cta:
            MmaWarp(w, self.mbars(), self.tiles).multiply(self.steps(0), self.steps(1))
        self._leave(w)

    # softmax

    def softmax0(self, w: Warp) -> None:
        """A warp of softmax group 0."""
        self._softmax(w, 0)

    def softmax1(self, w: Warp) -> None:
        """A warp of softmax group 1: the other Q tile, or the odd blocks of the only one."""
        self._softmax(w, 1)

    def _softmax(self, w: Warp, wg: int) -> None:
        w.setmaxnreg(_SOFTMAX_REGISTERS)
        s, c = self.mbars().consumer_s(wg), self.mbars().producer_c(wg)
        for step in w.loop(self.steps(wg), "kv_blocks"):
            s.wait()
            w.read(rows(self.tiles.s[wg], w.index), self.tiles.item_of_s(step))
            if step:
                w.write(rows(self.tiles.factors[wg], w.index), step)
                c.commit()
            self._write_p(w, wg, s, step)
            c.acquire()
        if self.steps(wg):
            self._finish(w, wg)
        if self.blocks:
            w.bar_sync(_TMEM_READ, 2 * WARP_GROUP)  # then tensor memory is given back
        self._leave(w)

    def _write_p(self, w: Warp, wg: int, s: RolePipeline, step: int) -> None:
        """P, slice by slice, over the scores that this warp has read."""
        last = self.config.num_pv_stages - 1
        for j in range(last + 1):
            w.work(self.softmax_cycles // (last + 1))
            w.write(self.tiles.p(wg, w.index, j), self.tiles.item_of_p(step))
            if self.config.pair_cta:
                umma_arrive_leader_cta(s.consumer_mbar(j))
            elif j < last:
                s.release_no_step(j)
            else:
                s.release(j)
        if self.config.pair_cta:
            s.step()

    def _finish(self, w: Warp, wg: int) -> None:
        """Wait for the last sum, scale it, and store it where Q was."""
        self._wait_for_o(wg)
        if self.config.num_qo == 1 and self.steps(1):
            self._combine(w, wg)
        else:
            w.read(rows(self.tiles.o[wg], w.index), self.tiles.item_of_o(self.steps(wg) - 1))
            out = self.tiles.q[wg % self.config.num_qo]
            store(w, rows(out, w.index), out, group=wg, item=2)

    def _combine(self, w: Warp, wg: int) -> None:
        """One Q tile: the groups exchange maximum and sum of each row, where S was, and share the columns."""
        peer, said = 1 - wg, LANES * 2 * FP32
        w.write(rows(self.tiles.s[wg], w.index).part(0, said), self.tiles.item_of_s(self.steps(wg)))
        w.bar_sync(_EXCHANGE, 2 * WARP_GROUP)
        w.read(rows(self.tiles.s[peer], w.index).part(0, said), self.tiles.item_of_s(self.steps(peer)))
        self._wait_for_o(peer)
        for group in (wg, peer):
            w.read(lanes(self.tiles.o[group], w.index, wg, 2), self.tiles.item_of_o(self.steps(group) - 1))
        half = self.tiles.q.nbytes // 2
        out = self.tiles.q[0].part(wg * half, half)
        store(w, rows(out, w.index), out, group=wg, item=2)

    def _wait_for_o(self, wg: int) -> None:
        """The last sum of a group: no role corrects it."""
        mbars = self.mbars()
        o = mbars.producer_o1() if wg else mbars.producer_o0()
        o.producer_mbar().wait(self.steps(wg) - 1 & 1)

    # correction

    def correction(self, w: Warp) -> None:
        """A warp of the correction group: rescales O of both groups between two blocks, in turn."""
        w.setmaxnreg(_CORRECTION_REGISTERS)
        if self.blocks:
            mbars = self.mbars()
            for wg in (0, 1):  # there is no O to rescale before the first product
                self._arrive(mbars.combined_p_o_consumer(wg))
            o, c = mbars.consumer_o(), (mbars.consumer_c0(), mbars.consumer_c1())
            for step in w.loop(self.steps(0) - 1, "kv_blocks"):
                for wg in (0, 1):
                    if step < self.steps(wg) - 1:
                        self._correct(w, wg, step, o, c[wg])
        self._leave(w)

    def _correct(self, w: Warp, wg: int, step: int, o: RolePipeline, c: RolePipeline) -> None:
        mine = rows(self.tiles.o[wg], w.index)
        c.wait()
        w.read(rows(self.tiles.factors[wg], w.index), step + 1)
        o.wait()
        w.read(mine, self.tiles.item_of_o(step))
        w.work(self.correction_cycles)
        w.write(mine, self.tiles.item_of_o(step, corrected=True))
        self._arrive(o.consumer_mbar())
        o.step()
        c.release()

    # all

    def idle(self, w: Warp) -> None:
        """A warp that gives its registers away."""
        w.setmaxnreg(_IDLE_REGISTERS)
        self._leave(w)

    def _arrive(self, mbar: SharedMemBarrier) -> None:
        """Every lane arrives, in a pair at the leader's barrier."""
        if self.config.pair_cta:
            umma_arrive_leader_cta(mbar)
        else:
            mbar.arrive()

    def _leave(self, w: Warp) -> None:
        """A pair of CTAs ends together: each reads and signals in the other's memory."""
        if self.config.pair_cta:
            w.cluster_sync()
