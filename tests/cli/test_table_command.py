"""``pipesim table``: the table that a kernel of a protocol includes."""

from pathlib import Path

import pytest

from hwkernels.source_recorder.table import read_table
from pipesim.targets import find
from pipesim.trace.schema import OPTIONAL
from pipesim.trace.sites import site_table
from tests.support.fixture_types import Call


def test_a_users_own_protocol(call: Call, ring: str) -> None:
    answer = call("table", ring)
    assert (answer.code, answer.err) == (0, "")
    assert (
        answer.out
        == """\
// The roles, barriers and recording sites of ring, from its protocol by `pipesim table`: read by the kernel
// (through table.cuh) and by pipesim.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(load, 1)
PIPESIM_ROLE(mma, WARPS)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, WARPS)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(load_wait_empty, load, WAIT_ENTER, empty)
PIPESIM_SITE(load_got_empty, load, WAIT_RETURN, empty)
PIPESIM_SITE(load_expect_full, load, EXPECT, full)
PIPESIM_SITE(load_copy_full, load, COPY, full)
PIPESIM_SITE(mma_wait_full, mma, WAIT_ENTER, full)
PIPESIM_SITE(mma_got_full, mma, WAIT_RETURN, full)
PIPESIM_SITE(mma_arrive_empty, mma, ARRIVE, empty)
"""
    )


def test_what_is_written_is_the_protocols_table(call: Call, ring: str) -> None:
    answer = call("table", ring, "-o", "ring.table.h")
    assert answer.out == "wrote ring.table.h: name it as PIPESIM_TABLE in the kernel, before table.cuh\n"
    table = read_table(Path("ring.table.h"), {"STAGES": 5, "WARPS": 3})
    known = site_table(find(ring).build({"stages": 5, "warps": 3}))
    assert (table.agents, table.barriers) == (known.agents, known.barriers)
    assert [(s.role, s.kind, s.barrier) for s in table.sites] == [(s.role, s.kind, s.barrier) for s in known.sites]


@pytest.mark.slow
def test_sites_that_a_kernel_need_not_have(call: Call) -> None:
    """Those of named barriers, commits and groups are there unless only the required ones are asked for, or fit."""
    out, least = (call("table", "gemm_sm90", "-p", "tiles=1", *more).out for more in ((), ("--required",)))
    assert "PIPESIM_SITE(" in least
    extra = set(out.splitlines()) - set(least.splitlines())
    assert extra
    assert {line.split(", ")[2] for line in extra} <= {kind.name for kind in OPTIONAL}
    crowded = call("table", "attention_sm100", "-p", "kv_blocks=2").out
    assert "with them there would be 64, and a record can name 63.\n" in crowded
    assert (
        crowded.replace(_noted(crowded), "") == call("table", "attention_sm100", "-p", "kv_blocks=2", "--required").out
    )


def _noted(text: str) -> str:
    return next(line + "\n" for line in text.splitlines() if "a record can name" in line)


def test_lanes_of_one_warp_that_are_several_agents_have_no_table(call: Call) -> None:
    text = """\
from pipesim import Protocol

def apart():
    p = Protocol("apart")
    bars = p.mbarriers("bars", 1, 1)

    @p.role("r", lanes_apart=%s)
    def r(w):
        w.sync_warp()
        with w.elect_one():
            bars[0].arrive()

    return p
"""
    Path("apart.py").write_text(text % True, encoding="utf-8")
    answer = call("table", "apart.py")
    assert answer.code == 2
    assert answer.error[0] == (
        "pipesim: no table can be written of this protocol: lanes of one warp are several agents"
    )
    Path("together.py").write_text(text % False, encoding="utf-8")
    assert call("table", "together.py").code == 0
