"""Kernels of ours that are right or wrong in global memory alone: what the verdict is, at which line, and of what."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.model.coverage import LENIENT, Assumption, Strictness
from pipesim.model.finding import Deadlock, Verdict
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Content, Launch, Number, Parameter, Pointer
from pipesim.ptx.text.declarations import Module
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import scope_parts
from pipesim.targets import find, target_of
from tests.support.random_global_kernels import random_kernel
from tests.support.small_ptx import kernel_target
from tools.judge_ctas import said_of_global_memory

SOURCES = tuple(Path(__file__).with_name(name) for name in ("global_memory.cu", "meetings.cu", "tensor_maps.cu"))


class Case(NamedTuple):
    """A kernel and its launch. ``wrong``: the finding, and text of the line that it is at; ``said``: words of it."""

    entry: str
    pointers: int
    word: int | None = None
    grid: tuple[int, int] = (5, 1)
    block: int = 128
    wrong: str = ""
    at: str = ""
    said: str = ""


RIGHT = (
    Case("own_words", 2),
    Case("ragged", 2, 70),
    Case("exchanged", 2),
    Case("bulk_complete", 2, block=64),
    Case("in_place", 1, 128),
    Case("halo", 2, 600),
    Case("summed", 2),
    Case("pitched", 1, 160, (5, 3)),
    Case("gathered", 3),
    Case("raised", 2, 6),
    Case("fifth_pointer", 5, block=64),
    Case("module_variable", 2, grid=(1, 1), block=64),
    Case("added_by_all", 2, block=64),
    Case("added_by_each_at_cta_scope", 2, block=64),
    Case("constant_load", 3, block=64),
    Case("bulk_store_then_store", 1, block=64),
    Case("bulk_stores_apart", 1, block=64),
    Case("bulk_in_place", 1, block=64),
    Case("red_of_four", 2, grid=(2, 1), block=1),
    Case("map_in_place", 3, block=64),
)
WRONG = (
    Case(
        "same_words",
        2,
        wrong="global_race",
        at="out[threadIdx.x] =",
        said="CTA 0 and CTA 1 both write bytes 0 to 127 at",
    ),
    Case("ragged_overlap", 2, 70, wrong="global_race", at="in[c] * blockIdx.x", said="both write bytes 21,600 to"),
    Case("exchanged_early", 2, wrong="race", at="work[i] = float(i)"),
    Case("bulk_source_free", 2, block=64, wrong="race", at="mine[63"),
    Case(
        "in_place",
        1,
        120,
        wrong="global_race",
        at="data[i] * 0.5f",
        said="CTA 0 writes bytes 480 to 511 at parameter 0 (p0), which CTA 1 reads",
    ),
    Case("halo_in_place", 2, 600, wrong="global_race", at="left + in[i]", said="which CTA 1 reads at"),
    Case("summed_and_read", 3, wrong="global_race", at="atomicAdd", said="which CTA"),
    Case("cleared_by_all", 2, wrong="global_race", at="sum[threadIdx.x] = 0", said="both write bytes 0 to"),
    Case("pitched", 1, 96, (5, 3), wrong="global_race", at="float(x)", said="both write"),
    Case(
        "red_of_four_meets",
        2,
        grid=(2, 1),
        block=1,
        wrong="global_race",
        at="out[3] = v",
        said="both write bytes 12 to 15 at",
    ),
    Case(
        "added_by_all_at_cta_scope",
        2,
        block=64,
        wrong="global_race",
        at="atomicAdd_block",
        said="at cta scope, which does not include both",
    ),
    Case("stored_by_all_at_cta_scope", 1, block=64, wrong="global_race", at="st.relaxed.cta"),
    Case("bulk_store_and_store", 1, block=64, wrong="race", at="] = 7", said="while its own transfer writes"),
    Case("bulk_stores_meet", 1, block=64, wrong="race", at="store(out", said="while its own transfer writes"),
    Case("fifth_pointer_early", 5, block=64, wrong="race", at="work[t] = a[t]"),
    Case("tensor_map_1", 3, 1, block=64, wrong="tensor_map_fence", at="shared(tile)", said="and not released"),
    Case("tensor_map_2", 3, 2, block=64, wrong="tensor_map_fence", at="shared(tile)", said="tensor_maps.cu:46"),
    Case("tensor_map_3", 3, block=64, wrong="race", at="acquire"),
)


@cache
def modules() -> tuple[Module, ...]:
    made = (each.with_suffix(".ptx") for each in SOURCES)
    return tuple(read_module(each.read_text(), each.name) for each in made)


def launch_of(case: Case, pointer: Content = Pointer()) -> Launch:  # noqa: B008
    given: list[Content] = [pointer] * case.pointers
    given += [] if case.word is None else [Number("s32", case.word)]
    parameters = tuple(Parameter(f"p{n}", each) for n, each in enumerate(given))
    return Launch(case.entry, (*case.grid, 1), (case.block, 1, 1), parameters=parameters)


def checked(case: Case, strict: Strictness = LENIENT, pointer: Content = Pointer()) -> CheckReport:  # noqa: B008
    module = next(each for each in modules() if each.function(case.entry))
    made = extract(module, launch_of(case, pointer))
    return check(replace(target_of(made.program), kernel=made).with_strictness(strict), {})


def said(ctas: int) -> str:
    return f"disjoint across {ctas} CTAs" if ctas > 1 else "one CTA alone uses it"


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.entry)
def test_what_cannot_meet_or_is_ordered_is_proved_and_said(case: Case) -> None:
    report = checked(case)
    assert (report.verdict, report.findings) == (Verdict.PROVED, ())
    parts = scope_parts(report)
    assert parts["global memory"] == said(case.grid[0] * case.grid[1])
    assert parts["not judged"] == "nothing"


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.entry)
def test_what_meets_in_any_order_is_a_finding_at_its_line(case: Case) -> None:
    report = checked(case)
    (found,) = report.findings
    assert not isinstance(found, Deadlock)
    assert (report.verdict, found.kind.name.lower()) == (Verdict.REFUTED, case.wrong)
    name, _, number = found.line.rpartition(":")
    source = next(each for each in SOURCES if each.name == name)
    line = source.read_text().splitlines()[int(number) - 1]
    assert case.at in line
    assert case.said in found.claim


def test_no_change_of_what_is_read_without_the_accesses_is_offered(tmp_path: Path) -> None:
    """Any would be proved: the number of a barrier was, with which warps meet after the race."""
    text = next(each.with_suffix(".ptx") for each in SOURCES if "exchanged_early" in each.read_text()).read_text()
    (tmp_path / "kernel.ptx").write_text(text)
    launch = launch_of(Case("exchanged_early", 2))
    (tmp_path / "kernel.json").write_text(launch_json(launch))
    report = check(find(str(tmp_path / "kernel.ptx")), {})
    assert [each.corrections for each in report.refutations] == [()]


def test_of_what_a_number_leads_to_is_said_what_to_do() -> None:
    (case,) = (each for each in RIGHT if each.entry == "own_words")
    found = scope_parts(checked(case, pointer=Number("u64", 0)))["not judged"]
    assert found.count(" is not a pointer in the launch file: make it one") == 2


def test_where_data_decides_where_it_stores_is_not_judged() -> None:
    report = checked(Case("scattered", 3))
    assert report.verdict is Verdict.PROVED
    assert "1 store to global memory (global_memory.cu:103: data decides where)" in scope_parts(report)["not judged"]


OPEN = (
    (Case("constant_load_of_written", 3, block=64), "meetings.cu:73: a load of constant data, of bytes that"),
    (Case("copied_and_stored", 2, block=32), "meetings.cu:129: other warps, or copies under way, access the same"),
    (Case("grouped_maps", 3, 3, block=64), "tensor_maps.cu:46: copies by the map as it was may still read it"),
)


@pytest.mark.parametrize(("case", "why"), OPEN, ids=lambda each: getattr(each, "entry", ""))
def test_what_is_not_followed_inside_a_cta_is_not_judged(case: Case, why: str) -> None:
    report = checked(case)
    assert report.verdict is Verdict.PROVED
    assert why in scope_parts(report)["not judged"]


#: %rd2 is each thread's own place, %rd3 that of another lane.
BY_LANES = """ ld.param.u64 %rd1, [out];
 mov.u32 %r0, %tid.x;
 mov.u32 %r1, %ctaid.x;
 mad.lo.u32 %r2, %r1, 64, %r0;
 xor.b32 %r3, %r2, 1;
 mad.wide.u32 %rd2, %r2, 4, %rd1;
 mad.wide.u32 %rd3, %r3, 4, %rd1;
"""
STORE_LOAD = " st.global.u32 [%rd2], 1;\n{}ld.global.u32 %r4, [%rd3];\n"
LOAD_STORE = " ld.global.u32 %r4, [%rd3];\n{}st.global.u32 [%rd2], %r4;\n"


@pytest.mark.parametrize("body", [STORE_LOAD, LOAD_STORE])
def test_that_lanes_access_global_memory_in_step_is_assumed_where_they_do_not_meet(body: str) -> None:
    """PTX orders what two lanes access only by a barrier of both, in global memory as in shared memory."""
    strict = Strictness({Assumption.LANES})
    for between, assumed in ((" ", True), (" bar.warp.sync -1;\n", False)):
        target = kernel_target(BY_LANES + body.format(between), ctas=2)
        report, strictly = check(target, {}, quick=True), check(target.with_strictness(strict), {}, quick=True)
        assert report.verdict is Verdict.PROVED
        assert (Assumption.LANES in report.scope.kinds) is assumed
        assert strictly.verdict is (Verdict.UNKNOWN if assumed else Verdict.PROVED)
    own = kernel_target(BY_LANES + body.format(" ").replace("%rd3", "%rd2"), ctas=2)
    assert check(own.with_strictness(strict), {}, quick=True).verdict is Verdict.PROVED


def test_that_stores_to_the_same_global_bytes_are_equal_is_an_assumption_with_a_switch() -> None:
    target = kernel_target(BY_LANES.replace("64, %r0", "32, 0") + " st.global.u32 [%rd2], %r0;\n", ctas=2)
    strictly = target.with_strictness(Strictness({Assumption.EQUAL_STORES}))
    assert check(target, {}, quick=True).verdict is Verdict.PROVED
    assert check(strictly, {}, quick=True).verdict is Verdict.UNKNOWN


def test_that_pointers_lead_to_different_memory_is_an_assumption_with_a_switch() -> None:
    strict = Strictness({Assumption.BUFFERS})
    assert checked(Case("own_words", 2)).scope.kinds == (Assumption.BUFFERS,)
    assert [checked(each, strict).verdict for each in RIGHT if each.entry in ("own_words", "in_place")] == [
        Verdict.UNKNOWN,
        Verdict.PROVED,
    ]


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 8, 619, 11614])
def test_random_kernels_are_wrong_just_where_threads_meet(seed: int) -> None:
    """A thousand more: ``tools/judge_proof.py --family 'global memory'``."""
    assert not said_of_global_memory(random_kernel(seed)).isupper()
