"""One barrier word: every row of what the chip was seen to do with one, then the edges that PTX draws."""

import pytest

from pipesim.model import barrier
from pipesim.model.barrier import ABSENT, FRESH, INVALID, LIVE, MAX_COUNT, BarrierState, Effect
from pipesim.model.finding import FaultKind

#: A function of the module by name, and its operands.
Call = tuple[str, int] | tuple[str, int, int]


def after(count: int, *calls: Call) -> Effect:
    """Init with ``count``, then these calls, each without a fault but perhaps the last; the last effect."""
    effect: Effect = barrier.init(FRESH, count)
    for name, *operands in calls:
        assert effect[2] is None, effect
        effect = getattr(barrier, name)(effect[0], *operands)
    return effect


def word(expected: int, pending: int, tx: int = 0, done: int = 0) -> BarrierState:
    return BarrierState(expected, pending, tx, done, LIVE)


CHIP: dict[str, tuple[int, list[Call], Effect]] = {
    "bytes hold the phase until the last": (
        1, [("add_tx", 1024), ("arrive", 1), ("add_tx", -1000)], (word(1, 0, 24), False, None),
    ),
    "the last bytes complete it": (
        1, [("add_tx", 1024), ("arrive", 1), ("add_tx", -1000), ("add_tx", -24)], (word(1, 1, 0, 1), True, None),
    ),
    "bytes may land before they are expected": (
        1, [("add_tx", -100), ("arrive", 1, 100)], (word(1, 1, 0, 1), True, None),
    ),
    "an expect_tx completes what it brings to zero": (
        1, [("add_tx", -100), ("arrive", 1), ("add_tx", 100)], (word(1, 1, 0, 1), True, None),
    ),
    "negative bytes hold the phase": (1, [("add_tx", -64), ("arrive", 1)], (word(1, 0, -64), False, None)),
    "an arrival above the pending count traps": (1, [("arrive", 2)], (word(1, 1), False, FaultKind.OVER_ARRIVAL)),
    "tx past 2^20 traps": (1, [("add_tx", MAX_COUNT), ("add_tx", 2)],
                           (word(1, 1, MAX_COUNT), False, FaultKind.TX_RANGE)),
    "tx of 2^20 does not": (1, [("add_tx", MAX_COUNT), ("add_tx", 1)], (word(1, 1, 1 << 20), False, FaultKind.TX_EDGE)),
    "a drop to nothing completes, and no arrive can follow": (
        1, [("arrive_drop", 1), ("arrive", 1)], (word(0, 0, 0, 1), False, FaultKind.OVER_ARRIVAL),
    ),
    "a drop lowers this phase": (3, [("arrive_drop", 1), ("arrive", 1), ("arrive", 1)], (word(2, 2, 0, 1), True, None)),
    "a drop lowers later phases too": (
        3, [("arrive_drop", 1), ("arrive", 1), ("arrive", 1), ("arrive", 1), ("arrive", 1)],
        (word(2, 2, 0, 2), True, None),
    ),
    "noComplete that completes does complete": (
        2, [("arrive", 1), ("arrive_no_complete", 1)], (word(2, 2, 0, 1), True, FaultKind.NO_COMPLETE),
    ),
    "noComplete that does not": (2, [("arrive_no_complete", 1)], (word(2, 1), False, None)),
    "init in the middle of a phase resets it": (
        3, [("arrive", 2), ("add_tx", 64), ("init", 5)], (word(5, 5), False, FaultKind.REINITIALISED),
    ),
    "the largest count is legal": (MAX_COUNT, [], (word(MAX_COUNT, MAX_COUNT), False, None)),
    "32 lanes on 32": (32, [("arrive", 32)], (word(32, 32, 0, 1), True, None)),
    "32 lanes on 31 are one arrival of 32": (31, [("arrive", 32)], (word(31, 31), False, FaultKind.OVER_ARRIVAL)),
    "32 lanes on 16 do not complete two phases": (16, [("arrive", 32)],
                                                  (word(16, 16), False, FaultKind.OVER_ARRIVAL)),
    "5 lanes on 3": (3, [("arrive", 5)], (word(3, 3), False, FaultKind.OVER_ARRIVAL)),
    "an arrive while only bytes are outstanding traps": (
        1, [("arrive", 1, 64), ("arrive", 1)], (word(1, 0, 64), False, FaultKind.OVER_ARRIVAL),
    ),
    "a late expect_tx extends the open phase": (
        1, [("arrive", 1, 64), ("add_tx", 64), ("add_tx", -64)], (word(1, 0, 64), False, None),
    ),
    "and its bytes complete it": (
        1, [("arrive", 1, 64), ("add_tx", 64), ("add_tx", -64), ("add_tx", -64)], (word(1, 1, 0, 1), True, None),
    ),
    "too many bytes never complete": (1, [("arrive", 1, 64), ("add_tx", -80)], (word(1, 0, -16), False, None)),
    "until somebody expects them": (
        1, [("arrive", 1, 64), ("add_tx", -80), ("add_tx", 16)], (word(1, 1, 0, 1), True, None),
    ),
    "half of the bytes expected: tx touches zero and the phase is over early": (
        1, [("arrive", 1, 512), ("add_tx", -512), ("add_tx", -512)], (word(1, 1, -512, 1), False, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", CHIP)
def test_what_the_chip_was_seen_to_do(story: str) -> None:
    count, calls, outcome = CHIP[story]
    assert after(count, *calls) == outcome


EDGES = {
    "init of 0": ("init", FRESH, (0,), BarrierState(0, 0, -1, 1, LIVE), FaultKind.INIT_COUNT),
    "init of 2^20": ("init", FRESH, (MAX_COUNT + 1,), BarrierState(0, 0, 0, 0, LIVE), FaultKind.INIT_COUNT),
    "init after inval": ("init", word(4, 2)._replace(life=INVALID), (3,), word(3, 3), None),
    "inval between phases": ("inval", word(2, 2, 0, 5), (), word(2, 2, 0, 5)._replace(life=INVALID), None),
    "inval with arrivals made": ("inval", word(2, 1), (), word(2, 1)._replace(life=INVALID), FaultKind.INVAL_PENDING),
    "inval with bytes due": ("inval", word(2, 2, 8), (), word(2, 2, 8)._replace(life=INVALID), FaultKind.INVAL_PENDING),
    "inval before init": ("inval", FRESH, (), FRESH, FaultKind.NOT_INITIALISED),
    "arrive of 0": ("arrive", word(1, 1), (0,), word(1, 1), FaultKind.ARRIVE_COUNT),
    "arrive of 2^20": ("arrive", word(1, 1), (MAX_COUNT + 1,), word(1, 1), FaultKind.OVER_ARRIVAL),
    "arrive that expects too much": ("arrive", word(1, 1, 2), (1, MAX_COUNT), word(1, 1, 2), FaultKind.TX_RANGE),
    "arrive expecting one too many": ("arrive", word(1, 1, 1), (1, MAX_COUNT), word(1, 0, 1 << 20), FaultKind.TX_EDGE),
    "bytes one too many": ("add_tx", word(1, 1, MAX_COUNT), (1,), word(1, 1, 1 << 20), FaultKind.TX_EDGE),
    "drop with a byte too many": ("arrive_drop", word(2, 2, 1), (1, MAX_COUNT), word(1, 1, 1 << 20), FaultKind.TX_EDGE),
    "tx below -(2^20 - 1)": ("add_tx", word(1, 1, -MAX_COUNT), (-1,), word(1, 1, -MAX_COUNT), FaultKind.TX_RANGE),
    "tx at the lowest": ("add_tx", word(1, 1), (-MAX_COUNT,), word(1, 1, -MAX_COUNT), None),
    "drop of more than is pending": ("arrive_drop", word(3, 1), (2,), word(3, 1), FaultKind.OVER_ARRIVAL),
    "drop of more than was ever expected": ("arrive_drop", word(2, 5), (3,), word(2, 5), FaultKind.OVER_ARRIVAL),
    "drop that expects too much": ("arrive_drop", word(2, 2), (1, MAX_COUNT + 2), word(2, 2), FaultKind.TX_RANGE),
    "drop with bytes": ("arrive_drop", word(2, 2), (1, 64), word(1, 1, 64), None),
    "drop of 0": ("arrive_drop", word(2, 2), (0,), word(2, 2), FaultKind.ARRIVE_COUNT),
    "noComplete above pending": ("arrive_no_complete", word(2, 1), (2,), word(2, 1), FaultKind.OVER_ARRIVAL),
    "cp.async raises pending": ("raise_pending", word(1, 1), (32,), word(1, 33), None),
    "cp.async past the range": ("raise_pending", word(1, MAX_COUNT), (1,), word(1, MAX_COUNT), FaultKind.ARRIVE_COUNT),
}  # fmt: skip


@pytest.mark.parametrize("story", EDGES)
def test_edges(story: str) -> None:
    name, before, operands, expected, fault = EDGES[story]
    assert getattr(barrier, name)(before, *operands) == (expected, False, fault)


@pytest.mark.parametrize(("life", "fault"), [(ABSENT, FaultKind.NOT_INITIALISED), (INVALID, FaultKind.INVALIDATED)])
def test_a_barrier_that_is_not_live_refuses_everything_and_keeps_its_word(life: int, fault: FaultKind) -> None:
    dead = BarrierState(2, 1, 0, 3, life)
    calls = [("inval",), ("arrive", 1), ("arrive_drop", 1), ("arrive_no_complete", 1), ("add_tx", 16),
             ("raise_pending", 1)]  # fmt: skip
    for name, *operands in calls:
        assert getattr(barrier, str(name))(dead, *operands) == (dead, False, fault), name
    assert barrier.unusable(dead) is fault
    assert barrier.unusable(dead._replace(life=LIVE)) is None


def test_cp_async_delays_the_phase_and_leaves_its_count() -> None:
    plain = after(32, ("raise_pending", 32), ("arrive", 32))
    assert plain == (word(32, 32), False, None)
    assert barrier.arrive(plain[0], 32) == (word(32, 32, 0, 1), True, None)
    assert after(32, ("arrive", 32)) == (word(32, 32, 0, 1), True, None), "noinc: the arrival is one of the count"


def test_a_state_token_knows_its_phase_and_what_was_pending() -> None:
    first = word(3, 3, 0, 7)
    held = barrier.token(first)
    assert (barrier.token_phase(held), barrier.token_pending(held)) == (first.done, 3)
    assert barrier.token_passes(first, held) == (False, None)
    assert barrier.token_passes(word(3, 3, 0, 8), held) == (True, None)
    assert barrier.token_passes(word(3, 3, 0, 9), held) == (True, FaultKind.STALE_STATE)
    assert barrier.token_passes(word(3, 3, 0, 0), held) == (False, FaultKind.STALE_STATE), "after another init"
    full = barrier.token(word(MAX_COUNT, MAX_COUNT, 0, 1))
    assert (barrier.token_phase(full), barrier.token_pending(full)) == (1, MAX_COUNT)


def test_parities_alternate_as_phases_complete() -> None:
    state = barrier.init(FRESH, 1)[0]
    seen = []
    for _ in range(4):
        seen.append((barrier.passes(state, 0), barrier.passes(state, 1)))
        state, completed, fault = barrier.arrive(state, 1)
        assert (completed, fault) == (True, None)
    assert seen == [(False, True), (True, False)] * 2
    assert [barrier.phase_wanted(state, p) for p in (0, 1)] == [4, 3]


def test_bytes_that_lanes_expect_together_are_added_up_before_they_are_counted() -> None:
    """Measured: two lanes that expect 524,288 bytes each end the launch, whatever tx was before; 524,287 do not."""
    low = BarrierState(2, 2, -600_000, 0, LIVE)
    assert barrier.arrive(low, 1, 2 * 524_287) == (BarrierState(2, 1, 448_574, 0, LIVE), False, None)
    assert barrier.arrive(low, 1, 2 * 524_288) == (low, False, FaultKind.TX_RANGE)
    assert barrier.add_tx(low, 2 * 524_287) == (BarrierState(2, 2, 448_574, 0, LIVE), False, None)
    assert barrier.add_tx(low, 2 * 524_288) == (low, False, FaultKind.TX_RANGE)
