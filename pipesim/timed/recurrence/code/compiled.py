"""The instructions of a formula as compiled Python code, for the prices of one profile.

A formula repeats itself, as its program does: each phrase of instructions that comes again and again becomes one
function, whose arguments are the numbers of the values that it uses. What a phrase does is not written here: the
methods of :class:`~pipesim.timed.recurrence.instructions.Instructions` are called with expressions in place of numbers.
"""

from __future__ import annotations

from functools import partial

from pipesim.timed.recurrence.code.phrase_book import PLACES, Call, PhraseBook
from pipesim.timed.recurrence.code.phrases import phrases
from pipesim.timed.recurrence.formula import READ, Do, Formula, Instruction
from pipesim.timed.recurrence.prices import PriceTable


class CompiledFormula:
    """The code of a formula. Called with the values before its first instruction, it leaves those after its last that
    the result is made of. Raises UndecidedError where the formula says nothing about the profile of the prices.

    ``calls``: of the functions of its phrases, one after the other; ``lines``: of the code.
    """

    def __init__(self, formula: Formula) -> None:
        book = PhraseBook()
        self.calls: list[Call] = []
        read_until = _last_reads(formula)
        begin = 0
        for length in phrases([_shape(each) for each in formula.instructions]):
            end = begin + length
            stays = partial(_read_from, read_until, end)
            self.calls.append(book.call(formula.instructions[begin:end], stays))
            begin = end
        self.lines = book.lines
        self._bind = book.compiled()

    def __call__(self, values: list[int], prices: PriceTable, *, hasty: bool) -> None:
        """Carry out all instructions."""
        functions = self._bind(prices, hasty)
        for number, where in self.calls:
            functions[number](values, where)


def _shape(instruction: Instruction) -> Instruction:
    """An instruction without the numbers of its values."""
    places = PLACES[instruction[0]]
    return tuple([min(0, each) if place in places else each for place, each in enumerate(instruction)])


def _read_from(read_until: list[int], number: int, value: int) -> bool:
    """Whether the instruction of this number or a later one reads the value."""
    return read_until[value] >= number


def _last_reads(formula: Formula) -> list[int]:
    """The number of the last instruction that reads each value; the result reads some after the last of all."""
    found = [0] * formula.values
    for number, (what, *operands) in enumerate(formula.instructions):
        for place in READ[Do(what)]:
            if operands[place] >= 0:
                found[operands[place]] = number
    for value in formula.results:
        found[value] = len(formula.instructions)
    return found
