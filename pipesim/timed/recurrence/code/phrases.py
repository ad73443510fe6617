"""Finds the phrases of a list: sequences that come again and again, by Re-Pair (Larsson and Moffat, 1999).

The pairs of neighbours that come most often become one symbol each, and so on until no pair comes often. Of a run
with a period, phrases are soon as long as the period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

LEAST = 8  #: times that a pair comes, to become one
LONGEST = 64  #: symbols of a phrase


def phrases(symbols: Sequence[Hashable]) -> list[int]:
    """The lengths of phrases, one after the other, that ``symbols`` consist of."""
    numbers: dict[Hashable, int] = {}
    sequence = [numbers.setdefault(each, len(numbers)) for each in symbols]
    lengths = [1] * len(numbers)
    while pairs := _often(sequence, lengths):
        sequence = _joined(sequence, pairs)
    return [lengths[each] for each in sequence]


def _often(sequence: list[int], lengths: list[int]) -> dict[tuple[int, int], int]:
    """Pairs that come often, with the number of what replaces each; no symbol ends one and begins another."""
    found: dict[tuple[int, int], int] = {}
    begins: set[int] = set()
    ends: set[int] = set()
    for pair, times in Counter(pairwise(sequence)).most_common():
        first, second = pair
        if times < LEAST:
            break
        length = lengths[first] + lengths[second]
        if length <= LONGEST and first not in ends and second not in begins:
            begins.add(first)
            ends.add(second)
            found[pair] = len(lengths)
            lengths.append(length)
    return found


def _joined(sequence: list[int], pairs: dict[tuple[int, int], int]) -> list[int]:
    """The sequence with each of these pairs as one symbol, from left to right."""
    found: list[int] = []
    waiting = -1  # the symbol that may begin a pair, -1: none
    for each in sequence:
        joined = pairs.get((waiting, each))
        if joined is not None:
            found.append(joined)
            waiting = -1
        else:
            if waiting >= 0:
                found.append(waiting)
            waiting = each
    if waiting >= 0:
        found.append(waiting)
    return found
