"""Corrections of CTAs that talk by words: values, orders, and what a CTA does by itself; each is proved in its own run.

Every wrong description is the text of a right one with one change, which is what is offered.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipesim import protocol_process, targets
from pipesim.answers.check import check
from pipesim.model.finding import Verdict
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
GRIDS = (ROOT / "docs" / "examples" / "grids.py").read_text()
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
    "does not meet": (SPLIT, "split", "w.sync_threads()  # both halves", "pass",
                      "math executes __syncthreads() after the write to part"),
    "counts one too many": (SPLIT, "split", "count=2", "count=3",
                            "initialise used with a count of 2 instead of 3"),
}  # fmt: skip


@pytest.mark.slow
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


def test_the_right_one_is_proved(tmp_path: Path) -> None:
    file = tmp_path / "grid.py"
    file.write_text(SPLIT)
    assert check(targets.find(f"{file}:split"), {}, quick=True).verdict is Verdict.PROVED


def test_it_is_asked_of_the_process_that_has_the_file(tmp_path: Path) -> None:
    text, function, right, wrong, said = MISTAKES["waits for the value before"]
    file = tmp_path / "grid.py"
    file.write_text(text.replace(right, wrong))
    try:
        (shown, *_) = check(protocol_process.find(f"{file}:{function}"), {}).refutations
    finally:
        protocol_process.close()
    assert [each.said for each in shown.corrections] == [said]
