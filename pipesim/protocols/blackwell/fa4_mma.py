"""The MMA warp of flash attention 4: scores and values of two softmax groups, one after the other on one engine.

Upstream: ``nn/attention/gpu/nvidia/sm100/mma_warp.mojo``. With two Q tiles a step is one block of keys, whose K and V
serve both groups; with one Q tile it is two blocks, an even one for group 0 and an odd one for group 1.
"""

from __future__ import annotations

from pipesim.lang.intrinsics import elect, elect_mma_arrive, mma_arrive_multicast
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.common.register_value import mbars_at
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MiscMBars
from pipesim.protocols.blackwell.fa4_kv import KVConsumer
from pipesim.protocols.blackwell.fa4_tiles import FA4Tiles
from pipesim.protocols.blackwell.sm100 import BF16, EPILOGUE_WARPS, ROWS, mma_cycles


class MmaWarp:
    """What the MMA warp holds in registers. In a pair of CTAs only the leader's multiplies, for both."""

    def __init__(self, w: Warp, mbars: FA4MiscMBars, tiles: FA4Tiles) -> None:
        self._w = w
        self._mbars = mbars
        self._tiles = tiles
        self._config = tiles.config
        self._kv = KVConsumer(mbars, tiles.kv)
        self._s = mbars.producer_s0(), mbars.producer_s1()
        self._o = mbars.producer_o0(), mbars.producer_o1()
        self._ctas = range(tiles.config.cta_group())

    def multiply(self, steps: int, of_group_1: int) -> None:
        """All steps; group 1 has part in the first ``of_group_1`` of them: all but perhaps the last.

        The product with V of group 1 comes a step late, after the next scores of group 0: so the tensor cores have
        work while each softmax has its turn. V is held as long.
        """
        two = self._config.num_qo == 2
        held = -1
        for step in self._w.loop(steps, "kv_blocks"):
            self._scores(0, step, wait=True, release=not two)
            if step:
                self._values(1, step - 1, held)
                self._commit(self._kv.v_mbar(held))
            if step < of_group_1:
                self._scores(1, step, wait=not two, release=True)
            held = self._kv.next_v()
            self._values(0, step, held)
            if not two:
                self._commit(self._kv.v_mbar(held))
                held = self._kv.next_v() if step < of_group_1 else -1
        if held >= 0:
            self._values(1, steps - 1, held)
            self._commit(self._kv.v_mbar(held))

    def _scores(self, wg: int, step: int, *, wait: bool, release: bool) -> None:
        """S = Q K, slice by slice of the depth."""
        config, kv, tiles = self._config, self._kv, self._tiles
        block = step if config.num_qo == 2 else 2 * step + wg
        qo = wg % config.num_qo
        for j in range(config.num_qk_stages):
            if wait:
                kv.k.consumer_wait(j)
            if qo and not step:
                mbars_at(self._mbars.q1_wait_mbar(), config.num_qk_stages, "Q1Sync")[j].wait(0)
            operands = [(tiles.slice_of_q(qo, j), qo), (kv.slice_of_k(j), tiles.item_of_k(block))]
            self._mma(operands, (tiles.s[wg], tiles.item_of_s(step)), config.BN, config.BK0)
            if release:
                self._commit(kv.k.consumer_mbar(j))
        if release:
            kv.k.state.step()
        self._commit(self._s[wg].producer_mbar())

    def _values(self, wg: int, step: int, slot: int) -> None:
        """O += P V, slice by slice of P as the softmax writes it; the first slice also waits for O's correction."""
        config, tiles = self._config, self._tiles
        block = step if config.num_qo == 2 else 2 * step + wg
        keys = config.BN // config.num_pv_stages
        size = self._kv.v(slot).nbytes // config.num_pv_stages
        for j in range(config.num_pv_stages):
            self._s[wg].consumer_mbar(j).wait(step & 1)
            operands = [(tiles.p(wg, warp, j), tiles.item_of_p(step)) for warp in range(EPILOGUE_WARPS)]
            operands.append((self._kv.v(slot).part(j * size, size), tiles.item_of_v(block)))
            if step and not j:  # the other slices add to what this one writes, in the engine's order
                operands.append((tiles.o[wg], tiles.item_of_o(step - 1, corrected=True)))
            self._mma(operands, (tiles.o[wg], tiles.item_of_o(step)), config.padded_depth, keys)
        self._commit(self._o[wg].producer_mbar())

    def _mma(self, operands: list[tuple[Slot, int]], result: tuple[Slot, int], n: int, k: int) -> None:
        reads = [(slot.mapa(cta), item) for cta in self._ctas for slot, item in operands]
        writes = [(result[0].mapa(cta), result[1]) for cta in self._ctas]
        cycles = mma_cycles(ROWS, n, k) * self._config.dtype.nbytes // BF16
        with self._w.elect_one():
            self._w.mma(Engine.TCGEN05, reads=reads, writes=writes, cycles=cycles)

    def _commit(self, mbar: SharedMemBarrier) -> None:
        """One arrival when the MMAs so far are finished; in a pair, at both CTAs."""
        if self._config.pair_cta:
            with self._w.elect_one():
                mma_arrive_multicast(mbar, 0b11)
        else:
            elect_mma_arrive(mbar, elect())
