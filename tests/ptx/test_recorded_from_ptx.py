"""Kernels of Triton and Gluon that an H200 recorded from their PTX, beside that PTX."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.replay.latency_floor import ReleasePath, floors_for
from pipesim.conform.result import DivergenceKind
from pipesim.errors import EvidenceError
from pipesim.model.ending import Ending
from pipesim.ptx.kernel import read_kernel
from pipesim.trace.files import read_trace
from pipesim.trace.schema import EventKind
from tests.support.early_returns import returned_by, tight_returns
from tests.support.lanes import slow_but

FOLDER = Path(__file__).parents[2] / "traces" / "h200" / "ptx"
NAMES = sorted(path.stem for path in FOLDER.glob("*.parquet"))
HANGS = "triton-gemm_tma_w8_s4-hangs"
FAST = {"gluon-scale_ws_s2", "gluon-gemm_wgmma_ws", "triton-attention_d64"}  #: whose conformance the fast lane checks


def test_there_are_kernels_of_both_compilers() -> None:
    assert {name.partition("-")[0] for name in NAMES} == {"gluon", "triton"}
    assert len(NAMES) == 20


@pytest.mark.slow
def test_every_kernel_of_the_table_has_its_trace() -> None:
    """Those of Modular's kernels, which are without their PTX as well."""
    rows = json.loads((FOLDER.parent / "recorded_kernels.json").read_text())
    traces = {path.relative_to(FOLDER).as_posix(): read_trace(path) for path in FOLDER.rglob("*.parquet")}
    found = sorted((len(trace.events), str(trace.meta.status)) for trace in traces.values())
    assert found == sorted((row["events"], row["status"]) for row in rows if row["agreement"] != "refused")
    assert len([name for name in traces if name.startswith("modular/")]) == 9
    assert sum(trace.meta.status is Ending.DEADLINE for trace in traces.values()) == 3


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", slow_but(FAST, [name for name in NAMES if name != HANGS]))
def test_it_conforms_to_the_program_read_from_its_ptx(name: str) -> None:
    trace = read_trace(FOLDER / f"{name}.parquet")
    found = compare_kernel(read_kernel(FOLDER / f"{name}.ptx"), trace, name).comparison
    assert trace.meta.device.name == "NVIDIA H200"
    assert (found.agreement, found.conformance.divergence) == (Agreement.CONFORMS, None)
    assert found.conformance.events == len(trace.events) > 40


@pytest.mark.slow
def test_a_kernel_that_hangs_is_followed_to_its_end() -> None:
    """The last expect_tx waits for 16 bytes more than the copies bring: all warps wait for that phase."""
    trace = read_trace(FOLDER / f"{HANGS}.parquet")
    found = compare_kernel(read_kernel(FOLDER / f"{HANGS}.ptx"), trace, HANGS).comparison
    assert found.agreement is Agreement.HANGS_TOO
    assert found.conformance.divergence is not None
    assert found.conformance.divergence.claim == "the kernel timed out: 8 of 8 agents blocked"


@pytest.mark.slow
def test_a_wait_that_returns_before_its_arrival_is_a_divergence() -> None:
    name = "gluon-scale_ws_s2"
    trace = read_trace(FOLDER / f"{name}.parquet")
    kinds = np.array([site.kind for site in trace.meta.sites])[trace.events.site]
    waits = np.flatnonzero((kinds == EventKind.WAIT_RETURN) & (trace.events.cta == 0))
    entered = trace.events.cycle[waits - 1]
    long = waits[int(np.argmax(trace.events.cycle[waits] - entered))]
    cycles = trace.events.cycle.copy()
    cycles[long] = cycles[long - 1] + 1
    early = replace(trace, events=replace(trace.events, cycle=cycles))
    found = compare_kernel(read_kernel(FOLDER / f"{name}.ptx"), early, name).comparison
    assert found.conformance.divergence is not None
    assert found.conformance.divergence.kind is not DivergenceKind.FAULT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scale_ws_s2", "scale_watched"])
def test_a_wait_that_returns_sooner_than_an_arrive_takes_is_refused(name: str) -> None:
    """The return that came soonest after its arrive, moved: 1 cycle inside the bound and all conforms, 1 beyond not."""
    trace, read = read_trace(FOLDER / f"gluon-{name}.parquet"), read_kernel(FOLDER / f"gluon-{name}.ptx")
    kernel, floors = (
        recorded_kernel(read.program, read.places, trace, read.by_line),
        floors_for("NVIDIA H200", by_ptx=True),
    )
    assert floors is not None
    returns = tight_returns(kernel.program, kernel.trace, floors, kernel.sites)
    soonest = next(each for each in returns if each.path is ReleasePath.ARRIVE)
    inside = compare_kernel(read, returned_by(trace, soonest.row, soonest.slack + 20), name).comparison
    assert inside.agreement is Agreement.CONFORMS
    beyond = compare_kernel(read, returned_by(trace, soonest.row, soonest.slack + 22), name).comparison
    found = beyond.conformance.divergence
    assert found is not None
    assert (found.kind, found.late_by) == (DivergenceKind.TOO_SOON, 2)
    assert found.early is not None
    assert found.early.bound_cycles == soonest.least
    assert "recordings by PTX of the NVIDIA H200" in found.early.source


@pytest.mark.slow
def test_it_is_not_taken_for_another_kernel() -> None:
    trace = read_trace(FOLDER / "gluon-scale_ws_s2.parquet")
    with pytest.raises(EvidenceError, match="other warps or mbarriers"):
        compare_kernel(read_kernel(FOLDER / "triton-grouped_gemm.ptx"), trace, "trace")
