"""What every kind of finding is, read off :mod:`pipesim.kinds`."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable

from pipesim.answers.views.kinds import KindLine, KindReport, Written
from pipesim.errors import UsageError
from pipesim.kinds.topic import Operations, PtxBody, Topic
from pipesim.kinds.topics import TOPICS
from pipesim.lang.protocol import Protocol
from pipesim.model.finding import FaultKind

_USED = ("Engine", "Fence", "Protocol", "Scope", "Warp")  #: names of pipesim that examples use


def kind_lines() -> tuple[KindLine, ...]:
    """All kinds, findings before warnings."""
    return tuple(KindLine(topic.name, topic.title, topic.warns) for topic in TOPICS.values())


def kind_named(text: str) -> KindReport:
    """The kind of this name, in any case, with hyphens or underscores. UsageError with the nearest if there is none."""
    name = text.lower().replace("-", "_")
    if name not in TOPICS:
        near = difflib.get_close_matches(name, TOPICS, n=3, cutoff=0.5)
        raise UsageError(
            f"there is no kind {text!r}",
            correction=f"did you mean {' or '.join(near)}?" if near else "`pipesim explain` lists them all",
        )
    return _report(TOPICS[name])


def _report(topic: Topic) -> KindReport:
    written, example, corrected = _example(topic)
    return KindReport(
        topic.name, topic.title, topic.warns, isinstance(topic.kind, FaultKind) and topic.kind.traps, topic.what,
        topic.shows, topic.corrected, topic.switches, written, example, corrected,
    )  # fmt: skip


def _example(topic: Topic) -> tuple[Written, str, str]:
    match topic.example:
        case Operations(wrong, right):
            return Written.OPERATIONS, "\n".join(wrong), "\n".join(right)
        case PtxBody(wrong, right):
            return Written.PTX, wrong.rstrip("\n"), right.rstrip("\n")
        case function:
            return Written.PROTOCOL, file_of(function), ""


def file_of(function: Callable[..., Protocol]) -> str:
    """A Python file with this function alone."""
    source = inspect.getsource(function)
    used = [name for name in _USED if re.search(rf"\b{name}\b", source)]
    return f"from pipesim import {', '.join(used)}\n\n\n{source}".rstrip("\n")
