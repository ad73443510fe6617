"""A report to be shown to others: without parameters, folders and what their values decided."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from pipesim.answers.views.check import CheckReport

#: Fields that hold values of the launch, or text that a source has; each is emptied.
_VALUES = frozenset({"params", "at", "settings", "contents", "differs", "because", "condition", "values", "nearby"})
_FOLDERS = re.compile(r"(?:[^\s'\"`(]*/)+(?=[^\s/'\"`)]+\.\w+)")


def redacted(report: CheckReport) -> CheckReport:
    """The report without parameters and folders. Source lines are not in it: they are read where it is shown."""
    made: CheckReport = _without(report)
    found = (replace(each, command=each.command.partition(" ")[0], identity=None) for each in made.refutations)
    return replace(made, refutations=tuple(found))


def without_folders(text: str) -> str:
    """Paths in a text as the names of their files."""
    return _FOLDERS.sub("", text)


def _without(value: Any) -> Any:
    match value:
        case str():
            return without_folders(value)
        case Enum() | bytes():
            return value
        case tuple() if hasattr(value, "_fields"):
            names: tuple[str, ...] = value._fields
            return type(value)(*(_part(name, part) for name, part in zip(names, value, strict=True)))
        case tuple():
            return tuple(map(_without, value))
        case Mapping():
            return {_without(key): _without(each) for key, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: _part(f.name, getattr(value, f.name)) for f in fields(value) if f.init})
    return value


def _part(name: str, value: Any) -> Any:
    """A field; ``at`` also names the place of a correction, which is none of these types."""
    if name in _VALUES and type(value) in (str, tuple):
        return type(value)()
    return {} if name in _VALUES and isinstance(value, Mapping) else _without(value)
