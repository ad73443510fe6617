"""``--json``: any of our dataclasses as JSON, keys as the fields are named, enums by their names."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path

from pipesim.conform.pair.result import Behaviour
from pipesim.conform.result import Conformance
from pipesim.model.finding import Deadlock, Verdict
from pipesim.trace.schema import Trace

#: The verdict on one run, or on two: what agrees once proves nothing about other schedules.
_OF_A_TRACE = {Verdict.PROVED: "agrees", Verdict.REFUTED: "differs", Verdict.UNKNOWN: "unknown"}


def as_json(value: object) -> str:
    """``value`` as indented JSON, in ASCII: the same bytes whatever the terminal can print."""
    return json.dumps(plain(value), indent=2)


def plain(value: object) -> object:
    """``value`` in dicts, lists, numbers and text.

    Keys of a dict that are tuples are joined by a colon and a space. Of a trace only its name and size: the events are
    in its file. A deadlock says so, as a fault does by its kind. The verdict on a trace is in words of its own.
    """
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Trace):
        return {"protocol": value.meta.protocol, "source": value.meta.source, "events": len(value.events)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        head = {"kind": "deadlock"} if isinstance(value, Deadlock) else {}
        found = head | {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return found | {"verdict": _OF_A_TRACE[value.verdict]} if isinstance(value, (Conformance, Behaviour)) else found
    if isinstance(value, dict):
        return {": ".join(key) if isinstance(key, tuple) else str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value
