"""Lines of a kernel's PTX with a mistake: what is offered, in the words of the line; one that hangs is read again."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipesim.answers.check import check as check_whole
from pipesim.answers.checking.counterexample import corrections_of
from pipesim.answers.kernel.changes import for_groups
from pipesim.answers.kernel.lines import KernelLines
from pipesim.model.finding import Deadlock, FaultReport, Verdict
from pipesim.prove.check import Check, check
from pipesim.prove.repair.correction import Correction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.ptx.launch.values import Launch
from pipesim.targets import Target, find
from tests.support.kernel_files import written
from tests.support.lanes import long_but, slow_but
from tests.support.small_ptx import SET_UP, text_of

KERNELS = Path(__file__).resolve().parents[1] / "ptx" / "kernels"
GEMM, SCALE, PIPELINED = "gemm_wgmma_ws-sm_90a", "scale_ws_s3-sm_90a", "scale_pipelined_s3-sm_90a"
TCGEN05 = "gemm_tcgen05-sm_100a"

Edit = Callable[[str], str]


def out(line: str) -> str:
    return f"// {line}"


def other(was: str, now: str) -> Edit:
    return lambda line: line.replace(was, now)


#: The mistake by name: the kernel, the text by which its lines are found and which of them they are, what is written.
#: Then what is offered.
HANGS: dict[str, tuple[str, str, slice, Edit, str]] = {
    "count": (GEMM, "mbarrier.init", slice(4, 8), other("], 1", "], 2"),
              "initialise empty with a count of 1 instead of 2 (kernel.ptx, lines 101, 108, 115 and 122)"),
    "bytes": (GEMM, "expect_tx", slice(0, 1), other("24576", "24592"),
              ("load expects 24,576 bytes on full instead of 24,592: as many as are copied"
               " (kernel.ptx, line 598)")),
    "threads": (GEMM, "bar.sync 	0, 128", slice(0, 1), other("128", "160"),
                "128 threads at __syncthreads() instead of 160 (kernel.ptx, line 392)"),
    "arrive": (SCALE, "mbarrier.arrive.shared", slice(0, 1), out,
               "each of compute and compute_2 arrives on empty after its last use of each stage of full"),
    "arrive of the last role": (SCALE, "mbarrier.arrive.shared", slice(2, 3), out,
               "store arrives on free whenever it has finished with a stage"),
    "arrive on the stage before": (GEMM, "mbarrier.arrive.shared", slice(0, 1), out,
               "each of mma_store, mma_store_2 and mma arrives on empty after its last use of each stage of full"),
    "commit of a stage": (TCGEN05, "tcgen05.commit", slice(1, 2), lambda line: line.partition("@")[0],
               "mma commits to empty whenever it has finished with a stage of full"),
    "parity of the first lap": (SCALE, "%r138, %r183;", slice(0, None), other("not.b32", "mov.b32"),
        "each of compute and compute_2 waits for free with parity 1 in the first lap, alternating in each later lap"),
    "copy on another barrier": (GEMM, "cp.async.bulk.tensor.2d.shared", slice(1, 2), other("[%r29]", "[%r27]"),
               "load completes its copy on full, not on empty"),
    "all lanes": (SCALE, "[%r42]", slice(0, None), lambda line: re.sub(r"@%p\d ", "", line),
        ("load: put the arrive on full inside elect_one(): all 32 lanes execute it, and what it copies there "
         "(kernel.ptx, lines 398, 407 and 412)")),
}  # fmt: skip
RUNS_ON: dict[str, tuple[str, str, slice, Edit, str]] = {
    "fence": (SCALE, "fence.proxy.async", slice(1, 2), out,
              ("each of compute and compute_2 executes fence.proxy.async after its writes, before it signals "
              "any other agent")),
    "fence of a gemm": (GEMM, "fence.proxy.async", slice(0, 1), out,
              ("each of mma_store, mma_store_2 and mma executes fence.proxy.async after its writes, before it signals "
               "any other agent")),
    "groups": (GEMM, "wgmma.wait_group", slice(0, 1), other("aligned 1", "aligned 2"),
               ("each of mma_store, mma_store_2 and mma leaves no more than 1 of its groups pending when it waits for "
                "them, instead of 2")),
    "commit": (SCALE, "cp.async.bulk.commit_group", slice(0, 1), out,
               "store executes cp.async.bulk.commit_group after its bulk stores, before it waits for them"),
    "fewer bytes": (SCALE, "expect_tx", slice(0, 1), other("8192", "4096"),
                    "load expects 8,192 bytes on full instead of 4,096: as many as are copied (kernel.ptx, line 398)"),
    "a wait for tensor memory": (TCGEN05, "tcgen05.wait::ld", slice(0, None), out,
        "each of store and compute executes tcgen05.wait::ld after its loads of tensor memory (kernel.ptx, line 271)"),
    "the last products": (GEMM, "wgmma.wait_group.sync.aligned 0", slice(0, None), out,
        "each of mma_store, mma_store_2 and mma waits for its wgmmas before the bar_sync (on_gluon.py:149)"),
    "an accumulator": (TCGEN05, "[%r54], %r55", slice(0, None), lambda _: "setp.eq.u32 complete, 0, 0;",
        ("mma waits for free, with parity 1 in the first lap, before each round of the transfer (on_gluon.py:208)"
        " | mma waits for free, with parity 1 in the first lap, before all the work that it signals on done")),
    "a meeting before the store": (GEMM, "bar.sync 	0, 128", slice(1, 2), out,
        "each of mma_store, mma_store_2 and mma executes __syncthreads() after the fence (on_gluon.py:153)"),
    "a wait for the stored bytes": (TCGEN05, "wait_group.read 	0", slice(0, 1), out,
        "each of store, store_2 and compute waits for its bulk stores before the bar_sync (on_gluon.py:224)"),
    "groups of a loop": (PIPELINED, "wait_group.read 	1", slice(0, 1), other("read 	1", "read 	2"),
        ("each of load_store, load_store_2 and compute leaves no more than 1 of its groups pending when it waits for "
         "them, instead of 2")),
}  # fmt: skip


def with_edit(folder: Path, kernel: str, text: str, which: slice, edit: Edit) -> Target:
    """The kernel with the edit made in those of the lines with the text."""
    lines = (KERNELS / f"{kernel}.ptx").read_text().split("\n")
    for number in [n for n, line in enumerate(lines) if text in line][which]:
        assert edit(lines[number]) != lines[number]
        lines[number] = edit(lines[number])
    (folder / "kernel.ptx").write_text("\n".join(lines))
    shutil.copy(KERNELS / f"{kernel}.json", folder / "kernel.json")
    return find(str(folder / "kernel.ptx"))


def offered(target: Target) -> tuple[Check, list[Correction]]:
    program = target.build()
    found = check(program)
    every = [
        corrections_of(program, refuted, program, lambda done, of: None, target.editable)
        for refuted in found.refutations
    ]
    return found, list(dict.fromkeys(c for each in every for c in each))


#: Those for which little has to be read again.
FEW = {"count", "bytes", "threads", "fence of a gemm", "fewer bytes"}


@pytest.mark.parametrize("name", long_but(FEW, slow_but({"count"}, HANGS)))
def test_a_line_of_a_kernel_that_hangs_is_offered(name: str, tmp_path: Path) -> None:
    *mistake, meant = HANGS[name]
    target = with_edit(tmp_path, *mistake)  # type: ignore[arg-type]
    assert target.build().coverage.blocked
    found, given = offered(target)
    assert found.verdict is Verdict.REFUTED
    assert meant in [each.said for each in given]
    assert len(given) == 1  # with a parity that is wrong in the first lap, the ring may as well be primed by an arrive
    if "kernel.ptx" in meant:
        assert re.fullmatch(r"on_gluon\.py:\d+", given[0].line)


@pytest.mark.parametrize("name", long_but(FEW, slow_but({"fence of a gemm"}, RUNS_ON)))
def test_a_change_of_a_kernel_that_was_followed_to_its_end_is_offered(name: str, tmp_path: Path) -> None:
    *mistake, meant = RUNS_ON[name]
    target = with_edit(tmp_path, *mistake)  # type: ignore[arg-type]
    assert not target.build().coverage.blocked
    assert " | ".join(each.said for each in offered(target)[1]) == meant


@pytest.mark.slow
def test_the_kernels_are_right_as_they_are() -> None:
    for kernel in (GEMM, SCALE):
        target = find(str(KERNELS / f"{kernel}.ptx"))
        assert target.editable is not None
        assert target.editable.read().program == target.program


@pytest.mark.long
def test_what_the_hang_of_a_kernel_hides(tmp_path: Path) -> None:
    """It is read up to the hang: the missing fence shows with the bytes that the copies need."""
    hangs, runs_on = HANGS["bytes"], RUNS_ON["fence of a gemm"]
    with_edit(tmp_path, *hangs[:4])
    text = (tmp_path / "kernel.ptx").read_text().split("\n")
    for number in [n for n, line in enumerate(text) if runs_on[1] in line][runs_on[2]]:
        text[number] = runs_on[3](text[number])
    (tmp_path / "kernel.ptx").write_text("\n".join(text))
    hang, hidden = check_whole(find(str(tmp_path / "kernel.ptx")), {}).refutations
    assert isinstance(hang.finding, Deadlock)
    assert (hang.corrections, isinstance(hidden.finding, FaultReport)) == ((), True)
    assert hidden.after is not None
    assert re.sub(r"lines? [\d, and]+", "", hidden.after.said) == re.sub(r"lines? [\d, and]+", "", hangs[4])
    assert runs_on[4] in [each.said for each in hidden.corrections]


#: One mbarrier counts the bytes of a copy, then, with another count, arrivals: {} keeps warps that still wait apart.
USED_TWICE = """ @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 32, [%r3];
issued:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
{}@%p0 bra renewed;
 mbarrier.inval.shared::cta.b64 [%r3];
 mbarrier.init.shared::cta.b64 [%r3], 64;
renewed:
 bar.sync 0;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
"""


@pytest.mark.parametrize("meet", [" bar.sync 0;\n", ""], ids=["right", "wrong"])
def test_a_change_that_makes_another_hang_shows_nothing_hidden(meet: str, tmp_path: Path) -> None:
    text = text_of(SET_UP.format(first=1, count=1) + USED_TWICE.format(meet))
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1))
    found = check_whole(find(written(tmp_path / "kernel.ptx", text, launch)), {})
    assert found.verdict is (Verdict.PROVED if meet else Verdict.REFUTED)
    assert not any(each.after for each in found.refutations)


@pytest.mark.slow
def test_a_kernel_that_hangs_is_followed_past_the_hang(tmp_path: Path) -> None:
    """It does the same then as the right one, but for what is wrong; a right one is not followed otherwise."""
    wrong = with_edit(tmp_path, *HANGS["bytes"][:4]).editable
    right = find(str(KERNELS / f"{GEMM}.ptx")).editable
    assert wrong is not None
    assert right is not None
    as_it_is = right.read().program
    assert right.read(past_hangs=True).program == as_it_is
    past = wrong.read(past_hangs=True).program
    assert (wrong.read().program.coverage.blocked != (), past.coverage.blocked) == (True, ())
    assert [agent.role for agent in past.agents] == [agent.role for agent in as_it_is.agents]
    assert [len(code) for code in past.code] == [len(code) for code in as_it_is.code]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "lanes"), [(64, True), (3, False)])
def test_a_count_of_lanes_is_corrected_in_two_ways(count: int, lanes: bool, tmp_path: Path) -> None:
    """Where one lane of each warp arrives and all are counted, all may be meant to; not with a count of warps."""
    examples = KERNELS.parents[2] / "docs" / "examples"
    for file in ("row_max.cu", "row_max.json"):
        shutil.copy(examples / file, tmp_path / file)
    text = (examples / "row_max.ptx").read_text()
    (tmp_path / "row_max.ptx").write_text(text.replace("%r54, 2;", f"%r54, {count};"))
    _, given = offered(find(str(tmp_path / "row_max.ptx"), sets=["n=2048"]))
    said = [f"initialise s.empty with a count of 2 instead of {count} (row_max.ptx, lines 55, 65 and 75)"]
    other = "compute: put the arrive on s.empty outside elect_one(): each of the 32 lanes is counted"
    assert [each.said for each in given] == [*said, *([other] if lanes else [])]
    assert {each.line for each in given} == {"row_max.cu:38", *(["row_max.cu:60"] if lanes else [])}


@pytest.mark.slow
def test_a_barrier_with_a_number_is_not_taken_for_an_engine() -> None:
    kernel = find(str(KERNELS / f"{SCALE}.ptx")).editable
    assert kernel is not None
    lines = KernelLines(kernel, kernel.read())
    for kind in set(RepairKind) - {RepairKind.DEPTH, RepairKind.GROUP_WAIT}:
        assert list(for_groups(lines, lines.program, Repair(kind, "compute", "14", 128))) == []
