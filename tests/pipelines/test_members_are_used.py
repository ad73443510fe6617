"""Every member of the five structs of Modular's kernels is named by a protocol, but for a few with a reason."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pipesim.protocols
from pipesim import pipelines
from pipesim.pipelines.common.register_value import MODULAR_PIPELINES
from pipesim.targets import find
from tests.pipelines.test_api_surface import MEMBERS

#: Members of the five that no protocol names, each with its reason.
NOT_NAMED = {
    "InputTilePipeline.Pipeline": "a type: that of the field `pipeline`",
    "TMAProducerPipeline.KPairType": "a type: what get_k returns",
    "TMAProducerPipeline.PairType": "a type: what get_tile returns",
    "TMAProducerPipeline.SMemType": "a type: that of the field `smem`",
    "TMAProducerPipeline.smem": "the memory that the role itself gave",
    "TMAProducerPipeline.get_smem": "the smem of get_tile, which is named",
    **dict.fromkeys(
        [f"TMAProducerPipeline.{constant}" for constant in ("bytes", "elements", "elements_full", "tile_layout")],
        "a constant: the memory is laid out before there is a pipeline, by KVTile; `bytes` is tile_bytes",
    ),
    "InputProducer.pipeline_ptr": "the way back to the pipeline, which a role that made the view has anyway",
    "InputTilePipeline.acquire_producer": "acquire_stage of the view, which is named",
    "InputTilePipeline.acquire_consumer": "the mirrored acquire_stage",
    "ProducerConsumerPipeline.full": "producer_mbar, and stage.mbar(), which are named",
    "ProducerConsumerPipeline.try_wait_consumer": "the input's try_acquire_producer, which is named",
    "ProducerConsumerPipeline.wait_consumer_if_needed": "the same of the input, which is named",
    **dict.fromkeys(
        [f"EpiLoadPipeline.{context}" for context in ("produce", "consume", "consume_explicit")],
        "the ring's own context, which is named: the kernels with such loads use handles, or wait and step by hand",
    ),
}
PROTOCOLS = Path(pipesim.protocols.__file__).parent
#: Sizes that reach every member together.
SIZES: list[tuple[str, dict[str, int]]] = [
    ("producer_consumer", {}), ("cluster_multicast", {}), ("persistent_scheduler", {}), ("epilogue_residual", {}),
    ("gemm_sm90", {}), ("gemm_sm90", {"lookahead": 1, "drain": 1}), ("attention_sm90", {"qk_stages": 2}),
    ("attention_sm90", {"fused": 1, "stages": 4}), ("attention_sm90_fused", {}), ("conv_epilogue", {}),
    ("gemm_sm100", {"lookahead": 1, "epilogue_load": 1}), ("gemm_sm100_blockwise", {"lookahead": 1}),
    ("gemm_sm100_grouped_1d1d", {}), ("attention_sm100", {"fused": 0, "qk_stages": 2, "kv_stages": 2}),
]  # fmt: skip


def named_on_a_class() -> Iterator[str]:
    """``Struct.member`` as it stands in the protocols: static methods and types."""
    for path in PROTOCOLS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"


def named_on_an_object(monkeypatch: pytest.MonkeyPatch, sizes: list[tuple[str, dict[str, int]]]) -> set[str]:
    """``Struct.member`` of what the roles of these protocols look up in an object of one of the five structs."""
    found: set[str] = set()
    for struct in MODULAR_PIPELINES:

        def noting(self: Any, name: str, struct: str = struct) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(str(PROTOCOLS)):  # who asks
                found.add(f"{struct}.{name}")
            return object.__getattribute__(self, name)

        monkeypatch.setattr(getattr(pipelines, struct), "__getattribute__", noting)
    for member in ("__enter__", "__exit__"):
        entered = getattr(pipelines.InputProducer, member)

        def noting_entry(self: Any, *args: Any, member: str = member, entered: Any = entered) -> Any:
            found.add(f"InputProducer.{member}")
            return entered(self, *args)

        monkeypatch.setattr(pipelines.InputProducer, member, noting_entry)
    for name, params in sizes:
        find(name).build(params)
    return found


@pytest.mark.slow
def test_every_member_of_the_five_is_named_by_a_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    named = named_on_an_object(monkeypatch, SIZES) | set(named_on_a_class())
    members = {f"{struct}.{name}" for struct, names in MEMBERS.items() for name in names.split()}
    assert members - named == set(NOT_NAMED)


def test_recorded_twins_name_the_handles_the_tries_and_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = ("gemm_sm90", "cluster_multicast", "epilogue_residual")
    named = named_on_an_object(monkeypatch, [(name, params) for name, params in SIZES if name in recorded])
    assert named >= {
        "InputTilePipeline.drain_producer",
        "InputTilePipeline.try_acquire_producer",
        "InputTilePipeline.wait_consumer_if_needed",
        "InputProducer.acquire_stage",
        "ProducerConsumerPipeline.try_wait_producer",
        "ProducerConsumerPipeline.wait_producer_if_needed",
        "ProducerConsumerPipeline.acquire_producer",
        "ProducerConsumerPipeline.acquire_consumer",
        "EpiLoadPipeline.acquire_producer",
        "EpiLoadPipeline.acquire_consumer",
    }
