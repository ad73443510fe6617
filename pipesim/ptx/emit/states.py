"""Waits for the state that an arrive returned: as waits for a parity where both ask for the same in every schedule.

In the run that is emulated it is known of which phase a state is. In another schedule the arrive may be counted in
another phase (PTX ISA, "mbarrier.arrive"), and the wait asks for that one. It cannot be if each agent arrives the same
number of times in each phase, all of them together as often as is expected, and waits for its end before it arrives
again. Else the wait is for the state, by a register.
"""

from collections.abc import Iterator, Sequence

from pipesim.model.groups import (
    ARRIVALS,
    ASKS,
    BARRIER,
    BY_PARITY,
    COMMITS,
    DELAYED_ARRIVALS,
    ON_BARRIER,
    PARITY,
    PARITY_WAITS,
)
from pipesim.model.ops import AT, Op, Operation, operand
from pipesim.ptx.emit.record import Stream, StreamRecorder
from pipesim.ptx.flow.opcodes import is_try
from pipesim.ptx.text.instruction import Instruction, Register


def keep_states(recorder: StreamRecorder, body: Sequence[Instruction]) -> list[int]:
    """Make waits for states of those of which the phase may be another one; the positions where that is not possible.

    Those are tries whose answer is open, and waits for which no arrive of the agent itself is found.
    """
    asked = {op[BARRIER] for stream in recorder.streams for _, op in _by_state(stream, body)}
    contested = {bar for bar in asked if not _has_rounds(recorder.streams, bar)}
    unknown = []
    for stream in recorder.streams if contested else ():
        for at, op in _by_state(stream, body):
            if op[BARRIER] in contested:
                told = _arrive_of(stream, at, body) if op[0] == Op.WAIT else -1
                if told < 0:
                    unknown.append(stream.positions[at])
                    continue
                arrive, place = stream.code[told], AT["register"][stream.code[told][0]]
                register = arrive[place] if arrive[place] >= 0 else recorder.answer()
                stream.code[told] = (*arrive[:place], register, *arrive[place + 1 :])
                stream.code[at] = (int(Op.WAIT_STATE), op[BARRIER], register, op[-1])
    return unknown


def _by_state(stream: Stream, body: Sequence[Instruction]) -> Iterator[tuple[int, Operation]]:
    for at, op in enumerate(stream.code):  # by an instruction of the word it is a wait for that
        each = body[stream.positions[at]]
        if op[0] in BY_PARITY and op[0] in ASKS and is_try(each) and not each.has("parity"):
            yield at, op


def _has_rounds(streams: Sequence[Stream], bar: int) -> bool:
    """Whether each agent that arrives does so equally often between its waits for all phases in turn."""
    expected, together = list[int](), 0
    for stream in streams:
        rounds, now = list[int](), 0
        for op in stream.code:
            if op[0] == Op.COMMIT or (op[0] in DELAYED_ARRIVALS and operand(op, "barrier") == bar):
                return False
            if op[0] == Op.INIT and op[BARRIER] == bar:
                expected.append(operand(op, "count"))
            elif op[0] in ARRIVALS and op[BARRIER] == bar:
                if op[0] != Op.ARRIVE:
                    return False
                now += operand(op, "count")
            elif op[0] in PARITY_WAITS and op[BARRIER] == bar and now:
                if op[0] != Op.WAIT or op[PARITY] != len(rounds) & 1:
                    return False
                rounds.append(now)
                now = 0
        if len({*rounds, *([now] if now else ())}) > 1:
            return False
        together += rounds[0] if rounds else now
    return expected == [together]


def _arrive_of(stream: Stream, at: int, body: Sequence[Instruction]) -> int:
    """The operation that returned the state for which an agent waits, -1 if that is not clear, as of several lanes."""
    bar, state = stream.code[at][BARRIER], body[stream.positions[at]].operands[-1]
    if not isinstance(state, Register):
        state = body[stream.positions[at]].operands[2]
    found, named, waited = list[int](), list[int](), False
    for n in range(at - 1, -1, -1):
        op, each = stream.code[n], body[stream.positions[n]]
        if op[0] not in ON_BARRIER - COMMITS or op[BARRIER] != bar:
            continue
        if op[0] == Op.INIT or (waited and named):
            break
        waited = waited or op[0] in PARITY_WAITS or op[0] == Op.WAIT_STATE
        if op[0] in ARRIVALS and isinstance(each.operands[0], Register):
            found.append(n)
            named += [n] if each.operands[0] == state else []
            waited = False
    found = named or found
    return found[0] if len(found) == 1 else -1
