"""The built-in protocols: an explicit list of the functions that make them, by name."""

from collections.abc import Callable

from pipesim.lang.protocol import Protocol

ProtocolFunction = Callable[..., Protocol]

#: The module that has the function of each name: imported when the protocol is asked for.
BUILT_IN: dict[str, str] = {
    "attention_sm100": "pipesim.protocols.blackwell.attention_sm100",
    "attention_sm90": "pipesim.protocols.hopper.attention_sm90",
    "attention_sm90_fused": "pipesim.protocols.hopper.attention_sm90_fused",
    "cluster_multicast": "pipesim.protocols.hopper.cluster_multicast",
    "conv_epilogue": "pipesim.protocols.blackwell.conv_epilogue",
    "cutlass_sm100": "pipesim.protocols.blackwell.cutlass_sm100",
    "cutlass_sm90_cooperative": "pipesim.protocols.hopper.cutlass_sm90_cooperative",
    "cutlass_sm90_pingpong": "pipesim.protocols.hopper.cutlass_sm90_pingpong",
    "epilogue_residual": "pipesim.protocols.hopper.epilogue_residual",
    "gemm_sm100": "pipesim.protocols.blackwell.gemm_sm100",
    "gemm_sm100_block_scaled": "pipesim.protocols.blackwell.block_scaled",
    "gemm_sm100_blockwise": "pipesim.protocols.blackwell.gemm_sm100_blockwise",
    "gemm_sm100_grouped": "pipesim.protocols.blackwell.grouped",
    "gemm_sm100_grouped_1d1d": "pipesim.protocols.blackwell.grouped_1d1d",
    "gemm_sm90": "pipesim.protocols.hopper.gemm_sm90",
    "persistent_scheduler": "pipesim.protocols.hopper.persistent_scheduler",
    "producer_consumer": "pipesim.protocols.hopper.producer_consumer",
}
