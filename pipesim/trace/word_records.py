"""Which operations represent accesses to words of global memory that a recorder of the kernel's PTX records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipesim.model.groups import BARRIER
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.words import GlobalWord, WordAct
from pipesim.trace.schema import EventKind
from pipesim.trace.sites import ANY_VALUE, WordRecords

_LOW = (1 << 32) - 1
_Events = tuple[tuple[EventKind, int], ...]
_SPIN: _Events = ((EventKind.SPIN_ENTER, 0), (EventKind.SPIN_RETURN, ANY_VALUE))


def _atomic(before: int = ANY_VALUE) -> _Events:
    return (EventKind.ATOMIC_ENTER, 0), (EventKind.ATOMIC_RETURN, before)


def word_records(words: Iterable[GlobalWord], program: Program, opcode: Callable[[int, int], str]) -> WordRecords:
    """By agent and operation the events of an access: of several operations of an instruction the last has them.

    ``opcode``: of the instruction of an agent's operation. What an atomic returns is known of words whose writes come
    in the order of the program. Of a value a record has the low 32 bits.
    """
    found: dict[tuple[int, int], tuple[str, _Events]] = {}
    for word in words:
        for wait in word.waits:
            if wait.passes is not None:
                atomic = opcode(wait.agent, wait.last) == "atom"
                found[wait.agent, wait.last] = word.name, _atomic() if atomic else _SPIN
        for write in word.writes:
            if opcode(write.agent, write.last) == "atom":
                events = _atomic(write.after - write.added & _LOW if word.chained else ANY_VALUE)
            else:
                events = ((EventKind.WORD_WRITE, (write.added if write.act is WordAct.ADD else write.after) & _LOW),)
            found[write.agent, write.last] = word.name, events
    for agent, code in enumerate(program.code):  # what waits in the end
        if code and code[-1][0] == Op.WAIT and program.is_access_to_word(code[-1]):
            atomic = opcode(agent, len(code) - 1) == "atom"
            name = program.barriers[code[-1][BARRIER]].name
            found.setdefault((agent, len(code) - 1), (name, _atomic() if atomic else _SPIN))
    return found
