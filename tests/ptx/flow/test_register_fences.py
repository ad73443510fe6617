"""Where ``wgmma.fence`` is asked for, and where it is not (PTX ISA, "wgmma.fence")."""

import pytest

from pipesim.findings.catalog import report_fault
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, program_of, text_of

FENCE = " wgmma.fence.sync.aligned;\n"
DONE = " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n"
ZERO = (
    " mov.u64 %rd1, 64;\n mov.u32 %r8, 3;\n mov.u32 %r30, 0;\n mov.u32 %r31, 0;\n mov.u32 %r32, 0;\n mov.u32 %r33, 0;\n"
)
USE = " add.u32 %r9, %r30, 1;\n"


def product(shape: str = "m64n8k16", a: str = "%rd1", first: int = 30) -> str:
    registers = ", ".join(f"%r{first + n}" for n in range(4))
    return f" wgmma.mma_async.sync.aligned.{shape}.f32.f16.f16 {{{registers}}}, {a}, %rd1, 1, 1, 1, 0, 0;\n"


P = product()
FRAGMENTS = "{%r10, %r11, %r12, %r13}"
LOOP = f"again:\n{P}{DONE} sub.u32 %r8, %r8, 1;\n setp.ne.u32 %p5, %r8, 0;\n @%p5 bra again;\n"
RESULT = FRAGMENTS.replace("%r1", "%r3")
RIGHT = {
    "several of one shape": FENCE + P + P + DONE + P + DONE,
    "in a loop, with one before it": FENCE + LOOP,
    "read after the loop": FENCE + LOOP + USE,
    "passed on by moves": f"{FENCE}{P}{DONE} mov.u32 %r40, %r30;\n mov.u32 %r30, %r40;\n{P}{DONE}",
    "others are accessed": f"{FENCE}{P} mov.u32 %r50, 0;\n add.u32 %r50, %r50, 1;\n{P}{DONE}",
    "read and fenced": FENCE + P + DONE + USE + FENCE + P + DONE,
    "fragments loaded before": f" mov.u32 %r10, 0;\n{FENCE}{product(a=FRAGMENTS)}{DONE}",
}
#: The kernel and words of the finding: the product that it names ends in ``// here``.
HERE = P.replace("\n", " // here\n")
WRONG = {
    "none at all": (f"{HERE}{P}{DONE}", "no fence at all"),
    "on one of two ways": (
        f" setp.eq.u32 %p5, %r1, 9;\n @%p5 bra over;\n bra there;\nover:\n{FENCE}there:\n{HERE}{DONE}",
        "no fence at all",
    ),
    "written after it": (f"{FENCE} mov.u32 %r31, 0;\n{HERE}{DONE}", "an access to %r31"),
    "read before the next": (f"{FENCE}{P}{DONE}{USE}{HERE}{DONE}", "an access to %r30"),
    "read in the loop": (
        FENCE + LOOP.replace(P, HERE).replace(" sub.u32", f"{USE} sub.u32"),
        "an access to %r30",
    ),
    "another shape": (f"{FENCE}{P}{HERE.replace('n8k16', 'n8k8')}{DONE}", "an access to %r3"),
    "a result as fragments": (f"{FENCE}{P}{product(a=RESULT, first=40)[:-1]} // here\n{DONE}", "%r3"),
    "fragments loaded after": (f"{FENCE} add.u32 %r10, %r9, 1;\n{product(a=FRAGMENTS)[:-1]} // here\n{DONE}", "%r10"),
    "moved from what was written": (f"{FENCE} add.u32 %r40, %r9, 1;\n mov.u32 %r30, %r40;\n{HERE}{DONE}", "%r30"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_has_its_fences_is_proved(name: str) -> None:
    assert check(program_of(SET_UP.format(first=1, count=1) + ZERO + RIGHT[name], 4)).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_a_missing_fence_is_found_at_its_product(name: str) -> None:
    body, said = WRONG[name]
    text = SET_UP.format(first=1, count=1) + ZERO + body
    program = program_of(text, 4)
    (found,) = check(program).refutations
    assert found.kind is FaultKind.WGMMA_FENCE
    assert found.fault is not None
    fault = report_fault(program, found.fault)
    assert said in fault.claim
    assert text_of(text).splitlines()[int(fault.line.rpartition(":")[2]) - 1].endswith("// here")


def test_a_way_that_no_warp_takes_needs_none() -> None:
    """The reader has followed the branch: the product is reached with the fence only."""
    body = f" setp.eq.u32 %p5, %r8, 9;\n @%p5 bra there;\n{FENCE} bra over;\nthere:\n bar.sync 1;\nover:\n{P}{DONE}"
    program = program_of(SET_UP.format(first=1, count=1) + ZERO + body, 4)
    assert not program.coverage.forbidden


@pytest.mark.parametrize(("written", "correction"), [(11, "name the registers"), (13, "execute wgmma.fence")])
def test_an_access_that_the_compiler_has_moved_past_the_fence_is_named(written: int, correction: str) -> None:
    """The source has the fence at line 12: an access of line 11 has been before it."""
    access = f" .loc 1 {written} 1\n mov.u32 %r31, 1;\n"
    text = SET_UP.format(first=1, count=1) + ZERO + " .loc 1 12 1\n" + FENCE + access + " .loc 1 14 1\n" + P + DONE
    module = read_module(text_of(text) + '.file 1 "k.cu"\n', "small.ptx")
    program = extract(module, Launch("kernel", (1, 1, 1), (128, 1, 1))).program
    (found,) = program.coverage.forbidden
    assert found.kind is FaultKind.WGMMA_FENCE
    assert found.correction.startswith(correction)
    assert ("which the compiler has moved past the fence at k.cu:12" in found.what) == (written == 11)


def test_several_products_without_a_fence_are_one_finding() -> None:
    body = FENCE + 2 * (" mov.u32 %r31, 1;\n" + P) + DONE
    (found,) = program_of(SET_UP.format(first=1, count=1) + ZERO + body, 4).coverage.forbidden
    assert "; nor before 1 more, at small.ptx:" in found.what
