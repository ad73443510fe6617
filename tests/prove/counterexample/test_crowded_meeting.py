"""More threads come to a named barrier than it waits for: a doubt says both numbers."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.prove.counterexample.words import doubt_line


def two_groups(threads: int) -> Protocol:
    p = Protocol("meeting")
    tile = p.smem("tile", 1, 1024)

    @p.role("store", warps=4)
    def store(w: Warp) -> None:
        w.write(tile[0].part(256 * w.index, 256), 0)
        w.bar_sync(1, threads)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        w.bar_sync(1, threads)
        w.read(tile[0], 0)

    return p


def said(threads: int) -> set[str]:
    program = two_groups(threads).flatten()
    found = check(program)
    assert (found.verdict is Verdict.PROVED) is (threads == 256)
    return {doubt_line(program, doubt).why for doubt in found.doubts}


def test_both_numbers_are_said() -> None:
    early = "the arrival or its bytes can be counted in an earlier phase"
    assert f"256 threads use it, and any 128 of them complete it: {early}" in said(128)


def test_where_all_are_waited_for_there_is_no_doubt() -> None:
    assert said(256) == set()
