"""Which lane of a warp stores its records: one that takes part in every step, or as few as the steps need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwkernels.rewriter.layout import LANES, NO_STREAM, StreamKey
from pipesim.errors import PtxError
from pipesim.ptx.emit.record import Stream


@dataclass(frozen=True)
class Writers:
    """The streams, and for each agent of the program the lanes that store for it."""

    streams: tuple[StreamKey, ...]
    lanes: tuple[tuple[int, ...], ...]


def writers(streams: Sequence[Stream], recorded: Mapping[int, int], chosen: frozenset[int]) -> Writers:
    """Choose them; ``recorded``: sites by position; ``chosen``: the agents whose warps record.

    A lane that stores does so at each recorded step that it executes. PtxError if there would be too many.
    """
    lanes: list[tuple[int, ...]] = []
    keys: list[StreamKey] = []
    for agent, stream in enumerate(streams):
        masks = {step.lanes for step in stream.path if step.position in recorded} if agent in chosen else set()
        mine = _hitting_lanes(masks)
        lanes.append(mine)
        keys += [StreamKey(stream.cta, stream.warp, lane) for lane in mine]
    if len(keys) >= NO_STREAM:
        raise PtxError(
            f"{len(keys)} lanes would store records, and a buffer has {NO_STREAM - 1} streams",
            cause="many warps whose lanes synchronise apart",
            correction="record fewer roles",
        )
    return Writers(tuple(keys), tuple(lanes))


def _hitting_lanes(masks: set[int]) -> tuple[int, ...]:
    """Lanes so that each mask has one of them: the one that most masks have first, the lowest of equal ones."""
    found: list[int] = []
    left = set(masks)
    while left:
        best = max(range(LANES), key=lambda lane: (sum(mask >> lane & 1 for mask in left), -lane))
        found.append(best)
        left = {mask for mask in left if not mask >> best & 1}
    return tuple(sorted(found))


def writer(lanes: tuple[int, ...], mask: int) -> int:
    """The lane whose record counts for a step that these lanes execute: the lowest that stores."""
    return next(lane for lane in lanes if mask >> lane & 1)
