"""Hopper's attention with K and V in one ring, as flash attention 4 has them where the number of slots is odd.

The twin is ``hwkernels/twins/hopper/attention_sm90_fused.cu``. Upstream has this ring in ``nn/attention/gpu/nvidia/``,
``sm100/load_warp.mojo`` and ``sm100/mma_warp.mojo``. One ``TMAProducerPipeline`` loads K0, V0, K1, V1, …; it begins at
phase 1, so that no role primes the ring. A consumer also has one place in the ring: it takes V of block n - 1 before K
of block n, and gives K back first; the slot of V is given back later, by its number. Where ``tcgen05.commit`` frees a
slot there, here the warps wait for their products, and one lane of each arrives.
"""

from dataclasses import dataclass

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import TMAProducerPipeline
from pipesim.pipelines.modular.attention.fa4 import BF16, FA4Config
from pipesim.pipelines.modular.attention.staged import KVPipelineGeneric
from pipesim.protocols.hopper.staged_attention import StagedAttention, Turns, load, next_slot
from pipesim.protocols.limits import ranges, require


@ranges(stages=(), depth=(64, 256, 64), block_n=(16, 256, 16), num_consumer=(1, 2))
def attention_sm90_fused(
    kv_blocks: int = 8,
    stages: int = 5,
    depth: int = 128,
    block_n: int = 128,
    num_consumer: int = 2,
    pingpong: int = 1,
    softmax: int = 900,
) -> Protocol:
    """Hopper's attention with one ring: it carries K and V in turn, and V is held across the K that follows.

    ``kv_blocks`` blocks of ``block_n`` keys and values of ``depth`` elements; ``stages``: slots of the ring, 2 or more;
    ``softmax``: cycles per block and warp.
    """
    if stages == 1:
        raise ParameterError(
            "stages = 1",
            cause="a consumer holds V of a block while it waits for the next K: with one slot, it waits for itself",
            correction="use 2 to 32",
        )
    require("stages", stages, 2, 32)
    p = Protocol("attention_sm90_fused")
    config = FA4Config(BF16, depth, block_n, stages, use_fused_kv=True)
    turns = Turns.for_consumers(num_consumer, pingpong)
    FusedAttention.for_protocol(p, config, blocks=kv_blocks, turns=turns, softmax=softmax).roles(p)
    return p


@dataclass(frozen=True)
class FusedAttention(StagedAttention):
    """The kernel with one ring: K and V in turn."""

    def load_blocks(self, w: Warp) -> None:
        """K0, V0, K1, V1, …"""
        kv = TMAProducerPipeline(self.rings()[0], self.k, dtype=self.config.dtype, config=self.config)
        for n in w.loop(self.blocks, "kv_blocks"):
            kv.acquire_k(qk_stage=0)
            keys = kv.get_k(1, qk_stage=0)
            w.tma_load(keys.smem, keys.mbar, 2 * n)
            load(w)
            kv.commit_step()
            kv.acquire_v()
            values = kv.get_v(1)
            w.tma_load(values.smem, values.mbar, 2 * n + 1)
            load(w)
            kv.commit_step()

    def issue(self, w: Warp, k: KVPipelineGeneric, v: KVPipelineGeneric, n: int) -> tuple[int, int]:
        """V of the block before is taken before K of block n, and multiplied after it."""
        values = next_slot(w, v) if n else -1
        keys = self.multiply_keys(w, k, n)
        if n:
            self.multiply_values(w, values, n - 1)
        return keys, values
