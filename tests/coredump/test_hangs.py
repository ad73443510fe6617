"""The autopsy of each planted hang says what ``expected.json`` says by hand, of machine code alone too."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.autopsy.autopsy import autopsy
from pipesim.answers.views.autopsy import AutopsyReport, DumpedCtas
from pipesim.model.finding import BlockedAgent, Deadlock, Supplier

DUMPS = Path(__file__).parents[1] / "hang" / "dumps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DUMPS / "expected.json").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in DUMPS.glob("*.elf.xz"))
#: What is waited for, as a report names it.
WAITS = {
    "mbarrier": "mbarrier {address}", "named barrier": "named barrier {barrier}",
    "cluster barrier": "the cluster barrier", "setmaxnreg": "registers of its CTA",
    "global memory": "a value in global memory", "__syncthreads": "named barrier 0",
}  # fmt: skip
#: What they wait for is a word of global memory (test_global_words.py).
NOT_IN_THE_CODE = (
    "flag_not_set", "lock_kept", "triton_lock_kept", "two_locks", "grid_barrier", "wrong_flag", "split_k", "grid_laps",
    "last_block", "dependent", "triton_in_graph",
)  # fmt: skip
#: It arrives on its own barrier instead: its code has no arrive on the one that waits.
NEVER_ARRIVES = ("remote_arrive_missing",)


@cache
def report_of(name: str) -> AutopsyReport:
    return autopsy(DUMPS / name)


def group_of(name: str) -> tuple[dict[str, Any], DumpedCtas]:
    """What is expected of a dump, and the CTAs that hang of its first launch that does."""
    kind = re.sub(r"(_bare|_light)?\.h\d+\.elf\.xz", "", name)
    launches = report_of(name).launches
    expected = EXPECTED[kind]
    kernel = expected["waits"][0].get("kernel", "")  # of two that hang
    some = (each for launch in launches if kernel in launch.kernel for each in launch.groups)
    return expected, next(each for each in some if each.deadlock.blocked)


def address_of(group: DumpedCtas, barrier: str) -> str:
    """The address of a barrier that a report names, as its table of barriers has it."""
    rows = (each.name.removeprefix("mbarrier ") for each in group.barriers)
    own = barrier.removeprefix("mbarrier ")
    return next(row.partition(" ")[0].partition("@")[0] for row in rows if row == own or row.endswith(f" {own}"))


def warp_of(agent: str) -> int:
    return int(agent.partition("@")[0].rpartition("/")[2])


@pytest.mark.sampled(8, 16)
@pytest.mark.parametrize("name", FILES)
def test_who_waits_for_what(name: str) -> None:
    expected, group = group_of(name)
    found = {
        (each.agent.partition("@")[2], warp_of(each.agent)): each
        for each in group.deadlock.blocked
        if each.agent.startswith("warp/")
    }
    clustered = expected["cluster"] != [1, 1, 1]
    wanted = 0
    for wait in expected["waits"]:
        begins = WAITS.get(wait["for"], "").format_map(wait)
        if not begins or (name.startswith("two_kernels") and wait["for"] == "global memory"):
            continue  # lanes that wait for their own warp, and a kernel that is a launch of its own
        for warp in wait["warps"]:
            rank = str(wait["ctas"][0] % expected["cluster"][0]) if clustered else ""
            blocked = found[rank, warp]
            if wait["for"] != "mbarrier":
                assert blocked.barrier.startswith(begins)
            else:
                assert address_of(group, blocked.barrier) == wait["address"]
                stage = re.fullmatch(r"ring at 0x\w+ \[(\d+) of \d+\](?:@\d)?", blocked.barrier)
                assert blocked.barrier.startswith(begins) if stage is None else f"[{stage[1]}]" in wait["barrier"]
                numbers = (blocked.parity, blocked.arrivals_missing, blocked.count, blocked.bytes_missing)
                assert numbers == (wait["parity"], wait["pending"], wait["expected"], wait["missing_bytes"])
            wanted += 1
    assert wanted == len(found)


@pytest.mark.sampled(7, 14)
@pytest.mark.parametrize("name", [n for n in FILES if not n.startswith((*NOT_IN_THE_CODE, *NEVER_ARRIVES))])
def test_who_could_have_supplied_it_and_where_that_warp_is(name: str) -> None:
    expected, group = group_of(name)
    warps = set(expected["supplier"]["warps"])
    lacking = [each for each in group.deadlock.blocked if supplied(each, group.deadlock) & warps]
    assert lacking, expected["missing"]
    if "ended" in expected["supplier"]["now"]:
        assert {warp_of(each) for each in group.deadlock.finished} >= warps


def supplied(blocked: BlockedAgent, deadlock: Deadlock) -> set[int]:
    """The warps that a report names first as those that could supply what is missing, or that count says never come."""
    if blocked.given >= 0 and blocked.barrier.startswith("named"):
        come = {warp_of(each.agent) for each in deadlock.blocked if each.barrier == blocked.barrier}
        return {warp_of(each.agent) for each in deadlock.blocked} - come
    least = min((each.last_iteration for each in blocked.suppliers), default=0)
    first: tuple[Supplier, ...] = tuple(each for each in blocked.suppliers if each.last_iteration == least)
    by = {warp_of(each) for each in blocked.lapped_by}
    return by or {warp_of(each.agent) for each in first if each.agent != blocked.agent}
