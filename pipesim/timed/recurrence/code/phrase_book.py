"""The functions of which the code of a formula consists: one for all phrases that differ only in their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pipesim.timed.recurrence.code.phrase_source import OF_ALL, OF_PRICES, PhraseSource
from pipesim.timed.recurrence.formula import VALUES, Do, Instruction
from pipesim.timed.recurrence.prices import PriceTable


class UndecidedError(Exception):
    """The formula says nothing about this profile."""


Call = tuple[int, tuple[int, ...]]  #: the number of a function, and the values that it uses
PhraseFunction = Callable[[list[int], tuple[int, ...]], None]
Bind = Callable[[PriceTable, bool], list[PhraseFunction]]  #: makes the functions for some prices (``hasty``: or not)

PLACES = [[1 + place for place in VALUES[what]] for what in Do]  #: of values in an instruction
_PRICE = re.compile(rf"\b({'|'.join(OF_PRICES)})_([0-9]+)\b")


class PhraseBook:
    """The phrases so far. ``lines``: of their source."""

    def __init__(self) -> None:
        self._sources: dict[tuple[tuple[Instruction, ...], tuple[int, ...]], PhraseSource] = {}

    def call(self, instructions: Sequence[Instruction], stays: Callable[[int], bool]) -> Call:
        """What carries out these instructions; ``stays``: whether a value is read by others, too."""
        numbers: dict[int, int] = {}
        placed = []
        for each in instructions:
            operands = list(each)
            for place in PLACES[each[0]]:
                if operands[place] >= 0:
                    operands[place] = numbers.setdefault(operands[place], len(numbers))
            placed.append(tuple(operands))
        later = tuple([number for value, number in numbers.items() if stays(value)])
        key = tuple(placed), later
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = PhraseSource(len(self._sources), *key)
        values = list(numbers)
        return source.number, tuple([values[place] for place in source.places])

    @property
    def lines(self) -> int:
        """How long the source of all phrases is."""
        return sum(len(source.lines) for source in self._sources.values())

    def compiled(self) -> Bind:
        """What makes their functions, in which the prices are variables of the function around them."""
        body = [line for each in self._sources.values() for line in each.lines]
        used = sorted({found for line in body for found in _PRICE.findall(line)})
        prices = [f"{field}_{number} = prices.{field}[{number}]" for field, number in used]
        prices += [f"{name} = prices.{name}" for name in OF_ALL]
        functions = ", ".join(f"phrase{each.number}" for each in self._sources.values())
        lines = ["def bind(prices, hasty):", *(f"    {line}" for line in [*prices, *body, f"return [{functions}]"])]
        found: dict[str, Any] = {"UndecidedError": UndecidedError}
        exec(compile("\n".join(lines), "<formula>", "exec"), found)  # noqa: S102  # of names and numbers made here
        bind: Bind = found["bind"]
        return bind
