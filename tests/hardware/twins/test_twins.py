"""Every kernel of the registry: its table is the protocol's, it compiles, and its data and checks are what they say."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from hwkernels.capture.twin import Kernel, Output
from hwkernels.capture.twin_launches import compare_output
from hwkernels.capture.twin_request import KernelRequest, check_kernel_request, compile_kernel_of, plan_kernel
from hwkernels.twins import REGISTRY, kernel_names, registered
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.sites import site_table

KERNELS = [pytest.param(kernel, id=name) for name, kernel in REGISTRY.items()]
#: Every configuration that was recorded; the fast lane takes the first three of each kernel.
RECORDED = [
    pytest.param(kernel, recorded, id=f"{name}-{n}", marks=pytest.mark.slow if n >= 3 else ())
    for name, kernel in REGISTRY.items()
    for n, recorded in enumerate(kernel.recorded)
]


def compile_options(request: KernelRequest) -> set[str]:
    """What a traced build is given, without building it."""
    given: dict[str, int | str] = {}
    with patch("hwkernels.capture.twin_request.compile_cubin", lambda source, defines: given.update(defines)):
        compile_kernel_of(request, traced=True)
    return {f"-D{name}={value}" for name, value in given.items()}


def request_of(kernel: Kernel, recorded) -> KernelRequest:
    params = find(kernel.name).defaults | dict(recorded.params)
    return KernelRequest(kernel.name, params, recorded.grid, recorded.clock)


def test_names():
    assert kernel_names() == ("producer_consumer", *REGISTRY)
    assert all(kernel.name == name for name, kernel in REGISTRY.items())
    with pytest.raises(UsageError, match="there is no CUDA kernel of ring"):
        registered("ring")


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_parameter_of_the_protocol_has_a_range_that_holds_its_default(kernel):
    defaults = find(kernel.name).defaults
    assert set(kernel.ranges) == set(defaults)
    kernel.check(defaults)
    for name, allowed in kernel.ranges.items():
        with pytest.raises(ParameterError, match=f"has no {name} = "):
            kernel.check(defaults | {name: allowed.high + 1})


@pytest.mark.parametrize("kernel", KERNELS)
def test_at_least_eight_configurations_are_recorded_and_none_twice(kernel):
    labels = {
        repr((sorted((find(kernel.name).defaults | dict(r.params)).items()), r.grid, r.clock)) for r in kernel.recorded
    }
    assert len(labels) == len(kernel.recorded) >= 8


@pytest.mark.parametrize(("kernel", "recorded"), RECORDED)
def test_roles_barriers_and_sites_are_those_of_the_protocol(kernel, recorded):
    request = request_of(kernel, recorded)
    check_kernel_request(request)
    layout = plan_kernel(request, MAX_SMEM)
    program = find(kernel.name).build(dict(request.params), grid=request.ctas)
    protocol = site_table(program)
    assert layout.table.agents == protocol.agents
    assert layout.table.barriers == protocol.barriers
    assert {(s.role, s.kind, s.barrier) for s in protocol.sites} <= {
        (s.role, s.kind, s.barrier) for s in layout.table.sites
    }
    assert layout.shape.block == (32 * len(protocol.agents),)
    assert (layout.shape.cluster, request.ctas) == (program.ctas, program.ctas * request.grid)
    moved = {record.value for agent in protocol.records for op in agent for record in op if record.value > 64}
    assert moved <= set(kernel.nbytes(request.params))


@pytest.mark.parametrize("kernel", KERNELS)
def test_records_lie_in_shared_memory_where_the_kernel_leaves_room(kernel):
    request = request_of(kernel, kernel.recorded[0])
    own = kernel.shape(request.params, 1).smem_bytes
    layout = plan_kernel(request)
    needed = len(layout.table.agents) * layout.capacity * 8 + 16
    assert (layout.memory, layout.shape.smem_bytes) == ("shared", own + needed)
    assert plan_kernel(request, own + needed).memory == "shared"
    for less in (plan_kernel(request, own + needed - 1), plan_kernel(replace(request, memory="device"))):
        assert (less.memory, less.shape.smem_bytes) == ("device", own)
    with pytest.raises(ConfigurationError, match=f"there is no room for {needed - 16:,} bytes of records"):
        plan_kernel(replace(request, memory="shared"), own + needed - 1)


@pytest.mark.parametrize(("kernel", "recorded"), RECORDED)
def test_every_record_that_the_protocol_makes_has_its_place(kernel, recorded):
    """PIPESIM_COUNTED: no record of a kernel of the registry looks whether it fits."""
    request = request_of(kernel, recorded)
    made = site_table(find(kernel.name).build(dict(request.params), grid=request.ctas)).records
    most = max(sum(len(of_op) for of_op in of_agent) for of_agent in made)
    assert plan_kernel(request).capacity >= most + kernel.room + 2
    traced = compile_options(request)
    assert {"-DPIPESIM_CHECKED=0", "-DPIPESIM_COUNTED=1", f"-DPIPESIM_ROOM={kernel.room}"} <= traced


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_table_of_other_parameters_is_refused(kernel, monkeypatch):
    request = request_of(kernel, kernel.recorded[0])
    wrong = kernel.table({**request.params, "stages": request.params["stages"] + 1})
    monkeypatch.setattr(Kernel, "table", lambda self, params: wrong)
    with pytest.raises(ConfigurationError, match="are not those of the protocol"):
        plan_kernel(request, MAX_SMEM)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_compiles_without_a_warning_in_every_way_it_is_built(kernel):
    request = request_of(kernel, kernel.recorded[0])
    plain = compile_kernel_of(request, traced=False)
    for build in (request, replace(request, memory="host"), replace(request, clock="both", memory="device")):
        traced = compile_kernel_of(build, traced=True)
        assert (traced.log, traced.entry) == ("", kernel.name)
        assert traced.cubin != plain.cubin
    assert plain.log == ""


@pytest.mark.parametrize(("kernel", "recorded"), RECORDED)
def test_the_data_are_the_seeds_and_every_output_is_compared_by_tile(kernel, recorded):
    params = request_of(kernel, recorded).params
    grid = min(recorded.grid, 8)  # on every SM it takes long
    one, same, other = (kernel.arguments(params, grid, seed) for seed in (1, 1, 2))
    assert repr(one) == repr(same)
    outputs = [argument for argument in one if isinstance(argument, Output)]
    assert outputs
    for output, another in zip(outputs, [a for a in other if isinstance(a, Output)], strict=True):
        assert np.isfinite(output.expected).all()
        if kernel.units(params) and output.expected.any():
            assert not np.array_equal(output.expected, another.expected)


def test_an_output_is_compared_element_by_element():
    output = Output("d", np.array([[1.0, 2.0], [0.0, -4.0]]), "float32", relative=0.1, absolute=0.01)
    right = compare_output(output, np.array([[1.1, 2.2], [0.01, -3.6]], dtype=np.float32))
    assert (right.elements, right.wrong, right.wrong_tiles, right.first_wrong) == (4, 0, 0, "")
    wrong = compare_output(output, np.array([[1.0, np.nan], [0.02, -4.5]], dtype=np.float32))
    assert (wrong.wrong, wrong.wrong_tiles) == (3, 2)
    assert wrong.first_wrong.startswith("d[0, 1] is ")
