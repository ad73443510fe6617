"""cp.async arrivals without .noinc on a barrier that counts bytes: PTX and the hardware count them differently."""

import pytest

from pipesim import Engine, Protocol, Warp
from pipesim.answers.checking.state import looked_for
from pipesim.model.program import Program


def filled(*, noinc: bool, expects: bool) -> Program:
    """A stage that cp.async fills, and perhaps a bulk copy as well."""
    p = Protocol("filled")
    tiles, full = p.smem("tile", 2, 128), p.mbarriers("full", 1, count=33 if expects else 32)

    @p.role("load")
    def load(w: Warp) -> None:
        if expects:
            with w.elect_one():
                full[0].expect_bytes(128)
                w.tma_load(tiles[1], full[0], 0)
        w.async_write(Engine.CP_ASYNC, tiles[0], 0)
        full[0].cp_async_arrive(noinc=noinc)
        if not noinc:
            full[0].arrive()

    return p.flatten()


def test_where_bytes_are_counted_as_well_it_is_reported() -> None:
    (said,) = looked_for(filled(noinc=False, expects=True))
    assert said.role == "load"
    assert said.claim == (
        "load arrives on full by cp.async without .noinc, and full also counts bytes: PTX adds these arrivals to the "
        "pending count, H100 and H200 to the bytes"
    )


@pytest.mark.parametrize(("noinc", "expects"), [(True, True), (False, False), (True, False)])
def test_elsewhere_the_two_ways_to_count_agree(noinc: bool, expects: bool) -> None:
    assert looked_for(filled(noinc=noinc, expects=expects)) == ()
