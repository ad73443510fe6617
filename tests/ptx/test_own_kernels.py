"""Kernels of ours, compiled by Triton and Gluon (``tools/corpus/kernels``; ``tools/ptx_corpus.py --tests``)."""

from collections import Counter
from pathlib import Path

import pytest

from pipesim.model.coverage import LENIENT
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.prove.check import Check, check
from pipesim.prove.refutation import Why
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.slice import Need, Slice, slice_of
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.values import Launch, TensorMap
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.read import read_module
from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "ptx" / "kernels"
KERNELS = sorted(path.stem for path in FOLDER.glob("*.ptx"))


def read(name: str) -> tuple[Function, Launch]:
    module = read_module((FOLDER / f"{name}.ptx").read_text(encoding="utf-8"), name)
    launch = read_launch((FOLDER / f"{name}.json").read_text(encoding="utf-8"), name)
    function = module.function(launch.entry)
    assert function is not None
    assert module.unread == ()
    return inline_calls(module, function), launch


def kept(function: Function, made: Slice, *names: str) -> list[str]:
    """The synchronising operations of a kind that the slice keeps."""
    return [each.mnemonic for each in function.body if each.position in made.kept and each.has(*names)]


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_unread_and_the_launch_answers_what_the_slice_needs(name):
    function, launch = read(name)
    made = slice_of(function)
    image = Image(launch, function)
    assert made.unread == ()
    assert made.wanted
    for each in made.wanted:
        if each.need is Need.PARAMETER:
            assert image.parameter(each.offset, each.nbytes) is not None
        else:
            assert each.need is Need.TENSOR_MAP
            assert isinstance(image.tensor_map(PARAMETERS + each.offset), TensorMap)
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == launch_json(launch)


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_has_a_line_and_synchronisation_a_line_of_the_kernel(name):
    function, _ = read(name)
    text = (FOLDER / f"{name}.ptx").read_text(encoding="utf-8").splitlines()
    for each in function.body:
        assert each.opcode in text[each.line - 1]
    operations = [each for each in function.body if each.opcode in {"mbarrier", "cp", "wgmma", "tcgen05"}]
    placed = [each for each in operations if each.source is not None and Path(each.source.file).stem.startswith("on_")]
    assert len(placed) > 0.9 * len(operations)


@pytest.mark.parametrize("name", KERNELS)
def test_the_graph_is_one_and_every_branch_meets_again(name):
    function, _ = read(name)
    graph = graph_of(function)
    assert sum(block.end - block.first for block in graph.blocks) == len(function.body)
    for number, block in enumerate(graph.blocks):
        assert all(number in graph.blocks[after].predecessors for after in block.successors if after != graph.exit)
        assert graph.post_dominators[number] == graph.exit or graph.post_dominators[number] in graph.reachable


def test_what_is_kept_of_a_ring_of_one_partition():
    function, launch = read("scale_pipelined_s3-sm_90a")
    made = slice_of(function)
    assert len(kept(function, made, "init")) == 3
    assert len(kept(function, made, "inval")) == 3
    assert len(kept(function, made, "try_wait")) == 1
    assert len(kept(function, made, "tensor", "mbarrier::complete_tx::bytes")) == 3
    assert len(kept(function, made, "tensor", "bulk_group")) == 1
    products = [each for each in function.body if each.opcode == "mul" and each.has("f32")]
    assert products
    assert not {each.position for each in products} & (made.kept | made.opaque.keys())
    assert launch.parameters[0].content == TensorMap("f32", (2048, 256), (32, 32), (8192,), (), "128B")


def test_a_blackwell_kernel_keeps_tensor_memory_and_drops_its_data():
    function, _ = read("gemm_tcgen05-sm_100a")
    made = slice_of(function)
    for names in (("alloc",), ("dealloc",), ("mma",), ("commit",), ("ld",)):
        assert kept(function, made, *names), names
    converted = {each.position for each in function.body if each.opcode == "cvt" and each.has("f16x2")}
    assert converted
    assert not converted & made.kept


@pytest.mark.slow
def test_a_partition_that_only_watches_a_ring_can_hang_and_without_it_the_kernel_is_proved():
    def checked(name: str) -> Check:
        return check(read_kernel(FOLDER / f"{name}.ptx").program.with_strictness(LENIENT))

    (hangs,) = checked("scale_watched-sm_90a").refutations
    assert hangs.kind is Ending.DEADLOCK
    assert hangs.why is Why.LAP
    assert checked("scale_ws_s3-sm_90a").verdict is Verdict.PROVED


@pytest.mark.slow
def test_rings_that_one_line_makes_have_names_of_their_own_and_stages():
    program = read_kernel(FOLDER / "scale_ws_s3-sm_90a.ptx").program
    stages = Counter(barrier.name for barrier in program.barriers)
    assert sorted(stages.values()) == [2, 2, 3, 3]
    assert len({name.rpartition(":")[0] for name in stages}) == 1
