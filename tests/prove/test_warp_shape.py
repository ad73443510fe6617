"""Warp groups: which warps execute wgmma and setmaxnreg together, and how many registers a CTA has. Wrong and right."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from pipesim import Engine, Protocol, ProtocolError, Warp
from pipesim.findings.catalog import report_fault
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import register_bound, warp_shape_faults
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.random_programs.warp_shapes import random_warp_shapes, shape_is_right
from tests.support.small_ptx import SET_UP, text_of

Pairs = tuple[tuple[int, int], ...]
Products = Callable[[Warp, int], int]  #: how many wgmmas a warp of math executes for a tile


def ring(
    math: int = 8,
    align: int = 0,
    products: Products = lambda *_: 1,
    *,
    load_first: bool = False,
    requests: tuple[int, int] = (0, 0),
    registers: int = 0,
    deep: Products = lambda *_: 0,
) -> Program:
    """A load warp and warps that multiply, in the order in which they are declared."""
    p = Protocol("ring", registers=registers)
    tile = p.smem("tile", 2, 1024)
    full, empty = p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, math)

    def load(w: Warp) -> None:
        if requests[0]:
            w.setmaxnreg(requests[0])
        for i in range(4):
            empty[i % 2].wait((i // 2 + 1) & 1)
            with w.elect_one():
                full[i % 2].expect_bytes(1024)
                w.tma_load(tile[i % 2], full[i % 2], i)

    def multiply(w: Warp) -> None:
        if requests[1]:
            w.setmaxnreg(requests[1])
        for i in range(4):
            full[i % 2].wait(i // 2 & 1)
            for _ in range(products(w, i)):
                w.mma(Engine.WGMMA, reads=[(tile[i % 2], i)], cycles=8)  # product
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, deep(w, i))
            with w.elect_one():
                empty[i % 2].arrive()

    roles = [("load", 1, 0, load), ("math", math, align, multiply)]
    for name, warps, at, body in roles if load_first else roles[::-1]:
        p.role(name, warps=warps, align=at)(body)
    return p.flatten()


@dataclass(frozen=True)
class Twins:
    """A wrong and a right program: what is found, at a line of this file with ``line``, and words of it."""

    wrong: Callable[[], Program]
    right: Callable[[], Program]
    line: str
    said: str
    kind: FaultKind = FaultKind.WARP_SHAPE
    correction: str = "let all four warps of the group execute the same instruction equally often"


def requests(a: int, b: int) -> Program:
    """A group of four warps, of which two ask once more."""
    p = Protocol("requests", registers=40)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        w.setmaxnreg(a)
        if w.index < b:
            w.setmaxnreg(a - 8)  # again

    return p.flatten()


DESCRIBED = {
    "half a warp group": Twins(
        lambda: ring(4, products=lambda w, _: int(w.index < 2)), lambda: ring(4), "# product",
        "for the warp group of warps 0 to 3, of which warp 2, math/2 (test_warp_shape.py:",
    ),
    "unevenly often": Twins(
        lambda: ring(8, products=lambda w, i: 1 + (w.index == 7 and i == 3)), lambda: ring(8, products=lambda *_: 2),
        "# product", "of which warp 4, math/4",
    ),
    "two warps and no more": Twins(
        lambda: ring(2), ring, "# product", "for the warp group of warps 0 to 3, of which the CTA has 3",
    ),
    "three warps": Twins(lambda: ring(3), ring, "# product", "of which warp 3, load, does not execute this one"),
    "wrong order of roles": Twins(
        lambda: ring(8, 1, load_first=True), lambda: ring(8, 1), "# product",
        "of warps 0 to 3, of which warp 0, load, does not execute this one",
        correction="let the role math begin at a warp that is a multiple of 4: align=4",
    ),
    "misaligned": Twins(
        lambda: ring(8, 3, load_first=True), lambda: ring(8, 4, load_first=True), "# product",
        "of warps 0 to 3, of which the CTA has 2",
        correction="let the role math begin at a warp that is a multiple of 4: align=4",
    ),
    "another wait": Twins(
        lambda: ring(4, deep=lambda w, i: int(w.index == 1 and i == 2)), ring, "w.wait_group(Engine.WGMMA, deep(w, i))",
        "executes another one",
    ),
    "not all ask for registers": Twins(
        lambda: requests(40, 2), lambda: requests(40, 4), "# again", "setmaxnreg is for the warp group",
    ),
    "too many registers": Twins(
        lambda: ring(12, requests=(24, 240)), lambda: ring(12, requests=(24, 160)), "w.setmaxnreg(requests[1])",
        ": its warps ask for 92,928, an SM has 65,536", FaultKind.TOO_MANY_REGISTERS,
        "let some of its warps ask for fewer",
    ),
    "launched with too many registers": Twins(
        lambda: ring(12, registers=168), lambda: ring(12, registers=128), "full, empty = p.mbarriers(",
        ": it is launched with 69,888, an SM has 65,536", FaultKind.TOO_MANY_REGISTERS,
        "launch it with at most 128 registers a thread",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_wrong_twin_is_refuted_at_its_line_and_the_right_one_proved(name: str) -> None:
    twins = DESCRIBED[name]
    assert check(twins.right()).verdict is Verdict.PROVED
    program = twins.wrong()
    found = check(program)
    assert (found.verdict, found.refutations[0].kind) == (Verdict.REFUTED, twins.kind)
    assert found.refutations[0].fault is not None
    said = report_fault(program, found.refutations[0].fault)
    assert twins.said in said.claim
    assert twins.line in lines_of_this_file()[int(said.line.rpartition(":")[2]) - 1]
    correction, _, like = said.correction.replace(" than ", ", like ").partition(", like ")
    assert correction == twins.correction
    assert like.endswith(f"({said.line.rpartition('/')[2]})") or not like


@cache
def lines_of_this_file() -> list[str]:
    return Path(__file__).read_text("utf-8").splitlines()


def numbers(program: Program, role: str) -> list[int]:
    return [agent.warp for agent in program.agents if agent.role == role]


def test_a_role_of_warp_groups_begins_at_a_multiple_of_four() -> None:
    """The numbers before it stay unused, as in kernels whose load warp is alone in its group."""
    program = ring(load_first=True)
    assert (numbers(program, "load"), numbers(program, "math")) == ([0], list(range(4, 12)))
    assert check(program).verdict is Verdict.PROVED
    assert numbers(ring(3, load_first=True), "math") == [1, 2, 3]
    assert numbers(ring(8, 1, load_first=True), "math")[0] == 1
    with pytest.raises(ProtocolError, match="a multiple of -4 warps"):
        ring(align=-4)


@pytest.mark.slow
def test_random_warp_shapes_are_judged_as_they_are_made() -> None:
    programs = [random_warp_shapes(seed) for seed in range(400)]
    right = [shape_is_right(program) for program in programs]
    assert 100 < sum(right) < 300
    assert [not warp_shape_faults(program) for program in programs] == right
    assert {check(each).verdict for each, fine in zip(programs[:60], right[:60], strict=True) if fine} == {
        Verdict.PROVED
    }


def test_registers_of_a_thread_are_bounded_by_the_warps_and_the_ctas_of_an_sm() -> None:
    assert [register_bound(12), register_bound(9), register_bound(12, 2), register_bound(4)] == [168, 168, 80, 256]


#: A wgmma of whole warp groups, of half of one, and by another number of each warp.
PRODUCT = (
    " wgmma.fence.sync.aligned;\n wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %rd1, %rd1,"
    " 1, 1, 1, 0, 0;\n wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n"
)
SET = SET_UP.format(first=1, count=1) + " .reg .f32 %f<9>;\n mov.u64 %rd1, 0;\n"
DIRECTIVES = {
    "": Verdict.PROVED,
    ".maxntid 384,1,1 .minnctapersm 1": Verdict.PROVED,
    ".maxntid 384,1,1 .minnctapersm 2": Verdict.REFUTED,
    ".maxntid 512,1,1": Verdict.REFUTED,
    ".maxnreg 168": Verdict.PROVED,
    ".maxnreg 152": Verdict.REFUTED,
}


def kernel(body: str, warps: int, directives: str = "", registers: int = 0) -> Program:
    text = text_of(SET + body).replace("\n{\n", f"\n{directives}\n{{\n", 1)
    launch = Launch("kernel", (1, 1, 1), (32 * warps, 1, 1), (1, 1, 1), registers=registers)
    return extract(read_module(text, "shape.ptx"), launch).program


@pytest.mark.parametrize(
    ("body", "warps", "right"),
    [
        (PRODUCT, 4, True),
        (PRODUCT, 8, True),
        (PRODUCT, 3, False),
        (PRODUCT, 6, False),
        (f" setp.gt.u32 %p4, %r1, 1;\n @%p4 bra end;\n{PRODUCT}end:\n", 4, False),
        (f" setp.gt.u32 %p4, %r1, 3;\n @%p4 bra end;\n{PRODUCT}end:\n", 5, True),
        (f" setp.eq.u32 %p4, %r1, 0;\n @%p4 bra end;\n{PRODUCT}end:\n", 5, False),
        (f"{PRODUCT} setp.ne.u32 %p4, %r1, 3;\n @%p4 bra end;\n{PRODUCT}end:\n", 4, False),
        (f" setp.gt.u32 %p4, %r2, 15;\n @%p4 bra end;\n{PRODUCT}end:\n", 4, False),
        (f" setp.gt.u32 %p4, %r2, 15;\n @%p4 bra end;\n st.shared.u32 [tile], %r2;\nend:\n{PRODUCT}", 4, True),
        (" setp.gt.u32 %p4, %r2, 15;\n @%p4 bra end;\n setmaxnreg.dec.sync.aligned.u32 40;\nend:\n", 4, False),
        (" setp.gt.u32 %p4, %r2, 15;\n @%p4 bra no;\n bar.sync 1;\n bra end;\nno:\n bar.sync 1;\nend:\n", 4, False),
        (" setp.gt.u32 %p4, %r2, 15;\n @%p4 setmaxnreg.dec.sync.aligned.u32 40;\n", 4, False),
        (" setp.eq.u32 %p4, %r1, 1;\n @%p4 setmaxnreg.dec.sync.aligned.u32 40;\n", 4, False),
        (" setp.lt.u32 %p4, %r1, 4;\n @%p4 setmaxnreg.dec.sync.aligned.u32 40;\n", 4, True),
    ],
)
def test_kernels_execute_as_whole_warp_groups(body: str, warps: int, right: bool) -> None:
    found = check(kernel(body, warps))
    assert found.verdict is (Verdict.PROVED if right else Verdict.REFUTED)
    assert right or found.refutations[0].kind is FaultKind.WARP_SHAPE


@pytest.mark.parametrize("directives", DIRECTIVES)
def test_registers_of_a_kernel_are_those_of_its_launch_or_bounded_by_its_directives(directives: str) -> None:
    body = (
        " setp.lt.u32 %p4, %r1, 4;\n @%p4 setmaxnreg.dec.sync.aligned.u32 24;\n"
        " @!%p4 setmaxnreg.inc.sync.aligned.u32 240;\n"
    )
    assert check(kernel(body, 12, directives)).verdict is DIRECTIVES[directives]
    assert check(kernel(body, 12, directives, registers=168)).verdict is Verdict.PROVED
    assert check(kernel(body, 12, directives, registers=160)).verdict is Verdict.REFUTED
    too_many = check(kernel("", 12, directives, registers=176))
    assert [each.kind for each in too_many.refutations] == [FaultKind.TOO_MANY_REGISTERS]


@pytest.mark.parametrize(
    ("parts", "right"),
    [
        (((0, 512), (512, 512)), True),
        (((0, 128), (512, 128)), True),
        (((0, 1024), (0, 1024)), False),
        (((0, 128), (1024, 128)), False),
    ],
)
def test_an_operand_in_which_several_items_lie_is_read_by_one_product(parts: Pairs, right: bool) -> None:
    """As kernels are read: no ENGINE_WORK; warp 1 reads the first tile in parts, since others have written into it."""
    program = ring(4)
    accesses, codes, lines = list(program.accesses), [], []
    for agent, (code, said) in enumerate(zip(program.code, program.lines, strict=True)):
        pairs = [pair for pair in zip(code, said, strict=True) if pair[0][0] != Op.ENGINE_WORK]
        first = next((n for n, (op, _) in enumerate(pairs) if op[0] == Op.TRANSFER_READ), -1)
        if agent == 1:
            op, line = pairs[first]
            whole = accesses[operand(op, "access")]
            new = [replace(whole, offset=whole.offset + at, nbytes=nbytes) for at, nbytes in parts]
            accesses += (each for each in new if each not in accesses)
            numbers = [accesses.index(each) for each in new]
            split = [with_operand(with_operand(op, "access", n), "bytes", accesses[n].nbytes) for n in numbers]
            pairs[first : first + 1] = [(each, line) for each in split]
        codes.append(tuple(op for op, _ in pairs))
        lines.append(tuple(line for _, line in pairs))
    read = replace(program, accesses=tuple(accesses), code=tuple(codes), lines=tuple(lines))
    assert (not warp_shape_faults(read)) == right
