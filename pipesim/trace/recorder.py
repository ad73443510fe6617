"""The buffer a simulation records into: append only, one call an event, turned into columns once at the end."""

from __future__ import annotations

import numpy as np

from pipesim.errors import ParameterError
from pipesim.trace.schema import Column, Events

_WIDTH = 8  #: integers an appended event takes
_PS_PER_MS = 1_000_000_000


def cycles_to_ps(cycles: Column, sm_khz: int) -> Column:
    """Picoseconds of these cycles at this clock, rounded down, in integers: ``cycles * 10**9 // sm_khz``.

    The product would leave 64 bits after a few seconds, so whole milliseconds and the rest are converted apart.
    Raises ParameterError for a clock below 1 kHz or above 2 GHz times four, or a time of more than 106 days.
    """
    if not 1 <= sm_khz <= 8_000_000:
        raise ParameterError(
            f"an SM clock of {sm_khz} kHz is out of range",
            cause="the latency profile or the device gives no SM clock, or gives it in another unit",
            correction="give sm_khz in kHz, between 1 and 8000000",
        )
    milliseconds, rest = np.divmod(cycles, sm_khz)
    limit = np.iinfo(np.int64).max // _PS_PER_MS - 1
    if np.any(np.abs(milliseconds) > limit):
        raise ParameterError("the trace is longer than 106 days, which 64-bit picoseconds cannot hold")
    return np.asarray(milliseconds * _PS_PER_MS + rest * _PS_PER_MS // sm_khz, dtype=np.int64)


class EventBuffer:
    """Events in the order in which they happened, of all agents of all CTAs."""

    def __init__(self) -> None:
        self._flat: list[int] = []  # one flat list: the cheapest append, and one conversion at the end

    def __len__(self) -> int:
        return len(self._flat) // _WIDTH

    def append(
        self, cta: int, agent: int, site: int, stage: int, parity: int, iteration: int, value: int, cycle: int
    ) -> None:
        """Record one event. The arguments are the columns of :class:`Events` of the same names."""
        self._flat.extend((cta, agent, site, stage, parity, iteration, value, cycle))

    def events(self, sm_khz: int) -> Events:
        """The table so far, sorted by (CTA, agent) and within those by the order of appending.

        ``time_ps`` follows from the cycle at this clock; a simulated time has no error (``error_ps`` 0) and no reading
        of the global timer (-1). Raises ParameterError for a value that is no 64-bit integer, or a clock out of range.
        """
        table = np.array(self._flat) if self._flat else np.zeros(0, dtype=np.int64)
        if table.dtype != np.int64:  # NumPy would cut a fraction silently if the type were asked for
            raise ParameterError(
                "an event holds a value that is no 64-bit integer",
                cause="a latency or a count was computed as a fraction",
                correction="keep times and counts in integers: // instead of /",
            )
        columns = table.reshape(-1, _WIDTH)
        order = np.lexsort((columns[:, 1], columns[:, 0]))  # stable: ties keep the order of appending
        cta, agent, site, stage, parity, iteration, value, cycle = (
            np.ascontiguousarray(column) for column in columns[order].T
        )
        return Events(
            cta, agent, site, stage, parity, iteration, value, cycle,
            time_ps=cycles_to_ps(cycle, sm_khz),
            error_ps=np.zeros(len(cycle), dtype=np.int64),
            globaltimer_ns=np.full(len(cycle), -1, dtype=np.int64),
        )  # fmt: skip
