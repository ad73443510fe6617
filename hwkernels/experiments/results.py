"""The stored answers of one device: a JSON document of integers, written the same way every time. No CUDA, no numpy.

``{"version": 1, "device": {name, sms, driver, nvrtc}, "experiments": {name: {"kernel": hash, "cases": {name: R}}}}``
where a result R is ``{"outcomes": {what happened: how often}, "data": {name: [integers]}}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipesim.bounds import MAX_JSON_BYTES
from pipesim.errors import EvidenceError, TraceFormatError
from pipesim.inputs import InputKind

VERSION = 1
FILE = "experiments.json"  #: its name in each device's folder of traces
TRAP = "trap"  #: how an outcome begins that ended the launch
_RESULTS = InputKind(
    "results file of the experiments",
    MAX_JSON_BYTES,
    TraceFormatError,
    "take the one of the repository",
)
FAILED = "failed"  #: how one begins that says why there is no answer


@dataclass(frozen=True)
class Outcome:
    """What one case did: how often each thing happened, and lists of integers by name."""

    outcomes: Mapping[str, int]
    data: Mapping[str, list[Any]]

    @property
    def trapped(self) -> bool:
        """True if every launch of the case ended in a trap."""
        return bool(self.outcomes) and all(name.startswith(TRAP) for name in self.outcomes)


@dataclass(frozen=True)
class Stored:
    """One device's answers. ``cases``: by experiment, then by case."""

    path: Path
    device: str
    driver: str
    nvrtc: str
    sms: int
    cases: Mapping[str, Mapping[str, Outcome]]


def read_results(path: Path) -> Stored:
    """The answers in a file. Raises TraceFormatError for a damaged or newer one."""
    try:
        document = _RESULTS.parse_json(_RESULTS.read_text(path), str(path))
        if document["version"] != VERSION:
            raise TraceFormatError(f"results of version {document['version']}, not {VERSION}", place=str(path))
        device = document["device"]
        cases = {
            name: {case: Outcome(result["outcomes"], result["data"]) for case, result in entry["cases"].items()}
            for name, entry in document["experiments"].items()
        }
        return Stored(path, device["name"], device["driver"], device["nvrtc"], device["sms"], cases)
    except (KeyError, TypeError, AttributeError) as error:
        raise TraceFormatError(
            "this is not a results file of the experiments", place=str(path), cause=f"{type(error).__name__}: {error}"
        ) from error


def stored_results(folder: Path) -> tuple[Stored, ...]:
    """The answers of every device below a folder of traces, by the name of its folder; () if there are none."""
    if not folder.is_dir():
        raise EvidenceError("there is no such folder of traces", place=str(folder))
    return tuple(read_results(path) for path in sorted(folder.glob(f"*/{FILE}")))


def dump(document: Mapping[str, Any]) -> str:
    """A document as text: names sorted, a line for each, and every list on one line."""
    return _text(document, "") + "\n"


def _text(value: Any, indent: str) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    if not value:
        return "{}"
    inner = indent + " "
    lines = [f"{inner}{json.dumps(str(k), ensure_ascii=False)}: {_text(value[k], inner)}" for k in sorted(value)]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
