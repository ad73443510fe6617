"""The buffer a simulation records into: append only, one call an event, turned into columns once at the end."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from pipesim.bounds import MAX_KHZ, MAX_TRACE_TIME
from pipesim.errors import ParameterError
from pipesim.trace.arrays import np
from pipesim.trace.schema import Column, Events

_WIDTH = 8  #: integers of an event in an EventBuffer

_PS_PER_MS = 1_000_000_000


def cycles_to_ps(cycles: Column, sm_khz: int) -> Column:
    """Picoseconds of these cycles at this clock, rounded down, in integers: ``cycles * 10**9 // sm_khz``.

    The product would leave 64 bits after a few seconds, so whole milliseconds and the rest are converted apart.
    Raises ParameterError for a clock below 1 kHz or above MAX_KHZ, or a time of more than 53 days.
    """
    if not 1 <= sm_khz <= MAX_KHZ:
        raise ParameterError(
            f"an SM clock of {sm_khz} kHz is out of range",
            cause="the latency profile or the device gives no SM clock, or gives it in another unit",
            correction=f"give sm_khz in kHz, between 1 and {MAX_KHZ}",
        )
    milliseconds, rest = np.divmod(cycles, sm_khz)
    limit = MAX_TRACE_TIME // _PS_PER_MS - 1
    if np.any((milliseconds > limit) | (milliseconds < -limit)):  # there is no magnitude of the least 64-bit integer
        raise ParameterError(
            "the trace is longer than 53 days, the most that a time in picoseconds holds",
            cause="operations of very many cycles, or a clock that is in another unit",
            correction="choose fewer cycles of work",
        )
    return np.asarray(milliseconds * _PS_PER_MS + rest * _PS_PER_MS // sm_khz, dtype=np.int64)


def ps_to_cycles(ps: Column, sm_khz: int) -> Column:
    """Cycles of these picoseconds at this clock, rounded down: ``ps * sm_khz // 10**9``, of up to MAX_TRACE_TIME.

    The product would leave 64 bits, so whole milliseconds and the rest are converted apart.
    """
    milliseconds, rest = np.divmod(ps, _PS_PER_MS)
    return np.asarray(milliseconds * sm_khz + rest * sm_khz // _PS_PER_MS, dtype=np.int64)


class Meaning(NamedTuple):
    """What a kind of timestamp says besides its time: columns of :class:`Events`."""

    cta: int
    agent: int
    site: int
    stage: int
    parity: int
    value: int


class StampBuffer:
    """Timestamps in the order in which they happened: what each means, as a number, and when it was.

    ``flat``: those two numbers of each, by turns. An engine may extend it by both together.
    """

    def __init__(self, meanings: Sequence[Meaning]) -> None:
        self._table = np.array(meanings, dtype=np.int64).reshape(-1, len(Meaning._fields))
        self.flat: list[int] = []  # one flat list: the cheapest append, and one conversion at the end

    def stamp(self, meaning: int, cycle: int) -> None:
        """Record one event: the index of its meaning, and its time in cycles."""
        self.flat += (meaning, cycle)

    def events(self, sm_khz: int) -> Events:
        """The table so far, sorted by (CTA, agent) and within those by the order of stamping.

        ``iteration`` counts the timestamps of an agent at a site. ``time_ps`` follows from the cycle at this clock; a
        simulated time has no error (``error_ps`` 0) and no reading of the global timer (-1). Raises ParameterError for
        a time that is not a 64-bit integer, or a clock out of range.
        """
        stamps = _integers(self.flat)
        order = np.argsort(_group_numbers(self._table[:, :2])[stamps[::2]], kind="stable")
        meaning = stamps[::2][order]
        cta, agent, site, stage, parity, value = (column[meaning] for column in self._table.T)
        passes = _count_earlier(_group_numbers(self._table[:, :3])[meaning])
        return _table(cta, agent, site, stage, parity, passes, value, stamps[1::2][order], sm_khz=sm_khz)


class EventBuffer:
    """Events given whole, one call an event: for traces that something else makes, such as a converter."""

    def __init__(self) -> None:
        self._flat: list[int] = []  # one flat list: the cheapest append, and one conversion at the end

    def append(
        self, cta: int, agent: int, site: int, stage: int, parity: int, iteration: int, value: int, cycle: int
    ) -> None:
        """Record one event. The arguments are the columns of :class:`Events` of the same names."""
        self._flat.extend((cta, agent, site, stage, parity, iteration, value, cycle))

    def events(self, sm_khz: int) -> Events:
        """The table so far, sorted by (CTA, agent) and within those by the order of appending.

        ``time_ps`` follows from the cycle at this clock; a simulated time has no error (``error_ps`` 0) and no reading
        of the global timer (-1). Raises ParameterError for a value that is not a 64-bit integer, or a clock out of
        range.
        """
        columns = _integers(self._flat).reshape(-1, _WIDTH)
        order = np.lexsort((columns[:, 1], columns[:, 0]))  # stable: ties keep the order of appending
        return _table(*(np.ascontiguousarray(column) for column in columns[order].T), sm_khz=sm_khz)


def _integers(values: list[int]) -> Column:
    """The values as 64-bit integers. NumPy would cut a fraction silently if the type were asked for."""
    try:
        return np.array(array("q", values), dtype=np.int64)  # which takes no fraction, and converts fastest
    except (TypeError, OverflowError):
        whole = all(type(value) is int for value in values)
        raise ParameterError(
            "an event holds a value that is not a 64-bit integer",
            cause="an operation of very many cycles" if whole else "a latency or a count was computed as a fraction",
            correction="choose smaller numbers" if whole else "keep times and counts in integers: // instead of /",
        ) from None


def _table(
    cta: Column, agent: Column, site: Column, stage: Column, parity: Column, iteration: Column, value: Column,
    cycle: Column,
    *, sm_khz: int,
) -> Events:  # fmt: skip
    """Simulated events: no uncertainty and no reading of the global timer."""
    return Events(
        cta, agent, site, stage, parity, iteration, value, cycle,
        time_ps=cycles_to_ps(cycle, sm_khz),
        error_ps=np.zeros(len(cycle), dtype=np.int64),
        globaltimer_ns=np.full(len(cycle), -1, dtype=np.int64),
    )  # fmt: skip


def _group_numbers(rows: Column) -> Column:
    """A small number for each row, equal for equal rows and in their order: NumPy sorts 16 bits by counting."""
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(numbers.reshape(-1), dtype=np.uint16 if len(rows) < 1 << 16 else np.int64)


def _count_earlier(places: Column) -> Column:
    """For each event how many events of the same place stand before it."""
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=1) if len(places) else np.zeros(1, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    passes = np.empty(len(places), dtype=np.int64)
    passes[order] = np.arange(len(places)) - np.repeat(starts, counts)
    return passes
