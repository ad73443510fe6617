"""The built-in protocols: an explicit list of the functions that make them, by name."""

from __future__ import annotations

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100
from pipesim.protocols.blackwell.block_scaled import gemm_sm100_block_scaled
from pipesim.protocols.blackwell.conv_epilogue import conv_epilogue
from pipesim.protocols.blackwell.cutlass_sm100 import cutlass_sm100
from pipesim.protocols.blackwell.gemm_sm100 import gemm_sm100
from pipesim.protocols.blackwell.gemm_sm100_blockwise import gemm_sm100_blockwise
from pipesim.protocols.blackwell.grouped import gemm_sm100_grouped
from pipesim.protocols.blackwell.grouped_1d1d import gemm_sm100_grouped_1d1d
from pipesim.protocols.hopper.attention_sm90 import attention_sm90
from pipesim.protocols.hopper.attention_sm90_fused import attention_sm90_fused
from pipesim.protocols.hopper.cluster_multicast import cluster_multicast
from pipesim.protocols.hopper.cutlass_sm90_cooperative import cutlass_sm90_cooperative
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong
from pipesim.protocols.hopper.epilogue_residual import epilogue_residual
from pipesim.protocols.hopper.gemm_sm90 import gemm_sm90
from pipesim.protocols.hopper.persistent_scheduler import persistent_scheduler
from pipesim.protocols.hopper.producer_consumer import producer_consumer

ProtocolFunction = Callable[..., Protocol]

BUILT_IN: dict[str, ProtocolFunction] = {
    "attention_sm100": attention_sm100,
    "attention_sm90": attention_sm90,
    "attention_sm90_fused": attention_sm90_fused,
    "cluster_multicast": cluster_multicast,
    "conv_epilogue": conv_epilogue,
    "cutlass_sm100": cutlass_sm100,
    "cutlass_sm90_cooperative": cutlass_sm90_cooperative,
    "cutlass_sm90_pingpong": cutlass_sm90_pingpong,
    "epilogue_residual": epilogue_residual,
    "gemm_sm100": gemm_sm100,
    "gemm_sm100_block_scaled": gemm_sm100_block_scaled,
    "gemm_sm100_blockwise": gemm_sm100_blockwise,
    "gemm_sm100_grouped": gemm_sm100_grouped,
    "gemm_sm100_grouped_1d1d": gemm_sm100_grouped_1d1d,
    "gemm_sm90": gemm_sm90,
    "persistent_scheduler": persistent_scheduler,
    "producer_consumer": producer_consumer,
}
