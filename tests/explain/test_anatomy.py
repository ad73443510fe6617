"""What a program consists of, read off its operations."""

from pipesim.explain.anatomy.read import anatomy
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong


def test_who_waits_a_lap_after_another_does_not_pass_at_once() -> None:
    """Ping-pong: with as many subtiles as stages, the second group's first wait for C is for the second phase."""
    found = anatomy(cutlass_sm90_pingpong(residual=1).flatten())
    waits = {(g.name, w.role): w.first_free for g in found.groups for w in g.waits}
    assert [waits["epi_load.full", role] for role in ("consumer0", "consumer1")] == [False, False]
    assert waits["epi_load.empty", "epilogue_load"]
    assert waits["math_wg_order.group0", "consumer0"]
    assert not waits["math_wg_order.group1", "consumer1"]
