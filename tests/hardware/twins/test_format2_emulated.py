"""A kernel's own source on the CPU, recorded without tags: what it does is read by its program, and a twin that records
in another order than its table, loses a record or waits for another parity is refused.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from hwkernels.recorder import record_format as form
from hwkernels.recorder.by_position import read_full, read_positional
from hwkernels.recorder.description import streams
from hwkernels.twins import registered
from pipesim.errors import TraceFormatError
from pipesim.targets import find
from tests.hardware.twins.test_attention_sm90_emulated import FUSED, SMALL, Twin, built, problem, sizes
from tests.support.format2_streams import full, positional

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator is C++")

PARAMS = sizes(FUSED, stages=3, kv_blocks=4, **SMALL)
TABLE = registered(FUSED).table(PARAMS)
EXPECTS = (
    "PIPESIM_RECORD_AGAIN(EXPECT, kind)\n    mbarrier_arrive_expect_tx(full, bytes);\n    PIPESIM_RECORD(COPY, kind)"
)
WAITS = "PIPESIM_SAY(pass, stage, parity)\n    PIPESIM_RECORD(ENTER, 0)\n    if ("
RELEASES = "PIPESIM_RECORD(SITE, 1)"
TWINS = (
    Twin(EXPECTS, "PIPESIM_RECORD(TWIN(EXPECT, COPY), kind)\n    mbarrier_arrive_expect_tx(full, bytes);\n"
         "    PIPESIM_RECORD(TWIN(COPY, EXPECT), kind)", "producer"),
    Twin(WAITS, WAITS.replace("parity", "TWIN(parity, parity ^ 1)"), "producer"),
    Twin(RELEASES, f"if (TWIN(true, pass != 2)) {{ {RELEASES} }}", "consumer"),
)  # fmt: skip


def left(kernel, twin):
    """By warp the tagged records of a run, (records, 2), a clock of 10 cycles between two."""
    given = problem(FUSED, PARAMS, 1)
    run = kernel.run(given.maps, 1, 3, given.n, [given.scale], given.found, twin=twin)
    assert run.fault == ""
    found = []
    for warp in range(len(TABLE.agents)):
        rows = [
            (10 * n, r.site | r.parity << form.TAG_PARITY[0] | r.stage << form.TAG_STAGE[0])
            for n, r in enumerate(run.records.get((0, warp), []))
        ]
        found.append(np.array(rows, dtype=np.uint32).reshape(-1, 2))
    return found


@pytest.mark.slow
def test_a_kernel_is_read_by_its_program_and_its_wrong_twins_are_refused(tmp_path):
    kernel = built(FUSED, PARAMS, tmp_path, TWINS)
    described = streams(find(FUSED).build(PARAMS), TABLE)[0]
    for tagged, stream in zip(left(kernel, 0), described, strict=True):
        by_place = read_positional(positional(tagged, TABLE), stream, "here")
        by_site = read_full(full(tagged, TABLE), stream, TABLE, "here")
        assert by_place.clocks.tolist() == by_site.clocks.tolist() == tagged[:, :1].tolist()
        assert by_place.columns["site"].tolist() == (tagged[:, 1] & form.MAX_SITES).tolist()
        assert by_place.columns["parity"].tolist() == by_site.columns["parity"].tolist()
    for number, twin in enumerate(TWINS, start=1):
        refused = set()
        for tagged, stream, agent in zip(left(kernel, number), described, TABLE.agents, strict=True):
            try:
                read_positional(positional(tagged, TABLE), stream, agent.name)
            except TraceFormatError:
                refused.add(agent.role)
        assert refused == {twin.noticed}, twin.after
