"""The conditions and loops of a source file, and what their expressions are with the values that are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

_COUNTED = re.compile(r"(\+\+|--)?\s*([A-Za-z_]\w*)\s*(?:(\+\+|--)|([+-])=\s*([^;]+))?\Z")
_PLAIN = (  # what stands for what, so that an expression of C++, or of kernels in Python, can be computed
    (re.compile(r"\bstatic_cast\s*<[\w\s:]+>|(?<=\d)[uUlL]+\b"), ""), (re.compile(r"!(?!=)"), " not "),
    (re.compile(r"&&"), " and "), (re.compile(r"\|\|"), " or "), (re.compile(r"(?<!/)/(?!/)"), "//"),
    (re.compile(r"\b\w+\.(program_id|num_programs)\((?:axis=)?([012])\)"), r"\1_\2"),
    (re.compile(r"\b(\w+Idx|\w+Dim)\.([xyz])"), r"\1_\2"),
)  # fmt: skip
_PARTS = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.Name, ast.Load, ast.Constant,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Not, ast.USub, ast.UAdd, ast.boolop, ast.cmpop,
)  # fmt: skip
_CALLED = {"min": min, "max": max}
_MOST_CHARACTERS = 200

Values = Callable[[str], int | None]  #: of a name in the source, ``blockIdx_x`` for ``blockIdx.x``; None: not known


class HeadingText(NamedTuple):
    """An ``if`` or a loop: from where to where its heading, what follows it and its ``else`` are in their text.

    ``leaves``: what follows ends with ``continue``, ``break`` or ``return``. ``variable`` of a loop, "" if none is
    certain, with the texts of its first value and of what is added to it for each trip.
    """

    loop: bool
    head: tuple[int, int]
    body: tuple[int, int]
    other: tuple[int, int]
    leaves: bool
    condition: str
    variable: str = ""
    start: str = ""
    step: str = ""

    def outcome(self, past: int) -> bool | None:
        """What the condition was if it led past a place; None where the text does not say."""
        if self.body[0] <= past < self.body[1]:
            return False
        left = self.leaves and not self.loop and past >= self.body[1]
        return True if left or self.other[0] <= past < self.other[1] else None


def step_of(variable: str, change: str) -> str:
    """What a statement adds to a variable; "" if that is another one, or not known."""
    found = _COUNTED.match(change.strip())
    if found is None or found[2] != variable or len(list(filter(None, (found[1], found[3], found[4])))) != 1:
        return ""
    return f"{found[4]}({found[5]})" if found[4] else f"{(found[1] or found[3])[0]}1"


def value_of(text: str, values: Values) -> int | None:
    """The value of an expression of whole numbers in C++ or Python; None if it is not certain."""
    for found, instead in _PLAIN:
        text = found.sub(instead, text)
    try:
        tree = ast.parse(text.strip()[:_MOST_CHARACTERS], mode="eval")
        parts = list(ast.walk(tree))
        numbers = all(
            isinstance(getattr(each, "value", 0), int) and len(getattr(each, "ops", "1")) == 1 for each in parts
        )
        names = {each.id for each in parts if isinstance(each, ast.Name)}
        known = {name: _CALLED.get(name) or values(name) for name in names}
        if None in known.values() or not numbers or not all(isinstance(each, _PARTS) for each in parts):
            return None
        return int(eval(compile(tree, "<source>", "eval"), {"__builtins__": {}, **known}))  # noqa: S307  # of _PARTS
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError):
        return None
