"""Expressions: what is computed with them is written down as Python source instead."""

from __future__ import annotations

from itertools import count


class Expression:
    """The source text of a number or a truth value; what is computed with it is the text of the result."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __add__(self, other: Expression | int) -> Expression:
        return self if isinstance(other, int) and other == 0 else Expression(f"({self} + {other})")

    def __sub__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} - {other})")

    def __mul__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} * {other})")

    def __floordiv__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} // {other})")

    def __neg__(self) -> Expression:
        return Expression(f"-{self}")

    def __lt__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} < {other})")

    def __le__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} <= {other})")

    def __gt__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} > {other})")

    def __ge__(self, other: Expression | int) -> Expression:
        return Expression(f"({self} >= {other})")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression(f"({self} == {other})")

    def __or__(self, other: Expression) -> Expression:
        return Expression(f"({self} or {other})")

    def __and__(self, other: Expression) -> Expression:
        return Expression(f"({self} and {other})")

    __hash__ = None  # type: ignore[assignment]  # equality is an expression


class NewNames:
    """Names of local variables, each another one."""

    def __init__(self) -> None:
        self._numbers = count()

    def __call__(self) -> str:
        """A new name."""
        return f"t{next(self._numbers)}"

    def bound(self, value: Expression | int) -> tuple[str, str]:
        """What computes a value the first time, and its name from then on."""
        text = str(value)
        if text.replace("_", "").isalnum():  # a name or a number
            return text, text
        name = self()
        return f"({name} := {text})", name
