"""Counts of records: what the device said, what is added where it came to no end, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from hwkernels.source_recorder.counts import fresh_headers, require_counted, settle
from pipesim.errors import HardwareError

ONES = 0xFFFFFFFF
ROOM = 3
CAPACITY = 14  # one unused record, nine that are kept, one between, three of scratch


def test_an_agent_that_never_counted_is_named():
    headers = fresh_headers(2)
    headers["counts"][:, :2] = 0
    require_counted(headers, ["load", "math"])
    headers["counts"][1, 1] = ONES
    with pytest.raises(HardwareError, match="math of CTA 1 never counted its records"):
        require_counted(headers, ["load", "math"])
    require_counted(headers, ["load"])  # the twin: only the agents of the table are asked


@pytest.mark.parametrize(
    ("counts", "written", "settled"),
    [
        ((ONES, ONES), 5, (0, 0)),  # it never began; whatever lies there is not its own
        ((0, 0), 0, (0, 0)),
        ((0, 0), 2, (2, 0)),  # in its first iteration
        ((6, 0), 6, (6, 0)),
        ((6, 0), 8, (8, 0)),
        ((6, 0), 13, (9, 0)),  # an iteration that ran on into the scratch area is not whole, whatever happens
        ((9, 0), 9, (9, 0)),
        ((9, 0), 13, (9, 0)),
        ((6, 2), 8, (6, 2)),  # some were lost: the present one is none that is kept
    ],
)
def test_what_an_agent_left_before_it_was_stopped(counts, written, settled):
    headers = fresh_headers(1)
    headers["counts"][0, 0] = counts
    records = np.full((1, 1, CAPACITY - 1, 2), ONES, dtype=np.uint32)
    records[0, 0, :written] = 7
    settle(headers, records, ROOM)
    assert tuple(headers["counts"][0, 0].tolist()) == settled
