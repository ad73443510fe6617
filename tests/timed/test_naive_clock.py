"""The engine's clock against a few lines of arithmetic that know nothing of events: a recurrence over tiles."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.model.ending import Ending
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import toy

SMALL = st.integers(0, 40)
PRICES = st.fixed_dictionaries({
    "wait_issue": SMALL, "wait_wake_up": SMALL, "wait_retry": SMALL, "wait_poll": st.integers(1, 60),
    "arrive_issue": SMALL, "arrive_latency": SMALL, "expect_issue": SMALL, "copy_issue": SMALL,
    "copy_latency": st.integers(0, 300), "copy_cold": st.integers(0, 100),
    "copy_bytes_per_kcycle": st.integers(500, 20_000), "copy_device_bytes_per_kcycle": st.integers(500, 20_000),
    "read_issue": SMALL, "read_bytes_per_kcycle": st.integers(2_000, 64_000), "work_issue": SMALL,
    "loop_issue": SMALL, "sync_latency": SMALL, "other_issue": st.integers(0, 5), "record_issue": st.integers(0, 9),
})  # fmt: skip
RINGS = st.fixed_dictionaries({
    "stages": st.integers(1, 5), "tiles": st.integers(0, 12), "nbytes": st.sampled_from([16, 64, 1024]),
    "warps": st.integers(1, 3), "work": st.integers(0, 200),
})  # fmt: skip


@dataclass
class Agent:
    """An agent's own clock and the times of its events."""

    now: int
    record: int
    events: list[int] = field(default_factory=list)

    def stamp(self, *, costs: bool = True) -> None:
        self.events.append(self.now)
        self.now += self.record if costs else 0


def up(nbytes: int, per_kcycle: int) -> int:
    return -(-1000 * nbytes // per_kcycle)


def naive(p: Profile, *, stages: int, tiles: int, nbytes: int, warps: int, work: int, traced: bool) -> list[list[int]]:
    """The event times of the producer and of each consumer."""
    record = p["record.issue"] if traced else 0
    start = p["other.issue"] * (2 * stages + 1) + p["sync.latency"]
    producer = Agent(start, record)
    consumers = [Agent(start, record) for _ in range(warps)]
    engine_free = 0
    freed: list[int] = []
    for tile in range(tiles):
        # the producer: an arrive is noticed by a try, the first at once, the second after retry, then every poll
        producer.stamp()
        seen = freed[tile - stages] if tile >= stages else 0
        if seen > producer.now:
            producer.now += p["wait.retry"]
            while producer.now < seen:
                producer.now += p["wait.poll"]
        producer.now += p["wait.issue"]
        producer.stamp()
        producer.stamp()
        producer.now += p["expect.issue"]
        issued = producer.now
        producer.stamp()
        producer.now += p["copy.issue"] + p["loop.issue"]
        begin = max(issued, engine_free)
        rate = p["copy.bytes_per_kcycle"]
        engine_free = begin + up(nbytes, min(rate, p["copy.device_bytes_per_kcycle"]))
        landed = begin + record + p["copy.latency"] + up(nbytes, rate) + (0 if tile else p["copy.cold"])
        # the consumers: a landing wakes them
        arrived = []
        for consumer in consumers:
            consumer.stamp()
            soonest = consumer.now + p["wait.issue"]
            consumer.now = soonest if landed <= consumer.now else max(soonest, landed + p["wait.wake_up"])
            consumer.stamp()
            consumer.now += p["read.issue"] + up(nbytes, p["read.bytes_per_kcycle"])
            if work:
                consumer.stamp()
                consumer.now += work + p["work.issue"]
                consumer.stamp()
            consumer.stamp()
            arrived.append(consumer.now)
            consumer.now += p["arrive.issue"] + p["loop.issue"]
        freed.append(max(arrived) + p["arrive.latency"])
    return [producer.events, *(c.events for c in consumers)]


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(shape=RINGS, prices=PRICES, traced=st.booleans())
def test_every_event_of_a_ring_has_the_time_of_the_recurrence(
    shape: dict[str, int], prices: dict[str, int], traced: bool,
) -> None:  # fmt: skip
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"])
    result = simulate(ring(**shape), profile, traced=traced)
    expected = naive(profile, **shape, traced=traced)
    found = [result.trace.events.cycle[result.trace.events.agent == a].tolist() for a in range(1 + shape["warps"])]
    assert result.outcome is Ending.FINISHED
    assert found == expected


@settings(max_examples=20, deadline=None, derandomize=True)
@given(shape=RINGS.filter(lambda s: s["tiles"] > 0), prices=PRICES, data=st.data())
def test_the_recurrence_is_not_blind(shape: dict[str, int], prices: dict[str, int], data: Any) -> None:
    """Its twin: a profile in which a price on everybody's path is one cycle higher gives other times."""
    raised = data.draw(st.sampled_from(["wait_issue", "expect_issue", "copy_latency", "sync_latency"]))
    other = prices | {raised: prices[raised] + 1}
    expected = naive(toy(**prices), **shape, traced=False)
    result = simulate(ring(**shape), toy(**other, copy_latency_loaded=other["copy_latency"]))
    found = [result.trace.events.cycle[result.trace.events.agent == a].tolist() for a in range(1 + shape["warps"])]
    assert found != expected
