"""Corrections of CTAs that talk by words: values, orders, and what a CTA does by itself; each is proved in its own run.

Every wrong description is the text of a right one with one change, which is what is offered.
"""

from pathlib import Path

import pytest

from pipesim import protocol_process, targets
from pipesim.answers.check import check
from pipesim.model.finding import Verdict
from tests.support.kernel_files import described
from tests.support.paths import ROOT

#: Two warps publish the halves of a part, with a flag of each CTA but the first, which takes them through a ring.
SPLIT = """
from pipesim import Order, Protocol

def split(tiles: int = 2):
    p = Protocol("split", grid=3)
    part, done, taken = p.gmem("part", 3, 64), p.gmem("done", 3, 4), p.gmem("taken", 3, 4)
    used = p.mbarriers("used", 1, count=2)

    @p.role("math", warps=2)
    def math(w):
        for t in w.loop(tiles, "tiles"):
            if w.cta:
                if w.index == 0:
                    w.spin_until(taken[w.cta], at_least=t, order=Order.ACQUIRE)
                w.sync_threads()
                w.gstore(part[w.cta].part(w.index * 32, 32), item=t)
                w.sync_threads()  # both halves
                with w.elect_one():
                    if w.index == 0:
                        w.gstore(done[w.cta], value=t + 1, order=Order.RELEASE)
            for other in range(1, 3) if not w.cta else ():
                if w.index == 0:
                    w.spin_until(done[other], at_least=t + 1, order=Order.ACQUIRE)
                w.sync_threads()
                w.gload(part[other].part(w.index * 32, 32), item=t)
                w.sync_warp()
                with w.elect_one():
                    used[0].arrive()
                used[0].wait(0 if other == 1 else 1)
                with w.elect_one():
                    if w.index == 0:
                        w.gstore(taken[other], value=t + 1, order=Order.RELEASE)

    return p
"""
#: One CTA hands tiles to another one through two slots, with a flag for each direction and slot.
HAND = """
from pipesim import Order, Protocol

def hand(tiles: int = 5, slots: int = 2):
    p = Protocol("hand", grid=2)
    tile, full, empty = p.gmem("tile", slots, 4096), p.gmem("full", slots, 4), p.gmem("empty", slots, 4)

    @p.role("worker")
    def worker(w):
        for i in w.loop(tiles, "tiles"):
            slot, lap = i % slots, i // slots
            if w.cta == 0:
                w.spin_until(empty[slot], at_least=lap, order=Order.ACQUIRE)
                w.gstore(tile[slot], item=i)
                w.sync_warp()
                with w.elect_one():
                    w.gstore(full[slot], value=lap + 1, order=Order.RELEASE)
            else:
                w.spin_until(full[slot], at_least=lap + 1, order=Order.ACQUIRE)
                w.gload(tile[slot], item=i)
                w.sync_warp()
                with w.elect_one():
                    w.gstore(empty[slot], value=lap + 1, order=Order.RELEASE)

    return p
"""
#: All CTAs but the first count their parts, which that one adds.
TOTAL = """
from pipesim import Order, Protocol

def total(splits: int = 4, rounds: int = 2):
    p = Protocol("total", grid=splits)
    part, count, taken = p.gmem("part", splits, 1024), p.gmem("count", 1, 4), p.gmem("taken", 1, 4)

    @p.role("math")
    def math(w):
        for t in w.loop(rounds, "rounds"):
            if w.cta:
                w.spin_until(taken[0], at_least=t, order=Order.ACQUIRE)
                w.gstore(part[w.cta], item=t)
                w.sync_warp()
                with w.elect_one():
                    w.atomic(count[0], add=1, order=Order.RELEASE)
            else:
                w.spin_until(count[0], at_least=(t + 1) * (splits - 1), order=Order.ACQUIRE)
                for other in range(1, splits):
                    w.gload(part[other], item=t)
                w.sync_warp()
                with w.elect_one():
                    w.gstore(taken[0], value=t + 1, order=Order.RELEASE)

    return p
"""
#: Each CTA adds the part of the one after it.
CHAIN = """
from pipesim import Order, Protocol

def chain(ctas: int = 4, tiles: int = 2):
    p = Protocol("chain", grid=ctas)
    part, flag = p.gmem("part", ctas * tiles, 2048), p.gmem("flag", ctas, 4)

    @p.role("epilogue")
    def epilogue(w):
        for t in w.loop(tiles, "tiles"):
            if w.cta < ctas - 1:
                w.spin_until(flag[w.cta + 1], at_least=t + 1, order=Order.ACQUIRE)
                w.gload(part[(w.cta + 1) * tiles + t], item=t)
            w.gstore(part[w.cta * tiles + t], item=t)
            w.sync_warp()
            with w.elect_one():
                w.gstore(flag[w.cta], value=t + 1, order=Order.RELEASE)

    return p
"""
#: Each CTA loads through a ring of its own, and the last one adds what all have written.
MIXED = """
from pipesim import Order, Protocol

def mixed(tiles: int = 4, stages: int = 2):
    p = Protocol("mixed", grid=3)
    tile, out, done = p.smem("tile", stages, 4096), p.gmem("out", 3, 1024), p.gmem("done", 3, 4)
    full, empty = p.mbarriers("full", stages, count=1), p.mbarriers("empty", stages, count=1)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % stages].wait(i // stages % 2 ^ 1)
                full[i % stages].expect_bytes(4096)
                w.tma_load(tile[i % stages], full[i % stages], i)

    @p.role("math")
    def math(w):
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.read(tile[i % stages], i)
            w.sync_warp()
            with w.elect_one():
                empty[i % stages].arrive()
        w.gstore(out[w.cta], item=1)
        w.sync_warp()
        with w.elect_one():
            w.gstore(done[w.cta], value=1, order=Order.RELEASE)
        for other in range(3) if w.cta == 2 else ():
            w.spin_until(done[other], equals=1, order=Order.ACQUIRE)
            w.gload(out[other], item=1)

    return p
"""
#: The CTA that comes last adds the parts of all.
TICKET = """
from pipesim import Order, Protocol

def ticket(splits: int = 3):
    p = Protocol("ticket", grid=splits)
    parts, count = p.gmem("parts", splits, 64), p.gmem("count", 1, 4)

    @p.role("epilogue")
    def epilogue(w):
        w.gstore(parts[w.cta], item=w.cta)
        w.sync_warp()
        with w.elect_one():
            mine = w.atomic(count[0], add=1, order=Order.ACQ_REL).old
        w.sync_warp()
        mine = w.answer(count[0])
        for other in range(splits) if mine == splits - 1 else ():
            w.gload(parts[other], item=other)

    return p
"""
#: Both warps write a part before one of them takes the ticket; both read where it was the last one.
HALVES = """
from pipesim import Order, Protocol

def halves(splits: int = 2):
    p = Protocol("halves", grid=splits)
    parts, count = p.gmem("parts", splits, 64), p.gmem("count", 1, 4)

    @p.role("epilogue", warps=2)
    def epilogue(w):
        w.gstore(parts[w.cta].part(32 * w.index, 32), item=w.cta)
        w.sync_threads()  # both halves
        mine = -1
        if w.index == 0:
            with w.elect_one():
                mine = w.atomic(count[0], add=1, order=Order.ACQ_REL).old
        w.sync_threads()
        if w.index:
            mine = w.answer(count[0])
        for other in range(splits) if mine == splits - 1 else ():
            w.gload(parts[other].part(32 * w.index, 32), item=other)

    return p
"""
#: Two warps of each CTA change the halves of a tile, under a lock that the first of them takes.
LOCK = """
from pipesim import Order, Protocol

def locked(splits: int = 3):
    p = Protocol("locked", grid=splits)
    tile, lock = p.gmem("tile", 1, 64), p.gmem("lock", 2, 4)

    @p.role("math", warps=2)
    def math(w):
        if w.index == 0:
            with w.elect_one():
                w.spin_until(lock[0], cas=(0, 1), order=Order.ACQUIRE)
        w.sync_threads()
        w.gload(tile[0].part(32 * w.index, 32))
        w.gstore(tile[0].part(32 * w.index, 32), item=w.cta)
        w.sync_threads()  # both halves
        if w.index == 0:
            with w.elect_one():
                w.atomic(lock[0], exch=0, order=Order.RELEASE)

    return p
"""
GRIDS = (ROOT / "docs" / "examples" / "grids.py").read_text()
ROOM = "                w.spin_until(empty[slot], at_least=lap, order=Order.ACQUIRE)\n"
WRITES = "                w.gstore(tile[slot], item=i)\n"
TAKES = "                w.spin_until(full[slot], at_least=lap + 1, order=Order.ACQUIRE)\n"
READS = "                w.gload(tile[slot], item=i)\n"
NEXT = "                w.spin_until(flag[w.cta + 1], at_least=t + 1, order=Order.ACQUIRE)\n"
SETS = """                w.sync_warp()
                with w.elect_one():
                    w.gstore(full[slot], value=lap + 1, order=Order.RELEASE)
"""
GIVES = "value=i + 1, order=Order.RELEASE)"
MISTAKES = {
    "waits for the value before": (GRIDS, "handed_on", "at_least=i + 1", "at_least=i",
                                   "worker waits for a value of full that is 1 larger"),
    "writes the value before": (SPLIT, "split", "done[w.cta], value=t + 1", "done[w.cta], value=t",
                                "math writes a value of done that is 1 larger"),
    "waits for what nothing writes": (SPLIT, "split", "at_least=t, ", "at_least=t + 1, ",
                                      "math waits for a value of taken that is 1 smaller"),
    "releases nothing": (GRIDS, "handed_on", GIVES, "value=i + 1)",
                         "worker: let the arrive on full release at gpu scope instead of .relaxed"),
    "acquires nothing": (SPLIT, "split", "at_least=t + 1, order=Order.ACQUIRE", "at_least=t + 1",
                         "math: let the wait for done acquire at gpu scope instead of .relaxed"),
    "takes a ticket that acquires nothing": (
        TICKET, "ticket", "order=Order.ACQ_REL", "order=Order.RELEASE",
        "epilogue: let the atomic on count be .acq_rel at gpu scope instead of .release: its answer is used"),
    "takes a ticket without order": (
        TICKET, "ticket", ", order=Order.ACQ_REL", "",
        "epilogue: let the atomic on count be .acq_rel at gpu scope instead of .relaxed: its answer is used"),
    "takes the ticket before both halves are there": (
        HALVES, "halves", "w.sync_threads()  # both halves", "pass",
        "epilogue executes __syncthreads() after the write to parts"),
    "does not meet": (SPLIT, "split", "w.sync_threads()  # both halves", "pass",
                      "math executes __syncthreads() after the write to part"),
    "reads before the flag": (HAND, "hand", TAKES + READS, READS + TAKES,
                              "worker waits for full before the read of tile"),
    "writes before the slot is free": (HAND, "hand", ROOM + WRITES, WRITES + ROOM,
                                       "worker waits for empty before the write to tile"),
    "sets the flag before the data": (HAND, "hand", WRITES + SETS, SETS + WRITES,
                                      "worker writes full only after the write to tile"),
    "waits for the first lap alone": (HAND, "hand", "full[slot], at_least=lap + 1", "full[slot], at_least=1",
                                      "worker waits for the values 1, 1, 2, 2, … of full in turn, not 1"),
    "waits for one of two flags": (HAND, "hand", "spin_until(full[slot]", "spin_until(full[0]",
                                   "worker waits for full[0], full[1] in turn, not full[0]"),
    "sets one of two flags": (HAND, "hand", "gstore(empty[slot]", "gstore(empty[0]",
                              "worker writes empty[0], empty[1] in turn, not empty[0]"),
    "does not wait for a free slot": (HAND, "hand", ROOM, "", "worker waits for empty before the write to tile"),
    "reads one of two slots": (HAND, "hand", "gload(tile[slot]", "gload(tile[0]",
                               "worker: the read of tile"),
    "counts CTAs as one": (TOTAL, "total", "(t + 1) * (splits - 1)", "t + 1",
                           "math waits for the values 3, 6 of count in turn, not 1, 2"),
    "counts its own CTA": (TOTAL, "total", "(t + 1) * (splits - 1)", "(t + 1) * splits",
                           "math waits for the values 3, 6 of count in turn, not 4, 8"),
    "waits for its own flag": (CHAIN, "chain", "flag[w.cta + 1]", "flag[w.cta]",
                               "epilogue waits for flag[1], not flag[0], in CTA 0"),
    "does not wait for the next CTA": (CHAIN, "chain", NEXT, "", "epilogue waits for flag before the read of part"),
    "writes the same in each lap": (CHAIN, "chain", "flag[w.cta], value=t + 1", "flag[w.cta], value=1",
                                    "epilogue writes the values 1, 2 of flag in turn, not 1, in CTA 1"),
    "overwrites its own ring": (MIXED, "mixed", "                empty[i % stages].wait(i // stages % 2 ^ 1)\n", "",
                                "load waits for empty, with parity 1 in the first lap, before it uses a stage"),
    "counts one too many": (SPLIT, "split", "count=2", "count=3",
                            "initialise used with a count of 2 instead of 3"),
}  # fmt: skip


@pytest.mark.sampled(0, 6)
@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_meant_is_offered(name: str, tmp_path: Path) -> None:
    text, function, right, wrong, said = MISTAKES[name]
    file = tmp_path / "grid.py"
    assert right in text
    file.write_text(text.replace(right, wrong))
    found = check(targets.find(f"{file}:{function}"), {})
    assert found.verdict is Verdict.REFUTED
    offered = {each.said.partition(" (")[0] for shown in found.refutations for each in shown.corrections}
    assert offered == {said}


GIVEN_BACK = LOCK[LOCK.rindex("        w.sync_threads()") : LOCK.rindex("\n    return")]
LOCKS: dict[str, tuple[str, str, set[str]]] = {
    "is not given back": (
        GIVEN_BACK, "        w.sync_threads()  # both halves\n", {"math gives lock back after the bar_sync"}
    ),
    "gives another word back": (
        "w.atomic(lock[0]", "w.atomic(lock[1]", {"math takes lock[1], not lock[0]", "math writes lock[0], not lock[1]"}
    ),
    "takes another word": (
        "spin_until(lock[0]", "spin_until(lock[1]",
        {"math takes lock[0], not lock[1]", "math writes lock[1], not lock[0]"},
    ),
    "gives another value back": ("exch=0", "exch=2", {"math writes a value of lock that is 2 smaller"}),
    "is given back before both have stored": (
        GIVEN_BACK, GIVEN_BACK.split("\n", 1)[1] + "        w.sync_threads()  # both halves\n",
        {"math writes lock only after the bar_sync"},
    ),
    "is taken without order": (
        ", order=Order.ACQUIRE", "",
        {"math: let the atomic on lock be .acq_rel at gpu scope instead of .relaxed: its answer is used"},
    ),
}  # fmt: skip


@pytest.mark.sampled(0, 1, 4)
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_given_back_to_its_word_after_the_data(name: str, tmp_path: Path) -> None:
    right, wrong, said = LOCKS[name]
    assert right in LOCK
    found = check(described(tmp_path, LOCK.replace(right, wrong)), {})
    assert found.verdict is Verdict.REFUTED
    assert {each.said.partition(" (")[0] for shown in found.refutations for each in shown.corrections} == said


@pytest.mark.slow
def test_one_set_of_slots_is_not_enough_or_one_barrier(tmp_path: Path) -> None:
    file = tmp_path / "grid.py"
    file.write_text(GRIDS.replace("(lap % 2 * blocks + (w.cta + n) % blocks for", "((w.cta + n) % blocks for"))
    (shown, *_) = check(targets.find(f"{file}:laps"), {}).refutations
    assert [each.said.partition(" (")[0] for each in shown.corrections] == [
        "use two sets of slots of parts in turn, each in every second iteration",
        "worker meets the other CTAs at everyone again after the read of parts",
    ]


@pytest.mark.parametrize("text", [SPLIT, HAND, TOTAL, CHAIN, MIXED, TICKET, HALVES, LOCK])
def test_the_right_one_is_proved(text: str, tmp_path: Path) -> None:
    assert check(described(tmp_path, text), {}, quick=True).verdict is Verdict.PROVED


def test_it_is_asked_of_the_process_that_has_the_file(tmp_path: Path) -> None:
    text, function, right, wrong, said = MISTAKES["waits for the value before"]
    file = tmp_path / "grid.py"
    file.write_text(text.replace(right, wrong))
    try:
        (shown, *_) = check(protocol_process.find(f"{file}:{function}"), {}).refutations
    finally:
        protocol_process.close()
    assert [each.said for each in shown.corrections] == [said]
