"""The kernels that only Blackwell can run, which nobody here could: they compile for sm_100a, to the instructions that
they are about, and their tables are their protocols'."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.sources import PTX_HEADERS, TWINS, source_file
from hwkernels.recorder.table import read_table
from hwkernels.twins.tables import sources
from hwkernels.twins.twin import dotted
from pipesim.errors import ParameterError, UsageError
from pipesim.targets import find
from pipesim.trace.sites import site_table
from tests.support.cuda_tools import nvdisasm
from tests.support.lanes import slow_but


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gemm_sm100", {"cluster_n": 2}),
        ("gemm_sm100", {"cta_group": 2}),
        ("gemm_sm100", {"epilogue_load": 1}),
        ("gemm_sm100_blockwise", {"cluster_m": 2}),
        ("cutlass_sm100", {"cta_group": 2}),
    ],
)
def test_a_kernel_of_one_sm_refuses_what_it_does_not_have(name: str, params: dict[str, int]) -> None:
    (source,) = [source for source in sources() if source.protocol == name]
    ((parameter, value),) = params.items()
    with pytest.raises(ParameterError, match=f"{name}.cu does not have {parameter} = {value}"):
        replace(source, settings=(params,)).text()


GROUPS = dotted("input", "output", "epi_load", "clc", "clc_throttle")
CUTLASS = {"input_full": "mainloop.full", "input_empty": "mainloop.empty", "output_full": "accum.full"}
CUTLASS |= {"output_empty": "accum.empty", "load_order_group0": "load_order.group0"}
CUTLASS |= {"load_order_group1": "load_order.group1"}


class Case(NamedTuple):
    """A kernel: its macros by the protocol's parameters, settings to try, instructions, and mistakes in its table."""

    macros: Mapping[str, str]
    settings: tuple[dict[str, int], ...]
    instructions: frozenset[str]
    mistakes: Mapping[str, str]  #: what stands in the table, and what a wrong twin has instead


SHARED = {"accumulators": "ACCUMULATORS", "clc_stages": "CLC_STAGES", "block_n": "BLOCK_N"}
EVERYWHERE = frozenset({"UGETNEXTWORKID.SELFCAST", "LDTM.x32", "UTCBAR", "UTMASTG.2D"})
CLC = "PIPESIM_BARRIER(clc_empty, CLC_STAGES, "
CASES = {
    "gemm_sm100": Case(
        SHARED | {"stages": "RING_STAGES", "k_group_size": "K_GROUP"},
        (
            {},
            {"k_group_size": 2, "block_n": 256, "stages": 4},
            {"accumulators": 1, "clc_stages": 1, "stages": 3, "block_n": 64},
        ),
        EVERYWHERE | {"UTCHMMA", "UTMALDG.2D"},
        {f"{CLC}224)": f"{CLC}256)", "PIPESIM_ROLE(mma, 1)": "PIPESIM_ROLE(mma, 4)"},
    ),
    "conv_epilogue": Case(
        SHARED
        | {"stages": "RING_STAGES", "epi_stages": "EPI_STAGES"}
        | {"residual": "RESIDUAL", "first_tile_only": "FIRST_TILE_ONLY"},
        ({}, {"first_tile_only": 1, "epi_stages": 1}, {"accumulators": 4, "block_n": 64, "clc_stages": 3, "stages": 7}),
        EVERYWHERE | {"UTCHMMA", "UTMALDG.4D.IM2COL", "UTMALDG.3D", "UTMALDG.2D"},
        {
            f"{CLC}256)": f"{CLC}224)",
            "(load_arrive_load_order, load, ARRIVE,": "(load_arrive_load_order, load, EXPECT,",
        },
    ),
    "cutlass_sm100": Case(
        SHARED | {"stages": "RING_STAGES"},
        ({}, {"block_n": 256, "stages": 3}, {"accumulators": 1, "clc_stages": 1, "block_n": 64}),
        EVERYWHERE | {"UTCHMMA", "UTMALDG.2D"},
        {
            "PIPESIM_BARRIER(epilogue_throttle, 1, 96)": "PIPESIM_BARRIER(epilogue_throttle, 1, 128)",
            "(load_try_input_empty, load, TRY,": "(load_try_input_empty, load, WAIT_ENTER,",
        },
    ),
    "gemm_sm100_blockwise": Case(
        SHARED | {"stages": "RING_STAGES"},
        ({}, {"block_n": 64, "accumulators": 4}, {"stages": 1, "accumulators": 1, "clc_stages": 1}),
        EVERYWHERE | {"UTCQMMA", "UTMALDG.2D"},
        {
            "PIPESIM_BARRIER(input_empty, RING_STAGES, 5)": "PIPESIM_BARRIER(input_empty, RING_STAGES, 1)",
            "(epilogue_arrive_input_empty, epilogue, ARRIVE, input_empty)": "(epilogue_arrive_input_empty, epilogue, "
            "ARRIVE, output_empty)",
        },
    ),
}
SETTINGS = [pytest.param(name, n, id=f"{name}-{n}") for name, case in CASES.items() for n in range(len(case.settings))]


def defines(name: str, params: Mapping[str, int]) -> dict[str, int]:
    values = {macro: params[param] for param, macro in CASES[name].macros.items()}
    return values | {"RING_STAGES": params["stages"] // params.get("k_group_size", 1)}


def groups_of(name: str) -> dict[str, str]:
    """What a protocol calls the groups of barriers of its kernel's table."""
    return GROUPS | (CUTLASS if name == "cutlass_sm100" else {})


def params_of(name: str, n: int) -> dict[str, int]:
    return find(name).defaults | CASES[name].settings[n]


def differences(name: str, table_file: Path, params: Mapping[str, int]) -> list[str]:
    """In what a table is not that of its protocol."""
    table = read_table(table_file, defines(name, params))
    protocol = site_table(find(name).build(params))
    groups = groups_of(name)
    barriers = [(groups.get(b.name, b.name), b.stages, b.count) for b in table.barriers]
    sites = [(s.role, s.kind, groups.get(s.barrier, s.barrier)) for s in table.sites]
    same = {
        "roles": table.agents == protocol.agents,
        "barriers": barriers == [(b.name, b.stages, b.count) for b in protocol.barriers],
        "sites": sites == [(s.role, s.kind, s.barrier) for s in protocol.sites],
    }
    return [what for what, holds in same.items() if not holds]


@pytest.mark.parametrize(("name", "n"), SETTINGS)
def test_roles_barriers_and_sites_are_the_protocols(name, n):
    params = params_of(name, n)
    assert differences(name, source_file(f"{name}.table.h"), params) == []


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_table_is_seen(name, tmp_path):
    right = (source_file(f"{name}.table.h")).read_text(encoding="utf-8")
    table_file = tmp_path / "wrong.table.h"
    for stands, wrong in CASES[name].mistakes.items():
        assert right.count(stands) == 1
        table_file.write_text(right.replace(stands, wrong), encoding="utf-8")
        assert differences(name, table_file, params_of(name, 0)) != []
    table_file.write_text(right.replace("load, ARRIVE,", "nobody, ARRIVE,"), encoding="utf-8")
    with pytest.raises(UsageError, match="no role nobody above this line"):
        differences(name, table_file, params_of(name, 0))


def lane(name: str, traced: int) -> tuple[pytest.MarkDecorator, ...]:
    """Of every kernel one build is in ``.ci/run``, in turn with records and without, and one only at length."""
    if (name, traced) == ("gemm_sm100", 0):
        return ()
    return (pytest.mark.slow,) if (sorted(CASES).index(name) + traced) % 2 else (pytest.mark.long,)


BUILDS = [pytest.param(name, n, traced, marks=lane(name, traced)) for name in CASES for n, traced in ((1, 0), (2, 1))]


@pytest.mark.parametrize(("name", "n", "traced"), BUILDS)
def test_it_compiles_without_a_word(name, n, traced):
    """The first setting is that of the machine code, below."""
    values = defines(name, params_of(name, n)) | {"PIPESIM_TRACE": traced}
    compiled = compile_cubin(source_file(f"{name}.cu"), values, arch="sm_100a")
    assert (compiled.log, compiled.entry) == ("", name)


def instructions(cubin: Path) -> frozenset[str]:
    """The names of a cubin's instructions of tensor cores, tensor memory, copy engine and launch control."""
    text = subprocess.run([nvdisasm(), "-c", cubin], check=True, capture_output=True, text=True).stdout
    return frozenset(re.findall(r"\b(UTC\w*MMA|UTCBAR|LDTM\.x32|UTMA(?:LDG|STG)\.[\w.]+|UGETNEXTWORKID\.\w+)", text))


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(["gemm_sm100"], CASES))
def test_the_machine_code_has_the_instructions_that_it_is_about(name, tmp_path):
    values = defines(name, params_of(name, 0)) | {"PIPESIM_TRACE": 0}
    compiled = compile_cubin(source_file(f"{name}.cu"), values, arch="sm_100a")
    (tmp_path / "cubin").write_bytes(compiled.cubin)
    assert compiled.log == ""
    assert instructions(tmp_path / "cubin") == CASES[name].instructions


@pytest.mark.slow
def test_without_a_residual_nothing_of_it_is_loaded(tmp_path):
    values = defines("conv_epilogue", params_of("conv_epilogue", 0)) | {"PIPESIM_TRACE": 0, "RESIDUAL": 0}
    compiled = compile_cubin(source_file("conv_epilogue.cu"), values, arch="sm_100a")
    (tmp_path / "cubin").write_bytes(compiled.cubin)
    assert compiled.log == ""
    assert instructions(tmp_path / "cubin") == CASES["conv_epilogue"].instructions - {"UTMALDG.2D"}


def test_they_say_that_they_were_never_run():
    for path in (
        *(source_file(f"{name}.cu") for name in CASES),
        *TWINS.rglob("*_sm100.cuh"),
        source_file("tcgen05.cuh"),
    ):
        assert "NEVER RUN" in path.read_text(encoding="utf-8"), path.name


def test_no_kernel_ends_a_wait_by_a_trap():
    """A deadline that passes is reported: a trap would take the CUDA context of the whole process with it."""
    sources = [*TWINS.rglob("*.cu"), *TWINS.rglob("*.cuh"), *PTX_HEADERS.glob("*.cuh")]
    assert len(sources) > 20
    for path in sources:
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        assert not re.search(r"\b(?:__)?trap\b|\bassert\s*\(", code), path.name
