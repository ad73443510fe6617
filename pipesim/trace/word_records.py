"""Which operations represent accesses to words of global memory that a recorder of the kernel's PTX records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipesim.model.groups import BARRIER
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.words import GlobalWord
from pipesim.trace.schema import EventKind
from pipesim.trace.sites import WordRecords

SPIN = EventKind.SPIN_ENTER, EventKind.SPIN_RETURN
WRITE = (EventKind.WORD_WRITE,)
ATOMIC = EventKind.ATOMIC_ENTER, EventKind.ATOMIC_RETURN


def word_records(words: Iterable[GlobalWord], program: Program, opcode: Callable[[int, int], str]) -> WordRecords:
    """By agent and operation the events of an access: of several operations of an instruction the last has them.

    ``opcode``: of the instruction of an agent's operation.
    """

    def kinds(agent: int, pc: int, otherwise: tuple[EventKind, ...]) -> tuple[EventKind, ...]:
        return ATOMIC if opcode(agent, pc) == "atom" else otherwise

    found: dict[tuple[int, int], tuple[tuple[EventKind, ...], str]] = {}
    for word in words:
        for wait in word.waits:
            if wait.passes is not None:
                found[wait.agent, wait.last] = kinds(wait.agent, wait.last, SPIN), word.name
        for write in word.writes:
            found[write.agent, write.last] = kinds(write.agent, write.last, WRITE), word.name
    for agent, code in enumerate(program.code):  # what waits in the end
        if code and code[-1][0] == Op.WAIT and program.is_access_to_word(code[-1]):
            name = program.barriers[code[-1][BARRIER]].name
            found.setdefault((agent, len(code) - 1), (kinds(agent, len(code) - 1, SPIN), name))
    return found
