"""Which configurations of a sweep are the best, and which is the smallest that is nearly as good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipesim.answers.views.sweep import Configuration, Metric, Ranked, Times, WorkUnit

WITHIN_PERMILLE = 10  #: of the best: what counts as nearly as good


def metric_for(configurations: Iterable[Configuration]) -> Metric:
    """The metric of configurations that nobody has chosen one for.

    The period where all have one and do the same work, the whole run where not all have one, throughput where they do
    different amounts of work: then neither cycles an iteration nor cycles of a run can be compared.
    """
    times = [each.times for each in configurations if each.usable and each.times is not None]
    if len({each.work for each in times}) > 1:
        return Metric.THROUGHPUT
    return Metric.PERIOD if all(each.period_millicycles is not None for each in times) else Metric.RUN


def unit_for(configurations: Iterable[Configuration]) -> WorkUnit | None:
    """What throughput counts for all of them: bytes if one of them has no matrix multiplication; None of none."""
    units = {each.times.unit for each in configurations if each.usable and each.times is not None}
    return None if not units else WorkUnit.BYTES if WorkUnit.BYTES in units else WorkUnit.MATRIX


def ranked(configurations: Sequence[Configuration], metric: Metric) -> tuple[Ranked, ...]:
    """The usable ones that have a number, the best first; of equally good ones the smallest, then the first given."""
    unit = unit_for(configurations)
    numbers = [
        (value, each)
        for each in configurations
        if each.usable and each.times is not None and (value := value_of(each.times, metric, unit)) is not None
    ]
    higher = metric is Metric.THROUGHPUT
    numbers.sort(key=lambda pair: (-pair[0] if higher else pair[0], *_size(pair[1])))
    return tuple(Ranked(each, value, _off(value, numbers[0][0], higher=higher)) for value, each in numbers)


def smallest(order: Sequence[Ranked], within_permille: int = WITHIN_PERMILLE) -> Ranked | None:
    """Of those so close to the best the one with the least shared memory, then registers, then threads."""
    near = [each for each in order if each.off_permille <= within_permille]
    return min(near, key=lambda each: (*_size(each.configuration), each.off_permille), default=None)


def value_of(times: Times, metric: Metric, unit: WorkUnit | None) -> int | None:
    """The metric in thousandths of its unit; None where there is no such number."""
    match metric:
        case Metric.PERIOD:
            return times.period_millicycles
        case Metric.RUN:
            return 1000 * times.cycles
        case Metric.THROUGHPUT:
            return 1000 * times.work // times.cycles if times.cycles and times.unit is unit else None


def _off(value: int, best: int, *, higher: bool) -> int:
    """How much worse than the best, in thousandths of the time that the best takes."""
    if higher:
        return round(1000 * best / value) - 1000 if value else 10**6
    return round(1000 * value / best) - 1000 if best else 0


def _size(configuration: Configuration) -> tuple[int, int, int]:
    return configuration.resources.size if configuration.resources is not None else (0, 0, 0)
