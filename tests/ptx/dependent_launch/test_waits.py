"""Accesses to global memory before and after griddepcontrol.wait: kernels of CUDA, each right and wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.device.compile import compile_ptx
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.model.coverage import LENIENT, Assumption, NotJudgedKind, Strictness
from pipesim.model.dependent_launch import EarlierUse
from pipesim.model.finding import FaultKind, FaultReport, Verdict
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from pipesim.prove.dependent_launch import launch_refutations
from pipesim.ptx.kernel import launch_template
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch, Parameter, Pointer, TensorMap
from pipesim.ptx.text.read import read_module
from pipesim.targets import find
from tests.support.small_ptx import SET_UP, program_of

pytest.importorskip("cuda.bindings.nvrtc")
SOURCE = Path(__file__).parent / "kernels.cu"
WRITES, READS, NONE = EarlierUse.WRITES, EarlierUse.READS, EarlierUse.NONE
#: Of each kernel what the launch says of its buffers, and the words of the finding of the wrong one ("" for none).
KERNELS = [
    ("load_before_wait", (), "no load of this CTA comes after a wait"),
    ("load_before_wait", (WRITES, READS), "which an earlier kernel may write, is loaded"),
    ("load_before_wait", (READS, READS), ""),
    ("wait_of_idle_warps", (), "no load of this CTA comes after a wait"),
    ("wait_of_some_ctas", (), "no load of this CTA comes after a wait"),
    ("wait_of_one_thread", (), "which other warps load after a wait, is loaded"),
    ("store_before_wait", (), "which an earlier kernel may still use, is stored to"),
    ("store_before_wait", (WRITES, READS), "which an earlier kernel may read, is stored to"),
    ("store_before_wait", (WRITES, NONE), ""),
    ("store_of_one_cta", (), "which an earlier kernel may still use, is stored to"),
    ("tma_producer", (), "no load of this CTA comes after a wait"),
    ("in_place", (), "to which this kernel also stores"),
    ("weights_first", (), ""),  # x could be weights as well
    ("weights_first", (NONE, WRITES, NONE), "which an earlier kernel may write, is loaded"),
    ("map_first", (), ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the PTX of the right kernels is, and that of the wrong ones."""
    made = tmp_path_factory.mktemp("kernels")
    for wrong in (0, 1):
        (made / f"{wrong}.ptx").write_text(compile_ptx(SOURCE, {"WRONG": wrong}), "utf-8")
    return made


def marked(kernel: str) -> int:
    """The line of the finding of a kernel."""
    text = SOURCE.read_text("utf-8")
    return text[: text.index("// wrong", text.index(f" {kernel}("))].count("\n") + 1


def checked(
    folder: Path, kernel: str, uses: tuple[EarlierUse, ...] = (), *, wrong: bool, strict: Strictness = LENIENT
) -> CheckReport:
    ptx = folder / f"{int(wrong)}.ptx"
    entry = read_module(ptx.read_text("utf-8"), ptx.name, kernel).function(kernel)
    assert entry is not None
    buffers = [each.size == 128 for each in entry.params]
    contents = [TensorMap() if of_map else Pointer() for of_map in buffers]
    contents = [replace(each, earlier=use) for each, use in zip(contents, (*uses, *[None] * 3), strict=False)]
    launch = Launch(kernel, (4, 1, 1), (64, 1, 1), parameters=tuple(Parameter("", each) for each in contents))
    (folder / "launch.json").write_text(launch_json(launch), "utf-8")
    return check(find(str(ptx), launch=str(folder / "launch.json")).with_strictness(strict), {}, quick=True)


@pytest.mark.parametrize(("kernel", "uses", "words"), KERNELS)
def test_an_access_before_the_wait_is_found_and_one_after_it_is_not(
    folder: Path, kernel: str, uses: tuple[EarlierUse, ...], words: str
) -> None:
    right, wrong = (checked(folder, kernel, uses, wrong=each) for each in (False, True))
    assert (right.verdict, right.findings) == (Verdict.PROVED, ())
    assert wrong.verdict is (Verdict.REFUTED if words else Verdict.PROVED)
    for found in wrong.refutations[:1]:
        assert isinstance(found.finding, FaultReport)
        assert found.finding.kind is FaultKind.BEFORE_GRID_WAIT
        assert found.finding.line == f"kernels.cu:{marked(kernel)}"
        assert words in found.finding.claim
        assert found.basis is (
            Basis.CERTAIN if "an earlier kernel may write" in words or "may read" in words else Basis.POSSIBLE
        )


def test_what_is_loaded_before_the_wait_is_assumed_not_to_be_written(folder: Path) -> None:
    found = checked(folder, "weights_first", wrong=False)
    line = marked("weights_first") - 2
    assumed = [each.lines for each in found.scope.assuming if each.kind is Assumption.EARLIER_KERNELS]
    assert assumed == [(f"kernels.cu:{line}",)]
    strict = Strictness({Assumption.EARLIER_KERNELS})
    assert checked(folder, "weights_first", wrong=False, strict=strict).verdict is Verdict.UNKNOWN
    assert checked(folder, "weights_first", (NONE,), wrong=False, strict=strict).verdict is Verdict.PROVED


STORE = " st.global.u32 [%rd1], %r0;\n"
WAIT = " griddepcontrol.wait;\n"
LANE_0 = " and.b32 %r2, %r0, 31;\n setp.ne.u32 %p0, %r2, 0;\n"
OTHERS = "@%p0 bra others;\n{0} bra.uni meet;\nothers:\n{1}meet:\n"


@pytest.mark.parametrize(
    ("body", "faults", "assumed"),
    [
        (OTHERS.format(WAIT, "") + " bar.warp.sync -1;\n" + STORE, 0, 0),
        (OTHERS.format(WAIT, "") + STORE, 0, 1),  # if the lanes meet where the branch ends
        (OTHERS.format(WAIT, STORE), 1, 0),
        (OTHERS.format(STORE, WAIT), 1, 0),
        (OTHERS.format(WAIT + STORE, ""), 0, 0),
    ],
)
def test_lanes_come_after_a_wait_of_others_where_they_meet_them(body: str, faults: int, assumed: int) -> None:
    found = program_of(f" mov.u32 %r0, %tid.x;\n mov.u64 %rd1, 268435456;\n{LANE_0}{body}", 1)
    assert len(launch_refutations(found)) == faults
    assert sum(each.kind is Assumption.LANES for each in found.coverage.assumed) == assumed


#: Warp 0 waits and arrives, warp 1 waits for it and stores.
TOLD = (
    SET_UP.format(first=1, count=1)
    + f""" mov.u64 %rd1, 268435456;
 setp.lt.u32 %p1, %r0, 32;
 @!%p1 bra told;
{WAIT} setp.ne.u32 %p0, %r0, 0;
 @%p0 bra end;
 mbarrier.arrive.HOW.shared::cta.b64 _, [%r3];
 bra end;
told:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
 @!%p2 bra told;
{STORE}end:
"""
)


@pytest.mark.parametrize(("how", "verdict"), [("release.cta", Verdict.PROVED), ("relaxed.cta", Verdict.UNKNOWN)])
def test_a_relaxed_arrival_puts_nothing_after_a_wait_in_the_order_of_memory(how: str, verdict: Verdict) -> None:
    found = prove(program_of(TOLD.replace("HOW", how)))
    assert (found.verdict, found.how is How.OPEN_WAITS) == (verdict, verdict is Verdict.UNKNOWN)


def test_of_a_wait_that_may_not_happen_nothing_is_said() -> None:
    unknown = " mov.u64 %rd1, 268435456;\n ld.global.u32 %r9, [%rd1];\n setp.eq.u32 %p3, %r9, 0;\n"
    found = program_of(f"{unknown} @%p3 griddepcontrol.wait;\n{STORE}", 1).coverage
    assert found.dependent == ()
    assert NotJudgedKind.DEPENDENT_LAUNCH in {each.kind for each in found.not_judged}


def test_a_template_of_a_kernel_that_waits_asks_what_earlier_kernels_do(folder: Path) -> None:
    asked = [launch_template(folder / "0.ptx", kernel).text for kernel in ("with_wait", "without_wait")]
    assert [text.count('{"kind": "pointer", "earlier": "unknown"}') for text in asked] == [2, 0]


def test_it_is_kept_with_the_program() -> None:
    found = program_of(f" mov.u64 %rd1, 268435456;\n{STORE}{WAIT}", 1)
    assert loads(dumps(found)).coverage.dependent == found.coverage.dependent
