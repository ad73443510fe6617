"""One tiny ring, worked out by hand: two tiles through one stage, every event, on a profile of small round numbers."""

from pipesim.model.ending import Ending
from pipesim.timed.engine import simulate
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import lines, toy

EVENTS = """
13 load wait_enter empty[0] 1 #0 =0
18 load wait_return empty[0] 1 #0 =0
18 load expect full[0] -1 #0 =64
22 load copy full[0] -1 #0 =64
30 load wait_enter empty[0] 0 #1 =0
119 load wait_return empty[0] 0 #1 =0
119 load expect full[0] -1 #1 =64
123 load copy full[0] -1 #1 =64
13 use wait_enter full[0] 0 #0 =0
79 use wait_return full[0] 0 #0 =0
81 use work_begin [0] -1 #0 =0
112 use work_end [0] -1 #0 =0
112 use arrive empty[0] -1 #0 =1
121 use wait_enter full[0] 1 #1 =0
180 use wait_return full[0] 1 #1 =0
182 use work_begin [0] -1 #1 =0
213 use work_end [0] -1 #1 =0
213 use arrive empty[0] -1 #1 =1
"""
# 3 operations of init and fence, 10 of the CTA barrier: 13. A wait that passes: 5. expect: 4. copy: 6. loop: 2. A copy
# of 64 bytes: 50 + 4 from its issue, then 3 to wake the consumer. Read: 1 + 1. Work: 30 + 1. An arrive: 7 for its
# agent, 2 until it is seen (114), and the producer returns 5 later.


def test_every_event() -> None:
    program = ring(stages=1, tiles=2, work=30)
    result = simulate(program, toy())
    assert lines(result.trace) == EVENTS.split("\n")[1:-1]
    assert result.outcome is Ending.FINISHED
    assert (result.cycles, result.ends) == (220, (129, 220))
    assert (result.deadlock, result.faults) == (None, ())
    assert result.trace.events.time_ps.tolist() == (1000 * result.trace.events.cycle).tolist()
    assert not result.trace.events.error_ps.any()
    assert (result.trace.events.globaltimer_ns == -1).all()
