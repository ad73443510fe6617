"""Tiles that a cluster is handed out one after the other: of each kind after each other kind, where that can be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from pipesim.answers.every_cta.conditions import Evaluation, completed, holds, words_of
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import FreeInputs

if TYPE_CHECKING:
    import numpy as np  # which few checks need

MOST_TILES = 64  #: of one path through pairs of kinds
MOST_WALKS = 8


def kinds_of_tiles(
    runs: Sequence[FreeInputs], array: FreeArray, place: Mapping[str, np.ndarray], most: int
) -> np.ndarray:
    """The kind of each tile, by its number: those that runs cannot distinguish by what they ask about one tile.

    ``most``: tiles that are looked at. ``place``: of the cluster whose runs these are.
    """
    import numpy as np

    numbers = np.arange(most, dtype=np.int64)
    columns: list[Any] = [np.zeros(most, dtype=bool)]
    for inputs in runs:
        place = completed(inputs, place)
        for terms, condition in inputs.conditions.items():
            form = Form(0, terms)
            words = words_of(form, Evaluation(place))
            if len(words) == 1 and words[0][0] == array.name:
                value = Evaluation(place, {words[0]: numbers}).sum(form)
                columns.append(np.broadcast_to(holds(condition, value, form), most))
    made: np.ndarray = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1]
    return made.reshape(-1)


def walks(kinds: Sequence[int]) -> list[tuple[int, ...]]:
    """Numbers of tiles that rise, in several paths: each kind follows each other one, and itself, where that can be.

    After the last pair there are two more tiles, as far as any are left, since what is wrong shows later.
    """
    places: dict[int, list[int]] = {}
    for number, kind in enumerate(kinds):
        places.setdefault(kind, []).append(number)
    todo = {(a, b) for a, b in product(places, repeat=2) if _after(places, b, places[a][0]) is not None}
    found: list[tuple[int, ...]] = []
    while todo and len(found) < MOST_WALKS and len(places) > 1:
        at = 0 if not found else min(places[first][0] for first, _ in todo)
        walk = [at]
        while len(walk) < MOST_TILES:
            at = walk[-1]
            steps = [(n, b) for a, b in todo if a == kinds[at] and (n := _after(places, b, at)) is not None]
            if steps:
                todo.discard((kinds[at], min(steps)[1]))
                walk.append(min(steps)[0])
                continue
            begins = [n for a, b in todo if (n := _begins(places, a, b, at)) is not None]
            if not begins:
                break
            walk.append(min(begins))
        found.append((*walk, *range(walk[-1] + 1, min(walk[-1] + 3, len(kinds)))))
    return found


def _after(places: Mapping[int, list[int]], kind: int, number: int) -> int | None:
    """The next tile of a kind."""
    at = bisect_right(places[kind], number)
    return places[kind][at] if at < len(places[kind]) else None


def _begins(places: Mapping[int, list[int]], a: int, b: int, number: int) -> int | None:
    """The next tile of kind ``a`` after which there is one of kind ``b``."""
    first = _after(places, a, number)
    return None if first is None or _after(places, b, first) is None else first
