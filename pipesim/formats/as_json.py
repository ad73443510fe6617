"""``--json``: any of our dataclasses as JSON, keys as the fields are named, enums by their names."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from pipesim.errors import PipesimError
from pipesim.model.finding import Deadlock
from pipesim.trace.schema import Trace

Words = Callable[[object], dict[str, object]]  #: members that a dataclass gets beside its fields, or instead of them


def as_json(value: object, words: Words | None = None) -> str:
    """``value`` as indented JSON, in ASCII: the same bytes whatever the terminal can print.

    In a log of a CI system no text of it is a command: ``##[`` anywhere in a line would be one, and a line begins with
    a quote, a bracket or a digit. What is read back is the same.
    """
    return json.dumps(plain(value, words), indent=2).replace("##", "#\\u0023")


def plain(value: object, words: Words | None = None) -> object:
    """``value`` in dicts, lists, numbers and text.

    Keys of a dict that are tuples are joined by a colon and a space. Of a trace only its name and size: the events are
    in its file. A deadlock says so, as a fault does by its kind. An error has its class's name as ``kind``, and its
    parts. ``words`` makes the sentences about a dataclass.
    """
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Trace):
        return {"protocol": value.meta.protocol, "source": value.meta.source, "events": len(value.events)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        head = {"kind": value.kind} if isinstance(value, Deadlock) else {}
        fields = {field.name: plain(getattr(value, field.name), words) for field in dataclasses.fields(value)}
        return head | fields | (words(value) if words is not None else {})
    if isinstance(value, PipesimError):
        parts = {"fact": value.fact, "place": value.place, "cause": value.cause, "correction": value.correction}
        return {"kind": type(value).__name__, **parts}
    if isinstance(value, dict):
        return {
            ": ".join(key) if isinstance(key, tuple) else str(key): plain(part, words) for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(part, words) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value
