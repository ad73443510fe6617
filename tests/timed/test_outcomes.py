"""How a simulation ends: finished, in a deadlock, by a trap, or at its budget; and the sizes at the edge."""

from pipesim.model.ending import Ending
from pipesim.timed.engine import simulate
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import toy


def test_a_deadlock_ends_at_its_last_landing() -> None:
    result = simulate(ring(stages=2, tiles=2, expect=80), toy())  # 16 bytes more than come
    assert result.outcome is Ending.DEADLOCK
    assert result.state.flights == ()
    last_copy = max(result.trace.events.cycle[result.trace.events.agent == 0])
    assert result.cycles == last_copy + 54
    assert result.deadlock is not None
    assert [b.bytes_missing for b in result.deadlock.blocked] == [16]
    assert result.deadlock.finished == ("load",)
