"""Which kernels the table of the corpus is about: fixed here, whatever could be built."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hwkernels.twins import find_twin
from pipesim.targets import find
from tests.support.twin_launches import launch_of, ptx_of
from tools.corpus import modular
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.environment import ROOT

#: Twins of Hopper: the parameters that differ from the defaults.
HOPPER: Sequence[tuple[str, str, Mapping[str, int]]] = (
    ("producer_consumer", "producer_consumer", {}),
    ("producer_consumer_32_lanes", "producer_consumer", {"arrive_lanes": 32}),
    ("attention_sm90", "attention_sm90", {}),
    ("attention_sm90_fused", "attention_sm90_fused", {}),
    ("cluster_multicast", "cluster_multicast", {}),
    ("cluster_multicast_4", "cluster_multicast", {"cluster": 4}),
    ("epilogue_residual", "epilogue_residual", {}),
    ("gemm_sm90", "gemm_sm90", {}),
    ("gemm_sm90_lookahead", "gemm_sm90", {"lookahead": 1, "drain": 1}),
    ("persistent_scheduler", "persistent_scheduler", {}),
)


def twins(folder: Path) -> Iterator[str]:
    """All of them, with their sources beside them, which say the names of barriers and tiles."""
    for each in hopper():
        each.save(folder)
        yield each.stem
    for source in (ROOT / "hwkernels").rglob("*"):
        if source.suffix in (".cu", ".cuh", ".h"):
            (folder / source.name).write_bytes(source.read_bytes())


def hopper() -> Iterator[CorpusKernel]:
    """Each with the PTX that NVRTC makes of it."""
    for name, kernel, changes in HOPPER:
        twin, params = find_twin(kernel), {**find(kernel).defaults, **changes}
        yield CorpusKernel("sm_90a", name, ptx_of(twin, params), launch_of(twin, params))


_BOTH = ("sm_90a", "sm_100a")
_HOPPER, _BLACKWELL = ("sm_90a",), ("sm_100a",)
_ATTENTION = ("d128", "d128_causal", "d64", "d64_window", "d128_grouped", "d64_decode")

#: By family, the kernels' names and the architectures that they are compiled for.
LISTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "triton": {
        **dict.fromkeys(("gemm_tma_w4_s3", "gemm_tma_w8_s4", "gemm_tma_fp8", "gemm_tma_2ctas"), _BOTH),
        **dict.fromkeys(("gemm_persistent", "gemm_persistent_flat", "gemm_device_maps", "gemm_pointers"), _BOTH),
        **dict.fromkeys(("grouped_gemm", "split_k", "softmax", "attention_d64", "attention_d128_causal"), _BOTH),
        **dict.fromkeys(("gemm_tma_ws", "gemm_persistent_flat_ws"), _BLACKWELL),
        **dict.fromkeys(("attention_d128_ws", "attention_d64_causal_ws"), _BLACKWELL),
    },
    "gluon": {
        **dict.fromkeys(("scale_pipelined_s2", "scale_pipelined_s3", "scale_ws_s2", "scale_ws_s3"), _BOTH),
        "scale_watched": _BOTH,
        "gemm_wgmma_ws": _HOPPER,
        **dict.fromkeys(("gemm_tcgen05", "gemm_clc"), _BLACKWELL),
    },
    "cutlass": {
        **dict.fromkeys(("hopper_ws_gemm", "hopper_fp8", "hopper_grouped", "hopper_grouped_2"), _HOPPER),
        **dict.fromkeys(("hopper_sparse", "hopper_sparse_2", "hopper_fmha"), _HOPPER),
        **dict.fromkeys(("hopper_builder", "hopper_builder_2", "hopper_builder_3"), _HOPPER),
        **dict.fromkeys(("blackwell_fp16", "blackwell_streamk", "blackwell_blockwise"), _BLACKWELL),
        **dict.fromkeys(("blackwell_grouped", "blackwell_grouped_2", "blackwell_fmha"), _BLACKWELL),
    },
    "cute": {f"flash_fwd_{kind}": _BOTH for kind in _ATTENTION},
    "modular": {
        name: tuple(each.arch for each in modular.PROGRAMS if each.name == name)
        for name in dict.fromkeys(each.name for each in modular.PROGRAMS)
    },
    "tilelang": dict.fromkeys(("gemm_s3", "gemm_s2_wide", "attention_s2", "attention_s1"), _BOTH),
    "deep_gemm": dict.fromkeys(("fp8_gemm", "fp8_gemm_multicast", "fp8_gemm_grouped"), _HOPPER),
    "twins": {name: _HOPPER for name, *_ in HOPPER},
}


def kernels_listed(families: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Family, kernel and architecture of each, of these families or of all."""
    for family, kernels in LISTED.items():
        if not families or family in families:
            for kernel, archs in kernels.items():
                for arch in archs:
                    yield family, kernel, arch
