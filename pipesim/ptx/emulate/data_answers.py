"""What data decides for a whole CTA: votes of its threads, and words that one thread stores for all to read.

Each is a free input: the kernel does what a run of it does for some answers. Which data leads to them is not asked, so
what is proved holds for all of them, and what fails with some of them may never happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipesim.ptx.emulate.values import Value
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.values import ANSWERS_OF_DATA, Launch
from pipesim.ptx.text.instruction import Immediate, Instruction, Register

#: Answers at one place, of one agent or named barrier, that are free: after as many more the greatest is to end a loop.
MOST_LAPS = 8
_MOST_ANSWERS = 1 << 10  #: of one range


class DataAnswers:
    """The answers of one run, in the order in which they are asked for. ``asked``: where."""

    def __init__(self, launch: Launch, inputs: FreeInputs) -> None:
        self._inputs = inputs
        self._chosen = {(name, n): value for name, n, value in launch.contents if name.startswith(ANSWERS_OF_DATA)}
        self._numbers: Counter[str] = Counter()
        self._often: Counter[tuple[int, int, int]] = Counter()
        self.asked: set[int] = set()

    def answer(self, position: int, high: int, who: tuple[int, int]) -> int:
        """From 0 to ``high``, and 0 where nothing else is chosen. ``who``: whose laps are counted."""
        self.asked.add(position)
        self._often[position, *who] += 1
        often = self._often[position, *who]
        name = f"{ANSWERS_OF_DATA}_to_{high}" if high > 1 else ANSWERS_OF_DATA
        index, self._numbers[name] = self._numbers[name], self._numbers[name] + 1
        if often > MOST_LAPS or index >= _MOST_ANSWERS:
            return 0 if often <= 2 * MOST_LAPS else high
        usual = (0,) * _MOST_ANSWERS
        array = FreeArray(name, 0, 1, high, _MOST_ANSWERS, usual, size=1, place=(f"{name}:", 0))
        return self._inputs.element(array, index, self._chosen.get((name, index), 0))

    def stored(self, each: Instruction, uses: Uses, body: Sequence[Instruction], value: Value, agent: int) -> Value:
        """What one thread stores that is one of two constants; of any other ``value`` nothing is known."""
        written = each.operands[1]
        name = written.name if isinstance(written, Register) else ""
        makers = [one for one in body if name in uses.writes[one.position]]
        if len(makers) != 1 or makers[0].opcode != "selp" or makers[0].guard is not None:
            return value
        first, second = makers[0].operands[1:3]
        if not isinstance(first, Immediate) or not isinstance(second, Immediate):
            return value
        return second.value + (first.value - second.value) * self.answer(each.position, 1, (-1, agent))
