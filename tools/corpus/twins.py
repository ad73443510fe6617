"""PTX and launch files of pipesim's own kernels, at a few sizes each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hwkernels.twins import find_twin
from pipesim.targets import find
from tests.support.twin_launches import launch_of, ptx_of
from tools.corpus.corpus_kernel import CorpusKernel

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
    """All of them."""
    for each in hopper():
        each.save(folder)
        yield each.stem


def hopper() -> Iterator[CorpusKernel]:
    """Each with the PTX that NVRTC makes of it."""
    for name, kernel, changes in HOPPER:
        twin, params = find_twin(kernel), {**find(kernel).defaults, **changes}
        yield CorpusKernel("sm_90a", name, ptx_of(twin, params), launch_of(twin, params))
