"""``--json``: any of our dataclasses as JSON, keys as the fields are named, enums by their names."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path


def plain(value: object) -> object:
    """``value`` in dicts, lists, numbers and text. Keys of a dict that are tuples are joined with spaces."""
    if isinstance(value, Enum):
        return value.name.lower()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "meta") and hasattr(value, "events"):  # a trace: its events are in its file
        return {"protocol": value.meta.protocol, "source": value.meta.source, "events": len(value.events)}
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value


def print_json(value: object) -> None:
    """Print ``value`` as indented JSON on standard output."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))  # noqa: T201  # the command's output
