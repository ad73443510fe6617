"""Which columns of tensor memory a product of ``tcgen05`` writes (PTX ISA, "Data Path Layout")."""

import pytest

from pipesim.model.ops import Op, Space, operand
from pipesim.model.program import Program
from tests.support.small_ptx import SET_UP, program_of


def descriptor(rows: int, columns: int) -> int:
    """The part of an instruction descriptor that says the shape."""
    return columns >> 3 << 17 | rows >> 4 << 24


def products(form: str, rows: int, columns: int, apart: int) -> Program:
    """Two products into columns that begin so far apart, and nothing in between."""
    return program_of(
        f""" mov.u32 %r4, {descriptor(rows, columns)};
 mov.u64 %rd0, 0;
 setp.eq.u32 %p1, 0, 0;
 mov.u32 %r5, 0;
 mov.u32 %r6, {apart};
 {form} [%r5], %rd0, %rd0, %r4, %p1;
 {form} [%r6], %rd0, %rd0, %r4, %p1;
""",
        warps=1,
    )


def overlap(program: Program) -> bool:
    """Whether a byte is written by both."""
    ranges = []
    for op in program.code[0]:
        if op[0] == Op.TRANSFER_WRITE:
            access = program.accesses[operand(op, "access")]
            assert access.space is Space.TENSOR
            ranges.append((access.offset, access.offset + access.nbytes))
    half = len(ranges) // 2
    return any(a < d and c < b for a, b in ranges[:half] for c, d in ranges[half:])


@pytest.mark.parametrize(
    ("form", "rows", "columns", "wide"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16", 128, 64, 64),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 128, 64, 64),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 64, 128, 64),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 32, 256, 64),
    ],
)
def test_a_product_is_as_wide_as_its_rows_leave_it(form: str, rows: int, columns: int, wide: int) -> None:
    assert not overlap(products(form, rows, columns, wide))
    assert overlap(products(form, rows, columns, wide - 1))


def test_a_commit_is_of_what_its_own_lane_has_issued() -> None:
    """PTX ISA, "tcgen05.commit": it tracks the operations of the executing thread."""
    text = (
        SET_UP.format(first=1, count=1)
        + """ setp.eq.u32 %p4, %r2, {lane};
 mov.u32 %r9, 0;
 mov.u64 %rd10, 0;
 @!%p0 tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd10, %rd10, %r9, %p4;
 @%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
"""
    )
    said = [program_of(text.format(lane=lane), 1).coverage.undefined for lane in (0, 1)]
    assert [any("another lane has issued" in each for each in one) for one in said] == [False, True]
