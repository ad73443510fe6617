"""Mistakes as named edits: a right protocol, the text of it that is replaced, and what is found then."""

import __future__

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import LENIENT, Strictness
from pipesim.model.ops import Engine, Fence, Order, Scope

Edits = Mapping[str, str]


@dataclass(frozen=True)
class Mistake:
    """``edits`` of the function ``right``, whose sizes are then ``sizes`` if nothing else is asked.

    ``claims``: ``condition: KIND, KIND``, of which the first that holds gives every kind that some schedule shows;
    where none holds it is proved. ``offered``: the corrections, without places. ``rights``: edits of ``right`` that are
    proved; ``rules``: those that it breaks.
    """

    name: str
    right: Callable[..., Protocol]
    edits: Edits
    claims: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    rights: tuple[Edits, ...] = ({},)
    rules: Strictness = LENIENT

    @property
    def wrong(self) -> Callable[..., Protocol]:
        """The function with the mistake; it has the mistake's name where that can be one of a function."""
        return edited(self.right, self.edits, self.sizes, self.name if self.name.isidentifier() else "")

    @property
    def corrected(self) -> list[Callable[..., Protocol]]:
        """Right functions of the same sizes."""
        return [edited(self.right, edits, self.sizes) for edits in self.rights]

    def kinds(self, size: Mapping[str, int]) -> set[str]:
        """The kinds that are claimed at this size."""
        for claim in self.claims:
            condition, _, kinds = claim.rpartition(": ")
            if eval(condition, {"__builtins__": {}}, dict(size)):
                return set(kinds.split(", "))
        return set()


def edited(
    right: Callable[..., Protocol], edits: Edits, sizes: Mapping[str, int] | None = None, name: str = ""
) -> Callable[..., Protocol]:
    """The function with each text replaced wherever it stands; lines of a new text are indented as its first one."""
    text, first, file = _source(right)
    if name:
        text = text.replace(f'"{right.__name__}"', f'"{name}"').replace(f"def {right.__name__}(", f"def {name}(")
    for old, new in edits.items():
        assert old in text, f"{right.__name__} has no {old!r}"
        text = "".join(line.replace(old, _indented(new, line)) for line in text.splitlines(keepends=True))
    made: dict[str, Callable[..., Protocol]] = {}
    flags = __future__.annotations.compiler_flag
    known = right.__globals__ | {each.__name__: each for each in (Engine, Fence, Order, Scope)}
    exec(compile("\n" * (first - 1) + text, file, "exec", flags), known, made)  # our own
    (function,) = made.values()
    defaults = {each.name: each.default for each in inspect.signature(function).parameters.values()}
    function.__defaults__ = tuple((defaults | dict(sizes or {})).values())
    return function


@cache
def _source(function: Callable[..., Protocol]) -> tuple[str, int, str]:
    """The text of a function, the line that it begins in, and its file."""
    lines, first = inspect.getsourcelines(function)
    file = inspect.getsourcefile(function)
    assert file is not None
    return "".join(lines), first, file


def _indented(new: str, line: str) -> str:
    return new.replace("\n", "\n" + line[: len(line) - len(line.lstrip())])
