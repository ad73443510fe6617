"""The launch files that are made of what a process passes to our own kernels are those that hwkernels writes itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.twins import find_twin
from pipesim.launches.files.launch_file import KernelText, describe_launch, kernel_text
from pipesim.launches.records.read import read_spool
from pipesim.ptx.extract import extract, with_contents_read
from pipesim.ptx.flow.slice import Need
from pipesim.ptx.launch.values import Launch, Pointer
from pipesim.targets import find
from tests.support.lanes import long_but, slow_but
from tests.support.ptx_twins import twin_ptx
from tests.support.spools import record_of, values_of, write_spool
from tests.support.twin_launches import launch_of

pytest.importorskip("cuda.bindings.nvrtc")

NAMES = (
    "producer_consumer", "cluster_multicast", "persistent_scheduler", "gemm_sm90", "attention_sm90",
    "attention_sm90_fused", "epilogue_residual",
)  # fmt: skip
SAMPLED = ("cluster_multicast", "gemm_sm90", "epilogue_residual")  #: in the slow lane


def through_a_record(tmp_path: Path, given: Launch, text: str) -> Launch:
    """The launch that is made of the record of one."""
    (record,) = read_spool(write_spool(tmp_path / "spool", [record_of(given)])).launches
    made = describe_launch(record, kernel_text(text, "kernel.ptx", given.entry))
    assert made.compiled is not None, made.reason
    return made.compiled.launch


def without_idle_memory(launch: Launch, kernel: KernelText) -> Launch:
    """The launch without the memory on which nothing depends: hwkernels writes all that it clears."""
    needs = {each.offset for each in kernel.needs if each.need is Need.MEMORY}
    parameters = [
        each._replace(content=Pointer(each.content.align))
        if isinstance(each.content, Pointer) and formal.offset not in needs
        else each
        for each, formal in zip(launch.parameters, kernel.entry.params, strict=True)
    ]
    return with_contents_read(kernel.module, replace(launch, parameters=tuple(parameters)))


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("name", long_but(["producer_consumer", *SAMPLED], slow_but(NAMES[:1], NAMES)))
def test_the_launch_file_is_the_same(tmp_path: Path, name: str) -> None:
    given = launch_of(find_twin(name), find(name).defaults, 2)
    made = through_a_record(tmp_path, given, twin_ptx(name, ()))
    assert (made.entry, made.grid, made.block, made.cluster) == (given.entry, given.grid, given.block, given.cluster)
    assert (made.dynamic_shared, made.policies, made.version) == (given.dynamic_shared, given.policies, given.version)
    kernel = kernel_text(twin_ptx(name, ()), "kernel.ptx", given.entry)
    assert values_of(made) == values_of(without_idle_memory(given, kernel))
    assert extract(kernel.module, made).program.code == extract(kernel.module, given).program.code


@pytest.mark.slow
def test_one_changed_word_is_seen(tmp_path: Path) -> None:
    given = launch_of(find_twin("producer_consumer"), find("producer_consumer").defaults)
    other = launch_of(find_twin("producer_consumer"), {**find("producer_consumer").defaults, "tiles": 63})
    made = through_a_record(tmp_path, other, twin_ptx("producer_consumer", ()))
    assert values_of(made) != values_of(given)


@pytest.mark.slow
def test_memory_that_decides_is_there(tmp_path: Path) -> None:
    given = launch_of(find_twin("gemm_sm90"), find("gemm_sm90").defaults)
    made = through_a_record(tmp_path, given, twin_ptx("gemm_sm90", ()))
    assert any(isinstance(each.content, Pointer) and each.content.contents for each in made.parameters)
