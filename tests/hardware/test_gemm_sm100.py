"""Blackwell's GEMM, which nobody here could run: it compiles for sm_100a, and its table is the protocol's."""

import pytest

from hwkernels.compile import KERNELS, compile_cubin
from hwkernels.kernel import dotted
from hwkernels.table import read_table
from pipesim.protocols.catalog import find
from pipesim.trace.sites import site_table

GROUPS = dotted("input", "output", "clc", "clc_throttle")


def defines(params: dict[str, int]) -> dict[str, int]:
    return {
        "RING_STAGES": params["stages"] // params["k_group_size"], "K_GROUP": params["k_group_size"],
        "ACCUMULATORS": params["accumulators"], "CLC_STAGES": params["clc_stages"], "BLOCK_N": params["block_n"],
    }  # fmt: skip


@pytest.mark.parametrize(("changes", "traced"), [({"k_group_size": 2, "block_n": 256}, 0), ({"accumulators": 1}, 1)])
def test_it_compiles(changes, traced):
    values = defines(find("gemm_sm100").defaults | changes) | {"PIPESIM_TRACE": traced}
    compiled = compile_cubin(KERNELS / "gemm_sm100.cu", values, arch="sm_100a")
    assert (compiled.log, compiled.entry) == ("", "gemm_sm100")


@pytest.mark.parametrize("changes", [{}, {"k_group_size": 2}, {"accumulators": 1, "clc_stages": 1, "stages": 3}])
def test_roles_barriers_and_sites_are_the_protocols(changes):
    params = find("gemm_sm100").defaults | changes
    table = read_table(KERNELS / "gemm_sm100.table.h", defines(params))
    protocol = site_table(find("gemm_sm100").build(params))
    assert table.agents == protocol.agents
    named = [(GROUPS.get(b.name, b.name), b.stages, b.count) for b in table.barriers]
    assert named == [(b.name, b.stages, b.count) for b in protocol.barriers]
    sites = [(s.role, s.kind, GROUPS.get(s.barrier, s.barrier)) for s in table.sites]
    assert sites == [(s.role, s.kind, s.barrier) for s in protocol.sites]
    wrong = read_table(KERNELS / "gemm_sm100.table.h", defines(params | {"accumulators": 4}))
    assert [b.stages for b in wrong.barriers] != [b.stages for b in table.barriers]


def test_it_says_that_it_was_never_run():
    for name in ("gemm_sm100.cu", "tcgen05.cuh"):
        assert "NEVER RUN" in (KERNELS / name).read_text()
