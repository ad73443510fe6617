"""What was read of words of global memory beside the writes that can have happened by then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.recorded_agent import NEVER
from pipesim.model.words import GlobalWord, WordAct
from pipesim.trace.schema import Events
from pipesim.trace.sites import WordRecords


@dataclass(frozen=True)
class RecordedWords:
    """The words of a program of CTAs that talk by them, and the accesses that its kernel records."""

    words: Sequence[GlobalWord]
    records: WordRecords


class EarlyRead(NamedTuple):
    """A wait for a word that read a value before it can have been there. ``gap``: cycles by which, 0 if not known."""

    agent: int
    pc: int
    row: int
    word: str
    value: int
    gap: int


def early_read(
    events: Events, aligned: Sequence[AgentAlignment], words: Sequence[GlobalWord], uncertainty: int
) -> EarlyRead | None:
    """The first such wait of a CTA, or of CTAs that are seen as one; None if there is none.

    Of a word that is only added to, no more can be read than what all additions make that were begun by then; of one
    that is only stored to, what it held at first or what was stored. Where both are mixed nothing is asked, nor of a
    word that holds more than 32 bits.
    """
    rows = {(each.agent, pc): mine for each in aligned for pc, mine in zip(each.ran, each.rows, strict=True) if mine}
    found: list[tuple[int, EarlyRead]] = []
    for word in words:
        acts = {write.act for write in word.writes}
        adds = acts == {WordAct.ADD} and all(write.added > 0 for write in word.writes)
        if (not adds and WordAct.ADD in acts) or max(word.first, *(w.after for w in word.writes), 0) >> 32:
            continue
        begun = sorted(
            (int(events.cycle[mine[0]]) if (mine := rows.get((w.agent, w.last))) else NEVER, w.added, w.after)
            for w in word.writes
        )
        for wait in word.waits:
            mine = rows.get((wait.agent, wait.last), ())
            if wait.passes is None or len(mine) != 2:
                continue
            value, by = int(events.value[mine[1]]), int(events.cycle[mine[1]])
            first = _first_time(word, begun, value, adds=adds)
            if first is None or first > by + uncertainty:
                gap = 0 if first is None else first - by
                found.append((by, EarlyRead(wait.agent, wait.last, mine[1], word.name, value, gap)))
    return min(found)[1] if found else None


def _first_time(word: GlobalWord, begun: Sequence[tuple[int, int, int]], value: int, *, adds: bool) -> int | None:
    """The first time at which the word can have had the value, None if it never had it."""
    if value == word.first:
        return NEVER
    if not adds:
        return next((time for time, _, after in begun if after == value), None)
    now = word.first
    for time, added, _ in begun:
        now += added
        if now >= value:
            return time
    return None
