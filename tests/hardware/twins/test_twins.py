"""Every kernel of the registry: its table is the protocol's, it compiles, and its data and checks are what they say."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY, find_twin, kernel_names
from hwkernels.twins.buffers import Output
from hwkernels.twins.twin import Twin
from pipesim.errors import ConfigurationError, UsageError
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.files import read_meta
from pipesim.trace.sites import site_table
from tests.support.paths import TRACES
from tests.support.recordings import RECORDINGS, kind_of

KERNELS = [pytest.param(kernel, id=name) for name, kernel in REGISTRY.items()]
COUNTED = [pytest.param(kernel, id=name) for name, kernel in REGISTRY.items() if kernel.loop is None]
#: Of the recordings of each kernel one in sixteen, the first three of them in the fast lane. That all of them conform
#: is in ``test_stored_traces.py``.
_RECORDED = [
    (kernel, name, () if place < 3 else (pytest.mark.long,))
    for kernel in REGISTRY.values()
    for place, name in enumerate([each for each in RECORDINGS if kind_of(each)[1] == kernel.name][::16])
]


def _cases(*, counted: bool) -> list[ParameterSet]:
    return [
        pytest.param(kernel, name, id=f"{kernel.name}-{n}", marks=lane)
        for n, (kernel, name, lane) in enumerate(_RECORDED)
        if kernel.loop is None or not counted
    ]


RECORDED, RECORDED_COUNTED = _cases(counted=False), _cases(counted=True)


def compile_options(request: CaptureRequest) -> set[str]:
    """What a traced build is given, without building it."""
    with patch("hwkernels.capture.twin_subject.compile_cubin", lambda source, defines: defines):
        assert isinstance(request.subject, TwinSubject)
        given: Any = request.subject.build(request, "shared")  # what the compiler would have been given
        return {f"-D{name}={value}" for name, value in given.items()}


def usual(kernel: Twin) -> CaptureRequest:
    return CaptureRequest(TwinSubject(kernel.name), find(kernel.name).defaults)


def test_names():
    assert kernel_names() == tuple(REGISTRY)
    assert kernel_names()[0] == "producer_consumer"
    assert all(kernel.name == name for name, kernel in REGISTRY.items())
    with pytest.raises(UsageError, match="there is no CUDA kernel of ring"):
        find_twin("ring")


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize(("kernel", "name"), RECORDED)
def test_roles_barriers_and_sites_are_those_of_the_protocol(kernel, name):
    request = recorded_request(read_meta(TRACES / name))
    check_request(request)
    layout = plan(request, MAX_SMEM)
    program = find(kernel.name).build(dict(request.params), grid=request.ctas)
    protocol = site_table(program)
    assert layout.table.agents == protocol.agents
    assert layout.table.barriers == protocol.barriers
    assert {(s.role, s.kind, s.barrier) for s in protocol.sites} <= {
        (s.role, s.kind, s.barrier) for s in layout.table.sites
    }
    assert layout.shape.block == (32 * len(protocol.agents),)
    assert (layout.shape.cluster, request.ctas) == (program.ctas, read_meta(TRACES / name).grid)
    moved = {record.value for agent in protocol.records for op in agent for record in op if record.value > 64}
    assert moved <= set(kernel.nbytes(request.params))


@pytest.mark.parametrize("kernel", COUNTED)
def test_records_lie_in_shared_memory_where_the_kernel_leaves_room(kernel):
    request = usual(kernel)
    own = kernel.shape(request.params, 1).smem_bytes
    layout = plan(request)
    needed = len(layout.table.agents) * layout.capacity * layout.space("clock", 1).record_words * 4 + 16
    assert (layout.memory, layout.shape.smem_bytes) == ("shared", own + needed)
    assert plan(request, own + needed).memory == "shared"
    for less in (plan(request, own + needed - 1), plan(replace(request, memory="device"))):
        assert (less.memory, less.shape.smem_bytes) == ("device", own)
    warps = len(layout.table.agents)
    cause = f"{layout.capacity - 1:,} fit for each of {warps} warps, but {layout.capacity:,} are needed"
    with pytest.raises(ConfigurationError, match=f"there is no room for records in shared memory\n.*{cause}"):
        plan(replace(request, memory="shared"), own + needed - 1)


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize(("kernel", "name"), RECORDED_COUNTED)
def test_every_record_that_the_protocol_makes_has_its_place(kernel, name):
    """PIPESIM_COUNTED: no record of a kernel of the registry looks whether it fits."""
    request = recorded_request(read_meta(TRACES / name))
    made = site_table(find(kernel.name).build(dict(request.params), grid=request.ctas)).records
    most = max(sum(len(of_op) for of_op in of_agent) for of_agent in made)
    assert plan(request).capacity >= most + kernel.room + 2
    traced = compile_options(request)
    assert {"-DPIPESIM_CHECKED=0", "-DPIPESIM_COUNTED=1", f"-DPIPESIM_ROOM={kernel.room}"} <= traced


@pytest.mark.parametrize("kernel", COUNTED)
def test_a_table_of_other_parameters_is_refused(kernel, monkeypatch):
    request = usual(kernel)
    wrong = kernel.table({**request.params, "stages": request.params["stages"] + 1})
    monkeypatch.setattr(Twin, "table", lambda self, params: wrong)
    with pytest.raises(ConfigurationError, match="are not those of the protocol"):
        plan(request, MAX_SMEM)


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_compiles_without_a_warning_in_every_way_it_is_built(kernel, every):
    """Of the large kernels one way with records, in turn, but at length; of the ring every way is always built."""
    request = usual(kernel)
    subject = request.subject
    assert isinstance(subject, TwinSubject)
    plain = subject.build(request)
    builds = [(request, "shared"), (request, "host"), (replace(request, clock="both"), "device")]
    place = list(REGISTRY).index(kernel.name)
    for build, memory in builds if every or place == 0 else builds[place % 3 :][:1]:
        traced = subject.build(build, memory)
        assert (traced.log, traced.entry) == ("", kernel.name)
        assert traced.cubin != plain.cubin
    assert plain.log == ""


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize(("kernel", "name"), RECORDED)
def test_the_data_are_the_seeds_and_every_output_is_compared_by_tile(kernel, name):
    request = recorded_request(read_meta(TRACES / name))
    assert isinstance(request.subject, TwinSubject)
    params, grid = request.params, min(request.subject.grid, 8)  # on every SM it takes long
    one, same, other = (kernel.arguments(params, grid, seed) for seed in (1, 1, 2))
    assert repr(one) == repr(same)
    outputs = [argument for argument in one if isinstance(argument, Output)]
    assert outputs
    for output, another in zip(outputs, [a for a in other if isinstance(a, Output)], strict=True):
        assert np.isfinite(output.expected).all()
        if kernel.units(params) and output.expected.any():
            assert not np.array_equal(output.expected, another.expected)
