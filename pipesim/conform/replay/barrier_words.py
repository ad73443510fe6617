"""Barrier words that were read after ``mbarrier.inval``, compared with the barriers of the machine."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.barrier_word import BarrierWord, decode_word
from pipesim.model.machine import State
from pipesim.model.program import Program
from pipesim.trace.schema import TraceMeta


class WordPair(NamedTuple):
    """One barrier: its name, the word that was read, and what the machine leaves."""

    name: str
    read: BarrierWord
    model: BarrierWord


def words_read(meta: TraceMeta, cta: int) -> dict[tuple[str, int], BarrierWord]:
    """What the words of a CTA's barriers said, by name and stage; {} if they were not read."""
    return {key[1:]: word for key, word in _all_words(meta, cta).items() if not key[0]}


def _all_words(meta: TraceMeta, cta: int) -> dict[tuple[int, str, int], BarrierWord]:
    """The same of all CTAs of the cluster that stands under this number, by rank, name and stage."""
    words = next((header.barrier_words for header in meta.ctas if header.cta == cta), ())
    order = [(group.name, stage) for group in meta.barriers for stage in range(group.stages)]
    ranks = -(-len(words) // len(order)) if order else 0
    keys = ((rank, *key) for rank in range(ranks) for key in order)
    return dict(zip(keys, map(decode_word, words), strict=False))


def word_left(barrier: BarrierState) -> BarrierWord:
    """What the word says that the hardware leaves of this barrier."""
    return BarrierWord(barrier.expected, barrier.pending, barrier.tx, barrier.done & 1)


def words_beside(program: Program, state: State, meta: TraceMeta, cta: int) -> list[WordPair]:
    """The barriers of a CTA, or of all CTAs of a cluster, that were read and are live in ``state``."""
    read = _all_words(meta, cta)
    return [
        WordPair(program.barrier_name(n), read[key], word_left(state.barriers[n]))
        for n, barrier in enumerate(program.barriers)
        if (key := (barrier.cta, barrier.name, barrier.stage)) in read and state.barriers[n].life == LIVE
    ]


def word_words(word: BarrierWord) -> str:
    """A word's fields: ``parity 0, 2 of 2 arrivals pending, 0 bytes missing``."""
    return f"parity {word.parity}, {word.pending:,} of {word.expected:,} arrivals pending, {word.tx:,} bytes missing"
