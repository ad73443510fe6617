"""What ``run`` and ``verify`` say of a run beside its findings, and how they name a launch of clusters."""

from collections.abc import Callable

import pytest

from tests.support.fixture_types import Call

User = Callable[[str], None]

EXITS = """\
from pipesim import Protocol
from pipesim.model.ops import Engine, Fence

def f(waits: int = 0, load: int = 0):
    p = Protocol("f")
    c = p.smem("c", slots=1, nbytes=16384)
    b = p.mbarriers("b", 1, count=1)

    @p.role("w")
    def w_(w):
        w.write(c[0], item=0)
        w.fence(Fence.PROXY_ASYNC)
        with w.elect_one():
            if load:
                b[0].expect_bytes(16384)
                w.tma_load(c[0], b[0], item=1)  # copies
            else:
                w.async_read(Engine.BULK, c[0], item=0)  # stores
                w.commit(Engine.BULK)
            if waits:
                b[0].wait(0) if load else w.wait_group(Engine.BULK)

    return p
"""
EARLY = """\
from pipesim import Protocol

def e(tries: int = 1):
    p = Protocol("e")
    b = p.mbarriers("b", 1, count=1)
    t = p.smem("t", slots=1, nbytes=64)

    @p.role("a")
    def a(w):
        w.work(2000)
        w.write(t[0], item=0)
        with w.elect_one():
            b[0].arrive()

    @p.role("use")
    def use(w):
        if tries:
            b[0].try_wait(0)  # the answer is thrown away
            b[0].wait(1)  # passes
        w.read(t[0], item=0)

    return p
"""


def notes(report: str) -> list[str]:
    """The notes of a report, each in one line."""
    found: list[str] = []
    for line in report.splitlines():
        if line.startswith("  note "):
            found.append(line.removeprefix("  note").strip())
        elif found and line.startswith(" " * 15):
            found[-1] += " " + line.strip()
        elif found:
            break
    return found


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("command", [("run",), ("verify", "--no-hardware")])
@pytest.mark.parametrize(
    ("load", "note"),
    [
        (
            0,
            "the store of w from c[0] is still in flight when the last agent of its CTA exits: nothing waits for it",
        ),
        (
            1,
            "the copy of w into c[0] is still in flight when the last agent of its CTA exits: nothing waits for it",
        ),
    ],
)
def test_a_transfer_that_outlives_its_cta(
    call: Call, user: User, command: tuple[str, ...], load: int, note: str
) -> None:
    user(EXITS)
    answer = call(*command, "mine.py:f", "-p", f"load={load}")
    (said,) = notes(answer.out)
    line = EXITS.splitlines().index(next(s for s in EXITS.splitlines() if s.endswith(("stores", "copies")[load]))) + 1
    assert (answer.code, said) == (0, f"{note} (mine.py:{line})")
    assert notes(call(*command, "mine.py:f", "-p", f"load={load}", "-p", "waits=1").out) == []


@pytest.mark.slow
def test_a_pass_a_lap_early_is_told_where_something_went_wrong(call: Call, user: User) -> None:
    user(EARLY)
    answer = call("run", "mine.py:e")
    assert answer.code == 1
    assert notes(answer.out) == [
        (
            "use passes b[0] with parity 1 before phase 1 is complete: 0 phases of it are complete (one lap early) "
            "(mine.py:19)"
        )
    ]
    assert "a lap early" not in call("run", "mine.py:e", "-p", "tries=0").out, "it never waits"


SHORT = "stages=2 k_iters=1 epi_stages=2 accumulators=1 clc_stages=3 residual=0 first_tile_only=1 epilogue=0 tiles=12"


@pytest.mark.slow
def test_a_run_too_short_for_its_steady_state_has_no_period(call: Call) -> None:
    """What its last agent shows lies below the least that there can be."""
    params = [word for text in SHORT.split() for word in ("-p", text)]
    said = " ".join(call("run", "conv_epilogue", *params).out.split())
    assert "finished period – (not steady) bound by" in said
    long = " ".join(call("run", "producer_consumer").out.split())
    assert "finished period" in long
    assert "not steady" not in long
