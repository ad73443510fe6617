"""Tensor memory that is allocated, used, fenced and released as PTX has it, or not: the wrong twin's line and words."""

from itertools import starmap
from pathlib import Path

import pytest

from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import LENIENT, Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import check
from pipesim.prove.counterexample.leftovers import leftovers
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.text.read import read_module
from tests.support.random_programs.allocations import allocations_are_right, kernel_of, random_allocations
from tests.support.small_ptx import SET_UP, program_of, text_of

ALLOC, DEALLOC, PERMIT = (
    f"tcgen05.{name}.cta_group::1.sync.aligned{kind}"
    for name, kind in (("alloc", ".shared::cta.b32"), ("dealloc", ".b32"), ("relinquish_alloc_permit", ""))
)
PAIR = "cta_group::2"
#: Warp 0 allocates, writes and reads its columns, and releases them.
RIGHT = (
    SET_UP.format(first=1, count=1)
    + f""" setp.ne.u32 %p4, %r1, 0;
 @%p4 bra rest;
 {ALLOC} [tile], 64;
 {PERMIT};
 ld.shared.u32 %r9, [tile];
 tcgen05.st.sync.aligned.32x32b.x2.b32 [%r9+62], {{%r20, %r21}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r20, %r21}}, [%r9+62];
 tcgen05.wait::ld.sync.aligned;
 {DEALLOC} %r9, 64;
rest:
"""
)
#: What is replaced, by what, words of the finding and of its line.
WRONG = [
    ("[tile], 64;", "[tile], 96;", "96 columns are no power of two", "alloc"),
    ("[tile], 64;", "[tile], 16;", "16 columns are no power of two", "alloc"),
    (f"{PERMIT};", f"{PERMIT};\n {ALLOC} [tile+4], 32;", "has given its permit to allocate up", "[tile+4]"),
    (f"{PERMIT};", f"{ALLOC} [tile+4], 512;", "it waits for 512 columns", "[tile+4]"),
    (f"{PERMIT};", f"{ALLOC} [tile+4], 64;", "its 64 columns are not released", "[tile+4]"),
    (f"{DEALLOC} %r9, 64;", "", "its 64 columns are not released", "alloc"),
    (f"{DEALLOC} %r9, 64;", f"{DEALLOC} %r9, 32;", "32 columns are released from 0 on, where 64", "dealloc"),
    (f"{DEALLOC} %r9, 64;", f"{DEALLOC} %r9, 64;\n {DEALLOC} %r9, 64;", "no allocation begins at column 0", "dealloc"),
    ("b32 {%r20, %r21}, [%r9+62]", "b32 {%r20, %r21}, [%r9+63]", "column 64 is not allocated", "tcgen05.ld"),
    ("[%r9+62], {", "[%r9+64], {", "column 64 is not allocated", "tcgen05.st"),
    (DEALLOC, DEALLOC.replace("cta_group::1", PAIR), "it has .cta_group::2", "dealloc"),
]
#: The same kernel otherwise, as right.
ALSO_RIGHT = [
    ("[tile], 64;", "[tile], 64;"),
    ("64;", "512;"),
    (f"{PERMIT};", f"{ALLOC} [tile+4], 64;\n ld.shared.u32 %r8, [tile+4];\n {DEALLOC} %r8, 64;"),
    (f" {PERMIT};\n", ""),
    (f"{DEALLOC} %r9, 64;", f"{DEALLOC} %r9, 64;\n {PERMIT};"),
]


def made(old: str, new: str, cluster: int = 1, base: str = RIGHT) -> Program:
    assert old in base
    program = program_of(base.replace(old, new), 2, cluster=cluster)
    assert loads(dumps(program)).coverage == program.coverage
    return program


@pytest.mark.parametrize(("old", "new"), ALSO_RIGHT)
def test_what_ptx_allows_is_proved(old: str, new: str) -> None:
    program = made(old, new)
    assert check(program).verdict is Verdict.PROVED
    assert not leftovers(program)  # a release leaves no data that nobody reads


@pytest.mark.parametrize(("old", "new", "said", "line"), WRONG)
def test_what_ptx_forbids_is_found_at_its_line(old: str, new: str, said: str, line: str) -> None:
    program = made(old, new)
    found = check(program)
    assert found.verdict is Verdict.REFUTED
    fault = next(each.fault for each in found.refutations if each.kind is FaultKind.TENSOR_ALLOCATION)
    assert fault is not None
    assert said in report_fault(program, fault).claim
    place = report_fault(program, fault).line
    assert line in text_of(RIGHT.replace(old, new)).splitlines()[int(place.rpartition(":")[2]) - 1]


def test_both_ctas_of_a_pair_allocate() -> None:
    pair = RIGHT.replace("cta_group::1", PAIR) + " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
    assert check(made("rest:", "rest:", 2, pair)).verdict is Verdict.PROVED
    alone = " @%p4 bra rest;\n mov.u32 %r40, %cluster_ctarank;\n setp.ne.u32 %p5, %r40, 0;\n @%p5 bra rest;\n"
    found = check(made(" @%p4 bra rest;\n", alone, 2, pair))
    assert {each.kind for each in found.refutations} == {FaultKind.TENSOR_ALLOCATION}


def test_random_kernels_are_right_where_each_column_is() -> None:
    drawn = [random_allocations(seed) for seed in range(5)]
    assert [check(kernel_of(*each)).verdict is Verdict.PROVED for each in drawn] == list(
        starmap(allocations_are_right, drawn)
    )


FOLDER = Path(__file__).parents[1] / "kernels"
FENCED = {
    "\ttcgen05.ld": "\ttcgen05.fence::after_thread_sync;\n\ttcgen05.ld",
    "wait::ld.sync.aligned;": "wait::ld.sync.aligned;\n\ttcgen05.fence::before_thread_sync;",
    "\t@%p24 tcgen05.mma": "\ttcgen05.fence::after_thread_sync;\n\t@%p24 tcgen05.mma",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("without", ["", *FENCED])
def test_a_kernel_is_right_under_the_strict_rule_with_all_of_its_fences(without: str) -> None:
    """Gluon's kernel has none, and needs the assumption; each of the three is needed."""
    text = (FOLDER / "gemm_clc-sm_100a.ptx").read_text("utf-8")
    for old, new in FENCED.items():
        text = text if old == without else text.replace(old, new)
    launch = read_launch((FOLDER / "gemm_clc-sm_100a.json").read_text("utf-8"), "clc.json")
    strict = Strictness({Assumption.TENSOR_FENCES})
    program = extract(read_module(text, "clc.ptx"), launch).program.with_strictness(strict)
    found = check(program)
    assert found.verdict is (Verdict.REFUTED if without else Verdict.PROVED)
    assert {each.kind for each in found.refutations} == ({FaultKind.TENSOR_FENCE} if without else set())
    assert check(program.with_strictness(LENIENT)).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("wait", "said"), [("st", ["tcgen05.ld", "dealloc"]), ("ld", ["dealloc"]), ("", [])], ids=["st", "ld", "both"]
)
def test_stores_and_loads_are_waited_for_before_columns_are_loaded_and_released(wait: str, said: list[str]) -> None:
    """PTX ISA, "tcgen05.wait": both are asynchronous, also for the thread that has issued them."""
    text = RIGHT.replace(f" tcgen05.wait::{wait}.sync.aligned;\n", "")
    program = program_of(text, 2).with_strictness(LENIENT)
    lines = text_of(text).splitlines()
    places = [each.partition(": ")[0].rpartition(":")[2] for each in program.coverage.undefined]
    assert all(one in lines[int(place) - 1] for one, place in zip(said, places, strict=True))
    assert check(program).verdict is (Verdict.UNKNOWN if wait else Verdict.PROVED)
