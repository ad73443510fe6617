"""Addresses of accesses: shared, generic, and what no CTA of the cluster has."""

import pytest

from tests.support.small_ptx import program_of, said

ADDRESSES = """ mov.u32 %r0, %tid.x;
 and.b32 %r2, %r0, 31;
 mov.u32 %r4, tile;
 shl.b32 %r5, %r2, 4;
 add.u32 %r4, %r4, %r5;
 cvt.u64.u32 %rd0, %r4;
 cvta.shared.u64 %rd1, %rd0;
"""
STORES = {
    "st": " st.shared.u32 [{}], 7;\n",
    "stmatrix": " stmatrix.sync.aligned.x4.m8n8.shared.b16 [{}], {{%r0, %r0, %r0, %r0}};\n",
}


@pytest.mark.parametrize("name", ["st", "stmatrix"])
def test_a_generic_address_given_to_shared_means_its_low_bits(name: str) -> None:
    """Public kernels do it in inline assembly; the store is the same as at the shared address, and it is said."""
    plain = program_of(ADDRESSES + STORES[name].format("%rd0"), warps=1)
    generic = program_of(ADDRESSES + STORES[name].format("%rd1"), warps=1)
    assert said(generic, 0) == said(plain, 0)
    assert any("WRITE" in op for op in said(generic, 0))
    assert [each.what for each in generic.coverage.assumed if "generic" in each.what] == [
        "of a generic address given to .shared the low 32 bits are taken, at small.ptx:18"
    ]
    assert not any("generic" in each.what for each in plain.coverage.assumed)


@pytest.mark.parametrize("name", ["st", "stmatrix"])
def test_an_access_outside_of_the_cluster_is_illegal_or_left_out(name: str) -> None:
    """In a CTA that the cluster does not have, and below the variables of the first."""
    far, below = (
        program_of(ADDRESSES + f" add.u64 %rd0, %rd0, {by};\n" + STORES[name].format("%rd0"), warps=1).coverage
        for by in ("0x5000000", "-1024")
    )
    assert [each.what for each in far.forbidden] == ["the address is in CTA 5 of a cluster of 1"]
    (line,) = below.left_out
    assert "an address that is not known, or outside of the cluster's shared memory" in line
