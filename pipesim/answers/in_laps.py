"""A trace of so long a run that its program is not made: the protocol's loop is known by its laps."""

from collections.abc import Mapping

from pipesim.answers.any_size import build_by, trip_counts
from pipesim.conform.replay.in_laps import KEPT, LongRun
from pipesim.prove.any_size.family import Family
from pipesim.targets import Target

_LONG = 256  #: laps: fewer are replayed


def long_run(target: Target, params: Mapping[str, int], grid: int) -> LongRun | None:
    """The program of these parameters in laps of one trip count, None where it has none that all values share.

    That the protocol continues as it does at the values looked at is assumed, as by ``check --any``.
    """
    values = {**target.defaults, **params}
    small = target.build(grid=grid)
    for name in sorted(trip_counts(target, {}, small), key=lambda each: -values[each]):
        build = build_by(target, params, name, grid)
        family = Family(name, build)
        every = family.verdict() if values[name] >= _LONG else None
        every = family.far(every) if every is not None and every.lap else None
        if every is None or not every.lap:
            continue
        base = every.first + (values[name] - every.first) % every.lap
        laps, kept = family.laps_at(base), base + (KEPT - 1) * every.lap
        few, one_more = build(kept), build(kept + every.lap)
        more = (values[name] - kept) // every.lap
        if len(laps) != 1 or few is None or one_more is None or more < _LONG:
            continue
        if family.covers(every, kept, few) and family.covers(every, kept + every.lap, one_more):
            return LongRun(few, one_more, laps[0], more)
    return None
