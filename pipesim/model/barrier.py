"""The mbarrier: this file alone owns the rules of one barrier word (PTX ISA, "Parallel Synchronization: mbarrier").

A barrier is five integers. ``done`` counts the phases completed since the last init: the hardware keeps only its lowest
bit, the full count is the ghost that makes parity aliasing visible. Every function is pure and returns
``(state after, completed, fault)``: whether the operation completed a phase, and the rule it broke, if any.

Two rules hold everywhere, both confirmed on H100 and H200:

* Any operation that brings (pending, tx) to (0, 0) completes the phase; then pending is reloaded with the expected
  count. An arrive, a landing and an ``expect_tx`` are alike in this.
* An arrive of n is one arrival of n. More than the phase has pending ends the launch; it never completes two phases.
  The bytes that the lanes of a warp expect are added up in the same way: a sum out of range ends the launch, even if
  tx is so far below 0 that the result would be in range.
"""

from typing import NamedTuple

from pipesim.errors import ParameterError
from pipesim.model.finding import FaultKind

COUNT_BITS = 20  #: of a count; of a state token the bits below its phase
#: Largest expected count, and largest |tx| (PTX ISA, "mbarrier contents"). The hardware lets tx be one more, and ends
#: the launch beyond that.
MAX_COUNT = (1 << COUNT_BITS) - 1

ABSENT, LIVE, INVALID = 0, 1, 2  #: life of a barrier word: before its first init, in use, after inval


class BarrierState(NamedTuple):
    """One barrier word: arrivals expected in each phase, arrivals pending, bytes outstanding, phases done, life."""

    expected: int = 0
    pending: int = 0
    tx: int = 0
    done: int = 0
    life: int = ABSENT


Effect = tuple[BarrierState, bool, FaultKind | None]

FRESH = BarrierState()

_new = tuple.__new__  # a NamedTuple's own constructor costs twice the tuple it makes, and every step makes one


def init(state: BarrierState, count: int) -> Effect:
    """``mbarrier.init``: phase 0, ``count`` arrivals pending. On a live barrier the hardware resets silently: a
    finding.
    """
    if not 1 <= count <= MAX_COUNT:  # the hardware keeps the lowest COUNT_BITS; a count of 0 leaves this (measured)
        low = count & MAX_COUNT
        return BarrierState(*((low, low, 0, 0) if count else (0, 0, -1, 1)), LIVE), False, FaultKind.INIT_COUNT
    fault = FaultKind.REINITIALISED if state.life == LIVE else None
    return BarrierState(count, count, 0, 0, LIVE), False, fault


def inval(state: BarrierState) -> Effect:
    """``mbarrier.inval``: the word may be used for something else. In the middle of a phase that loses arrivals."""
    if state.life != LIVE:
        return state, False, _dead(state)
    fault = None if state.pending == state.expected and state.tx == 0 else FaultKind.INVAL_PENDING
    return state._replace(life=INVALID), False, fault


def arrive(state: BarrierState, count: int, expect: int = 0) -> Effect:
    """``mbarrier.arrive`` of ``count``; with ``expect`` it is ``arrive.expect_tx``: tx is raised first."""
    expected, pending, tx, done, life = state
    if life != LIVE:
        return state, False, _dead(state)
    if count < 1:
        return state, False, FaultKind.ARRIVE_COUNT  # no effect on the hardware
    tx += expect
    if expect > MAX_COUNT or not -MAX_COUNT <= tx <= MAX_COUNT + 1:
        return state, False, FaultKind.TX_RANGE
    if count > pending:
        return state, False, FaultKind.OVER_ARRIVAL
    pending -= count
    if tx > MAX_COUNT:
        fault = FaultKind.TX_EDGE if expect else None
        return _new(BarrierState, (expected, pending, tx, done, LIVE)), False, fault
    if pending == 0 and tx == 0:
        return _new(BarrierState, (expected, expected, 0, done + 1, LIVE)), True, None
    return _new(BarrierState, (expected, pending, tx, done, LIVE)), False, None


def arrive_drop(state: BarrierState, count: int, expect: int = 0) -> Effect:
    """``mbarrier.arrive_drop``: an arrive that also lowers the expected count of every later phase.

    ``count`` may be at most the expected count, whatever ``cp.async`` has added to the pending one.
    """
    if state.life != LIVE or count < 1:
        return arrive(state, count, expect)
    if count > state.expected:
        return state, False, FaultKind.OVER_ARRIVAL
    after, completed, fault = arrive(state._replace(expected=state.expected - count), count, expect)
    return (state, False, fault) if fault and fault.traps else (after, completed, fault)


def arrive_no_complete(state: BarrierState, count: int) -> Effect:
    """``mbarrier.arrive.noComplete``: completing the phase is undefined in PTX; the hardware completes it: a fault."""
    after, completed, fault = arrive(state, count)
    return after, completed, FaultKind.NO_COMPLETE if completed else fault


def add_tx(state: BarrierState, nbytes: int) -> Effect:
    """``mbarrier.expect_tx`` (positive) and ``mbarrier.complete_tx`` or a landing (negative): tx changes by ``nbytes``.

    tx may be negative inside a phase: bytes may land before they are expected.
    """
    expected, pending, tx, done, life = state
    if life != LIVE:
        return state, False, _dead(state)
    tx += nbytes
    if nbytes > MAX_COUNT:
        return state, False, FaultKind.TX_RANGE
    if not -MAX_COUNT <= tx <= MAX_COUNT:
        if tx != MAX_COUNT + 1:
            return state, False, FaultKind.TX_RANGE
        fault = FaultKind.TX_EDGE if nbytes else None
        return _new(BarrierState, (expected, pending, tx, done, LIVE)), False, fault
    if pending == 0 and tx == 0:
        return _new(BarrierState, (expected, expected, 0, done + 1, LIVE)), True, None
    return _new(BarrierState, (expected, pending, tx, done, LIVE)), False, None


def raise_pending(state: BarrierState, count: int) -> Effect:
    """``cp.async.mbarrier.arrive`` without ``.noinc``: pending rises now, and falls when the copies have landed."""
    if state.life != LIVE:
        return state, False, _dead(state)
    if state.pending + count > MAX_COUNT:
        return state, False, FaultKind.ARRIVE_COUNT
    return state._replace(pending=state.pending + count), False, None


def passes(state: BarrierState, parity: int) -> bool:
    """``test_wait.parity``: true iff the phase of this parity has completed, that is, is not the current one.

    On a fresh barrier parity 1 passes and parity 0 does not.
    """
    return (state.done & 1) != (parity & 1)


def phase_wanted(state: BarrierState, parity: int) -> int:
    """The phase whose completion lets a blocked wait of this parity pass: the one the barrier is in."""
    return state.done if not passes(state, parity) else state.done - 1


def unusable(state: BarrierState) -> FaultKind | None:
    """The fault of touching this barrier at all, or None if it is live."""
    return None if state.life == LIVE else _dead(state)


# A state token, as ``mbarrier.arrive`` returns it: the phase it arrived in and the pending count before it.


def token(state: BarrierState) -> int:
    """The opaque state that an arrive on ``state`` returns, packed into one integer."""
    return (state.done << COUNT_BITS) | state.pending


def token_phase(held: int) -> int:
    """The phase in which the arrive that returned this state arrived."""
    return held >> COUNT_BITS


def token_passes(state: BarrierState, held: int) -> tuple[bool, FaultKind | None]:
    """``test_wait`` by state: true iff that phase has completed; defined for the current phase and the one before."""
    behind = state.done - token_phase(held)
    return behind > 0, None if behind in (0, 1) else FaultKind.STALE_STATE


def token_pending(held: int) -> int:
    """``mbarrier.pending_count``: the pending count before the arrive that returned this state."""
    return held & MAX_COUNT


def _dead(state: BarrierState) -> FaultKind:
    return FaultKind.INVALIDATED if state.life == INVALID else FaultKind.NOT_INITIALISED


_COUNT, _TX = 20, 21  #: bits of a count, and of the transaction count with its sign
_EXPECTED_AT, _TX_AT, _PENDING_AT, _PHASE_AT = 1, 21, 43, 63


# The 64 bits of an mbarrier as ``mbarrier.inval`` leaves them in shared memory: opaque in PTX, measured on the
# hardware.
#
# Bits 1..20 are the expected count, 21..41 the transaction count, 43..62 the pending count, each negated, in two's
# complement; bit 63 is the parity of the phase. Bits 0 and 42 were 0 in every word that was read (H100, H200).


class BarrierWord(NamedTuple):
    """What a barrier's word says: arrivals expected in a phase, arrivals pending, bytes outstanding, phase parity."""

    expected: int
    pending: int
    tx: int
    parity: int


def decode_word(word: int) -> BarrierWord:
    """The fields of a 64-bit word. ParameterError if it has more than 64 bits."""
    if not 0 <= word < 1 << 64:
        raise ParameterError(f"{word} is not a 64-bit word", correction="give 0 to 2^64 - 1")
    negated = word >> _TX_AT & (1 << _TX) - 1
    return BarrierWord(
        expected=-(word >> _EXPECTED_AT) & (1 << _COUNT) - 1,
        pending=-(word >> _PENDING_AT) & (1 << _COUNT) - 1,
        tx=-negated if negated < 1 << _TX - 1 else (1 << _TX) - negated,
        parity=word >> _PHASE_AT,
    )
