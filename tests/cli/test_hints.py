"""Names of CUDA, CUTLASS, Mojo and Triton in a role: the error says what the description language has for them."""

import inspect
import re
import sys
from pathlib import Path

import pytest

from pipesim.lang.author import _ANYWHERE, _BUILT_IN, meant_by
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines.modular.producer_consumer import ConsumerStage, ProducerConsumerPipeline
from tests.support.fixture_types import Call
from tests.support.lanes import slow_after

FILE = """\
from pipesim import Protocol
from pipesim.pipelines import ProducerConsumerPipeline

def ring(stages: int = 2):
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=1024)
    bars = p.mbarriers("bars", 2 * stages, count=1)
    {protocol}

    @p.role("mma")
    def mma(w):
        pipe = ProducerConsumerPipeline(bars, stages)
        with w.elect_one():
            {role}

    return p
"""


def correction(call: Call, role: str = "pass", protocol: str = "pass") -> str:
    """What is tried for an expression in the role, or in the protocol's function."""
    Path("mine.py").write_text(FILE.format(role=role, protocol=protocol), encoding="utf-8")
    answer = call("check", "mine.py:ring")
    assert answer.code == 2
    lines = answer.error
    assert "Error: " in lines[0]
    hole = "{role}" if protocol == "pass" else "{protocol}"
    place = next(number for number, line in enumerate(FILE.splitlines(), 1) if hole in line)
    assert lines[1] == f"  at: {Path('mine.py').resolve()}:{place}"
    (said,) = (line.removeprefix("  try: ") for line in lines if line.startswith("  try: "))
    return str(said)


@pytest.mark.sampled(5, 10)
@pytest.mark.parametrize(
    ("expression", "said"),
    slow_after(
        8,
        [
            ("w.lane", "with w.elect_one():"),
            ("w.lane_id", "with w.lanes(n):"),
            ("threadIdx.x", "with w.elect_one():"),
            ("w.warp_id", "w.index is the warp's number within its role"),
            ("w.num_warps", '@p.role("mma", warps=4)'),
            ("w.blockIdx", "w.cta is the CTA's rank in its cluster"),
            ("w.gmem", "w.tma_load(tile[s], mbar, item=i)"),
            ("w.shared", "tile = p.smem(name, slots=4, nbytes=16384)"),
            ("w.sync()", "w.sync_threads() is __syncthreads()"),
            ("__syncthreads()", "w.sync_threads() is __syncthreads()"),
            ("w.syncwarp()", "leave it out"),
            ("w.named_barrier(1, 64)", "w.bar_sync(number, threads)"),
            ("w.arrive(bars[0])", "bars[0].arrive()"),
            ("w.wait(bars[0], 0)", "bars[0].wait(phase)"),
            ("w.expect_tx(bars[0], 16)", "stage.mbar().expect_bytes(nbytes)"),
            ("w.tma(tile[0])", "w.tma_load(tile[stage.index()], stage.mbar(), item=i)"),
            ("w.cp_async(tile[0])", "w.async_write(Engine.CP_ASYNC, tile[s], item=i)"),
            ("w.tma_store(tile[0])", "w.async_read(Engine.BULK, tile[s], item=i)"),
            ("w.wgmma()", "w.mma(Engine.WGMMA"),
            ("w.fence_proxy_async()", "w.fence(Fence.PROXY_ASYNC)"),
            ("pipe.wait()", "with pipe.consume() as stage:"),
            ("pipe.producer_acquire()", "with pipe.produce() as stage:"),
            ("bars.wait(0)", "bars[0].wait(phase)"),
            ("bars[0].try_wait_parity(0)", "bars[0].wait(phase)"),
        ],
    ),
)
def test_in_a_role(call: Call, expression: str, said: str) -> None:
    assert said in correction(call, role=expression)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("p.shared('a', 4)", "p.smem(name, slots=4, nbytes=16384)"),
        ("p.barrier('a')", "p.mbarriers(name, 4)"),
        ("p.warp('load')", '@p.role("mma", warps=4)'),
        ("p.num_warps", "w.index is 0 to 3 there"),
    ],
)
def test_in_the_function_of_the_protocol(call: Call, expression: str, said: str) -> None:
    assert said in correction(call, protocol=expression)


class TestTable:
    """Each sentence names what there is; each name is one that there is not."""

    SENTENCES = sorted({meant for meant, _ in _ANYWHERE})  # read only

    @pytest.mark.sampled(5, 10)
    @pytest.mark.parametrize("sentence", SENTENCES)
    def test_what_is_proposed_is_there(self, sentence: str) -> None:
        for pattern, home in (
            (r"\bw\.(\w+)", Warp),
            (r"\bp\.(\w+)", Protocol),
            (r"bars\[0\]\.(\w+)|mbar\(\)\.(\w+)", SharedMemBarrier),
            (r"\bpipe\.(\w+)", ProducerConsumerPipeline),
            (r"\bstage\.(\w+)", ConsumerStage),
            (r"\bEngine\.(\w+)", Engine),
            (r"\bFence\.([A-Z_0-9]+)", Fence),
        ):
            source = inspect.getsource(home)
            for found in re.finditer(pattern, sentence):
                name = next(filter(None, found.groups()))
                assert hasattr(home, name) or f"self.{name} = " in source, (name, home)

    def test_what_has_a_name_of_its_own_is_known(self) -> None:
        assert all(meant_by(name) for name in _BUILT_IN)


@pytest.mark.parametrize(
    ("words", "fact", "correction"),
    [
        ("prog.so", "there is no file prog.so", "check the path"),
        ("kernel.py:sofmax", "kernel.py has no function 'sofmax'", "did you mean softmax?"),
        ("kernel.py:f", "kernel.py has no function 'f'", "it has softmax"),
        (
            "kernel.py --baseline known.json",
            "there is no baseline known.json",
            "--update-baseline writes what is found",
        ),
        (
            "kernel.cu",
            "there is no nvcc, and no NVRTC",
            "put nvcc in PATH, or pip install 'pipesim[gpu]', for which no",
        ),
    ],
)
def test_what_a_newcomer_gets_wrong_first(
    words: str, fact: str, correction: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("kernel.py").write_text("class JITFunction: pass\n\nsoftmax = JITFunction()\n")
    Path("kernel.cu").write_text("__global__ void k() { __syncthreads(); }\n")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    said = call("check", *words.split()).err
    assert fact in said
    assert f"try: {correction}" in said
