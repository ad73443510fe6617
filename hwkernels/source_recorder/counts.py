"""How many records each agent left: counted by the device, completed here where a trap or a hang came first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import UNWRITTEN
from hwkernels.source_recorder.layout import HEADER
from pipesim.errors import HardwareError

_ONES = np.uint32(0x01010101 * UNWRITTEN)


def least_capacity(room: int) -> int:
    """The records that a buffer must hold for ``recorder.cuh`` to use it: PIPESIM_ROOM is ``room``."""
    return 2 * room + 2


def buffer_records(iterations: int, room: int) -> int:
    """The records that a buffer needs for this many iterations of at most ``room``, as ``recorder.cuh`` lays it out."""
    return room * (iterations + 2) + 2


def fresh_headers(ctas: int) -> npt.NDArray[Any]:
    """Headers as they must be before a launch: no anchors, and counts that no warp has written."""
    headers = np.zeros(ctas, dtype=HEADER)
    headers["counts"] = _ONES
    return headers


def require_counted(headers: npt.NDArray[Any], names: Sequence[str]) -> None:
    """HardwareError, naming the agent, if a launch ended well and an agent did not count its records."""
    for cta, header in enumerate(headers):
        for agent, name in enumerate(names):
            if header["counts"][agent][0] == _ONES:
                raise HardwareError(
                    f"{name} of CTA {cta} never counted its records",
                    cause="its warp exited before PIPESIM_FLUSH, PIPESIM_AGENT has another number of agents than the "
                    "table, or PIPESIM_ROOM is larger than the buffer",
                    correction="flush in every warp of the table, converged, after its last record",
                )


def settle(headers: npt.NDArray[Any], records: npt.NDArray[np.uint32], room: int) -> None:
    """Complete the counts of CTAs that did not end, in memory that was all ones before the launch.

    The device counted whole iterations; the records of the one that an agent was in lie directly after them.
    ``records``: (CTAs, agents, capacity - 1, words), without the unused first one.
    """
    scratch = records.shape[2] - room - 1
    for cta, agents in enumerate(records):
        for agent, words in enumerate(agents):
            counts = headers[cta]["counts"][agent]
            if counts[0] == _ONES:
                counts[:] = 0  # it never began
            elif not counts[1]:
                rest = words[int(counts[0]) : max(scratch, int(counts[0])), 1] == _ONES
                counts[0] += int(np.argmax(rest)) if rest.any() else len(rest)
