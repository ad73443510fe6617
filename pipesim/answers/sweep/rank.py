"""Which configurations of a sweep are the best, and which is the smallest that is nearly as good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipesim.answers.views.sweep import Comparable, Configuration, Metric, RankedConfiguration, Times, WorkUnit

WITHIN_PERMILLE = 10  #: of the best: what counts as nearly as good


#: The metric where none was chosen: the first of period, run and throughput that can be compared.
METRIC = {
    Comparable.PERIODS: Metric.PERIOD,
    Comparable.NOT_STEADY: Metric.RUN,
    Comparable.OTHER_ITERATIONS: Metric.RUN,
    Comparable.OTHER_WORK: Metric.THROUGHPUT,
    Comparable.NO_WORK: Metric.RUN,
}


def comparable(configurations: Iterable[Configuration]) -> Comparable:
    """What the usable ones have in common.

    Cycles of a run can be compared where all do the same work, and cycles an iteration where that work is the same in
    an iteration as well: of two kernels, one of which takes two tiles in an iteration, its period says nothing.
    """
    times = [each.times for each in configurations if each.usable and each.times is not None]
    if len({(each.work, each.unit) for each in times}) > 1:
        return Comparable.OTHER_WORK
    steady = all(each.period_millicycles is not None for each in times)
    if steady and len({each.iterations for each in times}) <= 1:
        return Comparable.PERIODS
    if times and not any(each.work for each in times):
        return Comparable.NO_WORK
    return Comparable.OTHER_ITERATIONS if steady else Comparable.NOT_STEADY


def unit_for(configurations: Iterable[Configuration]) -> WorkUnit | None:
    """What throughput counts for all of them: bytes if one of them has no matrix multiplication; None of none."""
    units = {each.times.unit for each in configurations if each.usable and each.times is not None}
    return None if not units else WorkUnit.BYTES if WorkUnit.BYTES in units else WorkUnit.MATRIX


def rank(configurations: Sequence[Configuration], metric: Metric) -> tuple[RankedConfiguration, ...]:
    """The usable ones that have a number, the best first; of equally good ones the smallest, then the first given."""
    unit = unit_for(configurations)
    numbers = [
        (value, each)
        for each in configurations
        if each.usable and each.times is not None and (value := value_of(each.times, metric, unit)) is not None
    ]
    higher = metric is Metric.THROUGHPUT
    numbers.sort(key=lambda pair: (-pair[0] if higher else pair[0], *_size(pair[1])))
    return tuple(RankedConfiguration(each, value, _off(value, numbers[0][0], higher=higher)) for value, each in numbers)


def smallest(
    order: Sequence[RankedConfiguration], within_permille: int = WITHIN_PERMILLE
) -> RankedConfiguration | None:
    """Among those this close to the best the one with the least shared memory, then registers, then threads."""
    near = [(off, each) for each in order if (off := each.off_permille) is not None and off <= within_permille]
    return min(near, key=lambda pair: (*_size(pair[1].configuration), pair[0]), default=(0, None))[1]


def value_of(times: Times, metric: Metric, unit: WorkUnit | None) -> int | None:
    """The metric in thousandths of its unit; None where there is no such number."""
    match metric:
        case Metric.PERIOD:
            return times.period_millicycles
        case Metric.RUN:
            return 1000 * times.cycles
        case Metric.THROUGHPUT:
            return 1000 * times.work // times.cycles if times.cycles and times.unit is unit else None


def _off(value: int, best: int, *, higher: bool) -> int | None:
    """How much worse than the best, in thousandths of the time that the best takes; None if that is not a number."""
    if value == best:
        return 0
    more, less = (best, value) if higher else (value, best)
    return round(1000 * more / less) - 1000 if less else None


def _size(configuration: Configuration) -> tuple[int, int, int]:
    return configuration.resources.size if configuration.resources is not None else (0, 0, 0)
