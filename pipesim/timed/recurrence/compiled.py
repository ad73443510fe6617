"""The instructions of a formula as compiled Python code, for the prices of one profile.

A formula repeats itself, as its program does: each phrase of instructions that comes again and again becomes one
function, whose arguments are the numbers of the values that it uses. What a phrase does is not written here: the
methods of :class:`~pipesim.timed.recurrence.instructions.Instructions` are called with expressions in place of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pipesim.timed.recurrence.formula import READ, VALUES, Do, Formula, Instruction
from pipesim.timed.recurrence.phrase_source import OF_ALL, OF_PRICES, PhraseSource
from pipesim.timed.recurrence.phrases import phrases
from pipesim.timed.recurrence.prices import PriceTable


class UndecidedError(Exception):
    """The formula says nothing about this profile."""


_Phrase = Callable[[list[int], tuple[int, ...]], None]
_Key = tuple[tuple[Instruction, ...], tuple[int, ...]]  #: instructions with places for values, and those read later
_PLACES = [[1 + place for place in VALUES[what]] for what in Do]


class CompiledFormula:
    """The code of a formula. Called with the values before its first instruction, it leaves those after its last that
    the result is made of. Raises UndecidedError where the formula says nothing about the profile of the prices.

    ``calls``: the phrases, one after the other, by number and with the values that they use; ``lines``: of the code.
    """

    def __init__(self, formula: Formula) -> None:
        sources: dict[_Key, PhraseSource] = {}
        self.calls: list[tuple[int, tuple[int, ...]]] = []
        read_until = _last_reads(formula)
        begin = 0
        for length in phrases([_shape(each) for each in formula.instructions]):
            end = begin + length
            key, values = _key(formula.instructions[begin:end], read_until, end)
            source = sources.get(key)
            if source is None:
                source = sources[key] = PhraseSource(len(sources), *key)
            self.calls.append((source.number, tuple([values[place] for place in source.places])))
            begin = end
        self.lines = sum(len(source.lines) for source in sources.values())
        self._bind = _compiled(list(sources.values()))

    def __call__(self, values: list[int], prices: PriceTable, *, hasty: bool) -> None:
        """Carry out all instructions."""
        functions: list[_Phrase] = self._bind(prices, hasty)
        for number, where in self.calls:
            functions[number](values, where)


def _shape(instruction: Instruction) -> Instruction:
    """An instruction without the numbers of its values."""
    places = _PLACES[instruction[0]]
    return tuple([min(0, each) if place in places else each for place, each in enumerate(instruction)])


def _last_reads(formula: Formula) -> list[int]:
    """The number of the last instruction that reads each value; the result reads some after the last of all."""
    found = [0] * formula.values
    for number, (what, *operands) in enumerate(formula.instructions):
        for place in READ[Do(what)]:
            if operands[place] >= 0:
                found[operands[place]] = number
    for value in (*range(formula.agents), *(value for value, _, _ in formula.landings)):
        found[value] = len(formula.instructions)
    return found


def _key(instructions: Sequence[Instruction], read_until: list[int], end: int) -> tuple[_Key, list[int]]:
    """What decides the code of these instructions, the last before ``end``, and their values in order of appearance."""
    numbers: dict[int, int] = {}
    placed = []
    for each in instructions:
        operands = list(each)
        for place in _PLACES[each[0]]:
            if operands[place] >= 0:
                operands[place] = numbers.setdefault(operands[place], len(numbers))
        placed.append(tuple(operands))
    later = tuple([number for value, number in numbers.items() if read_until[value] >= end])
    return (tuple(placed), later), list(numbers)


_PRICE = re.compile(rf"\b({'|'.join(OF_PRICES)})_([0-9]+)\b")


def _compiled(sources: Sequence[PhraseSource]) -> Callable[[PriceTable, bool], list[_Phrase]]:
    """What makes the functions of phrases for some prices, which are variables of the function around them."""
    body = [line for each in sources for line in each.lines]
    used = sorted({found for line in body for found in _PRICE.findall(line)})
    prices = [f"{field}_{number} = prices.{field}[{number}]" for field, number in used]
    prices += [f"{name} = prices.{name}" for name in OF_ALL]
    functions = ", ".join(f"phrase{each.number}" for each in sources)
    lines = ["def bind(prices, hasty):", *(f"    {line}" for line in [*prices, *body, f"return [{functions}]"])]
    found: dict[str, Any] = {"UndecidedError": UndecidedError}
    exec(compile("\n".join(lines), "<formula>", "exec"), found)  # noqa: S102  # of names and numbers made here
    bind: Callable[[PriceTable, bool], list[_Phrase]] = found["bind"]
    return bind
