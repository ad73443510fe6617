"""Which operations represent accesses to words of global memory that a recorder of the kernel's PTX records.

Waits for earlier kernels, which no operation of the program represents, are recorded in the same way.
"""

from collections.abc import Callable

from pipesim.model.groups import BARRIER
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.words import WordAct, WordsOfRun
from pipesim.trace.schema import EARLIER_KERNELS, EventKind
from pipesim.trace.sites import ANY_VALUE, WordRecords

_LOW = (1 << 32) - 1
_Events = tuple[tuple[EventKind, int], ...]
_SPIN: _Events = ((EventKind.SPIN_ENTER, 0), (EventKind.SPIN_RETURN, ANY_VALUE))


def _atomic(before: int = ANY_VALUE) -> _Events:
    return (EventKind.ATOMIC_ENTER, 0), (EventKind.ATOMIC_RETURN, before)


def word_records(
    said: WordsOfRun | None, program: Program, instruction: Callable[[int, int], str]
) -> WordRecords | None:
    """By agent and operation the events of an access: of several operations of an instruction the last has them.

    ``said``: what CTAs that talk do to words; ``instruction``: of an agent's operation. What an atomic returns is known
    of words whose writes come in the order of the program. Of a value a record has the low 32 bits. None where CTAs do
    not talk, and wait for no kernels.
    """
    found: dict[tuple[int, int], tuple[str, _Events]] = {}

    def is_atomic(agent: int, pc: int) -> bool:
        return instruction(agent, pc).startswith("atom.")

    for word in said.words if said is not None else ():
        for wait in word.waits:
            if wait.passes is not None:
                atomic = is_atomic(wait.agent, wait.last)
                found[wait.agent, wait.last] = word.name, _atomic() if atomic else _SPIN
        for write in word.writes:
            if is_atomic(write.agent, write.last):
                events = _atomic(write.after - write.added & _LOW if word.chained else ANY_VALUE)
            else:
                events = ((EventKind.WORD_WRITE, (write.added if write.act is WordAct.ADD else write.after) & _LOW),)
            found[write.agent, write.last] = word.name, events
    for agent, code in enumerate(program.code):  # what waits in the end
        if code and code[-1][0] == Op.WAIT and program.is_access_to_word(code[-1]):
            atomic = is_atomic(agent, len(code) - 1)
            name = program.barriers[code[-1][BARRIER]].name
            found.setdefault((agent, len(code) - 1), (name, _atomic() if atomic else _SPIN))
        for pc, op in enumerate(code):
            if op[0] == Op.WORK and instruction(agent, pc) == "griddepcontrol.wait":
                found[agent, pc] = EARLIER_KERNELS, (_SPIN[0], (EventKind.SPIN_RETURN, 0))
    return found if found or said is not None else None
