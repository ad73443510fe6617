"""The source of the functions of which the code of a formula consists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from pipesim.timed.recurrence.code.expressions import Expression, NewNames
from pipesim.timed.recurrence.formula import Instruction
from pipesim.timed.recurrence.instructions import Condition, Cycles, Instructions
from pipesim.timed.recurrence.prices import PriceTable


class _PriceNames:
    """A list of prices, each by its name."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __getitem__(self, number: int) -> Expression:
        return Expression(f"{self._field}_{number}")


#: The names of the lists of a price table, and of its other cycles.
OF_PRICES = [each.name for each in fields(PriceTable) if each.type == "list[Any]"]
OF_ALL = [each.name for each in fields(PriceTable) if each.type == "Any"]
_BY_NAME: dict[str, Any] = {name: _PriceNames(name) for name in OF_PRICES} | {name: Expression(name) for name in OF_ALL}
_NAMED = PriceTable(many=False, **_BY_NAME)


class PhraseSource(Instructions):
    """The source of the function of one phrase. ``places``: which of its values are its arguments, in order."""

    def __init__(self, number: int, instructions: Sequence[Instruction], later: Sequence[int]) -> None:
        self._body: list[str] = []
        self._new = NewNames()
        self.locals = _Locals(self.named)
        super().__init__(self.locals, _NAMED, Expression("hasty"))
        for each in instructions:
            self.carry_out(each)
        stored = [place for place in later if place in self.locals.written]
        self.number = number
        self.places = sorted({*self.locals.read, *stored})
        arguments = ", ".join(f"n{place}" for place in self.places)
        unpacked = [f"{arguments}, = where"] if self.places else []
        read = [f"v{place} = values[n{place}]" for place in sorted(self.locals.read)]
        write = [f"values[n{place}] = {self.locals[place]}" for place in stored]
        lines = [*unpacked, *read, *self._body, *write] or ["pass"]
        self.lines = [f"def phrase{number}(values, where):", *("    " + line for line in lines)]

    def named(self, value: Cycles) -> Cycles:
        """The same by a name: it is computed once."""
        first, name = self._new.bound(value)
        if first != name:
            self._body.append(first[1:-1].replace(":=", "=", 1))
        return Expression(name)

    def later(self, one: Cycles, other: Cycles) -> Cycles:
        """The later of two times."""
        (first, one), (second, other) = self._new.bound(one), self._new.bound(other)
        return Expression(f"({one} if {first} > {second} else {other})")

    def chosen(self, condition: Condition, one: Cycles, other: Cycles) -> Cycles:
        """The one if the condition holds, else the other; only that is computed."""
        return Expression(f"({one} if {condition} else {other})")

    def undecided_if(self, condition: Condition) -> None:
        """The formula says nothing if the condition holds."""
        self._body.append(f"if {condition}: raise UndecidedError")


class _Locals:
    """The values of a phrase as local variables; those that come from outside are read once."""

    def __init__(self, named: Callable[[Cycles], Cycles]) -> None:
        self._named = named
        self.read: set[int] = set()
        self.written: dict[int, Cycles] = {}

    def __getitem__(self, place: int) -> Cycles:
        if place in self.written:
            return self.written[place]
        self.read.add(place)
        return Expression(f"v{place}")

    def __setitem__(self, place: int, value: Cycles) -> None:
        self.written[place] = self._named(value)
