"""What a newer version of a small program does otherwise: each edit, and the sentences about it."""

from dataclasses import replace

import pytest

from pipesim.explain.sync_changes import sync_changes
from pipesim.model.program import Program
from pipesim.model.tables import Barrier
from pipesim.report.pages.checks.against import change_sentence
from tests.support.small_programs import build

INITS = "INIT barrier=0;INIT barrier=1;INIT barrier=2 count=2;INIT barrier=3 count=2;"
SET_UP = f"{INITS}FENCE fence=0;BAR_SYNC threads=64;"
LOAD = "WAIT barrier={e} parity={q};ARRIVE barrier={f} expect=64;TMA_LOAD barrier={f} access={f} bytes=64 item={i};"
USE = "WAIT barrier={f} parity={p};READ access={f} item={i};FENCE fence=1;ARRIVE barrier={e} count=2;"
BARRIERS = tuple(Barrier(0, name, stage) for name in ("full", "empty") for stage in (0, 1))


def ring(load: str = LOAD, use: str = USE, set_up: str = SET_UP, tiles: int = 4, *, marks: bool = True) -> Program:
    """A ring of two stages: one role loads tiles, another reads them."""
    code = [set_up, "BAR_SYNC threads=64;"]
    for role, body in enumerate((load, use)):
        for i in range(tiles):
            at = {"f": i % 2, "e": 2 + i % 2, "p": i // 2 % 2, "q": 1 - i // 2 % 2, "i": i}
            mark = ("LOOP_NEXT loop=0;" if i else f"LOOP_BEGIN loop=0 trips={tiles};") if marks else ""
            code[role] += mark + body.format(**at)
        code[role] += "LOOP_END loop=0" if marks else ""
    return build(*code, barriers=BARRIERS, slots=2)


def said(old: Program, new: Program) -> list[str]:
    return [change_sentence(each).replace(" (story.py:1)", "").replace(" (was at story.py:1)", "")
            for each in sync_changes(old, new).changes]  # fmt: skip


CASES = {
    "nothing": (ring(), []),
    "a second arrive": (
        ring(use=USE + "ARRIVE barrier={e};"),
        ["role1: 1 more arrive on empty[0..1] in each of 4 iterations, 8 → 12 times in all"],
    ),
    "an arrive by all lanes": (
        ring(use=USE.replace("count=2", "count=32")),
        ["role1: 30 more arrive on empty[0..1] in each of 4 iterations, 8 → 128 times in all"],
    ),
    "the fence dropped": (
        ring(use=USE.replace("FENCE fence=1;", "")),
        ["role1: fence proxy.async: gone, was executed 4 times, 1 in each of 4 iterations"],
    ),
    "a copy to both CTAs": (
        ring(load=LOAD.replace("bytes=64", "bytes=64 cta_mask=1")),
        [
            "role0: copy to tile in CTAs 0 on full[0..1]: new 4 times, 1 in each of 4 iterations, 256 bytes",
            "role0: copy to tile on full[0..1]: gone, was executed 4 times, 1 in each of 4 iterations, 256 bytes",
        ],
    ),
    "another count": (
        ring(set_up=SET_UP.replace("INIT barrier=3 count=2", "INIT barrier=3 count=1")),
        ["init count of empty[1]: 2 → 1"],
    ),
    "fewer bytes expected and copied": (
        ring(load=LOAD.replace("=64", "=32")),
        ["role0: arrive on full[0..1]: 64 → 32 bytes each", "role0: copy to tile on full[0..1]: 64 → 32 bytes each"],
    ),
    "a wait that acquires nothing": (
        ring(use=USE.replace("parity={p}", "parity={p} semantics=8")),
        [
            "role1: wait.relaxed on full[0..1]: new 4 times, 1 in each of 4 iterations",
            "role1: wait on full[0..1]: gone, was executed 4 times, 1 in each of 4 iterations",
        ],
    ),
    "the other parity": (
        ring(use=USE.replace("parity={p}", "parity={q}")),
        ["role1: first waits for parity 1 instead of 0 on full[0..1]"],
    ),
    "the parity of the first lap again": (
        ring(use=USE.replace("parity={p}", "parity=0")),
        ["role1: its 3rd wait on full[0] is for parity 0 instead of 1"],
    ),
    "an arrive before the read": (
        ring(use="WAIT barrier={f} parity={p};ARRIVE barrier={e} count=2;READ access={f} item={i};FENCE fence=1;"),
        ["role1: another sequence, arrive empty[0] where read tile[0] was"],
    ),
    "an arrive on one stage instead of the other": (
        ring(use=USE.replace("barrier={e}", "barrier=2")),
        [
            "role1: 1 more arrive on empty[0] in each of 4 iterations, 4 → 8 times in all",
            "role1: arrive on empty[1]: gone, was executed 4 times, 1 in each of 4 iterations",
        ],
    ),
    "more tiles": (ring(tiles=7), []),
    "more tiles without marks of loops": (ring(tiles=7, marks=False), []),
    "more tiles and the fence before the loop": (
        ring(tiles=8, use=USE.replace("FENCE fence=1;", ""), set_up=SET_UP + "FENCE fence=1;"),
        [
            "role0: fence proxy.async: new once",
            "role1: fence proxy.async: gone, was executed 4 times, 1 in each of 4 iterations",
        ],
    ),
    "more tiles, and an arrive in every second": (
        ring(tiles=8, use=USE.replace("ARRIVE barrier={e} count=2", "ARRIVE barrier={e}")),
        ["role1: 1 fewer arrive on empty[0..1] in each iteration, 8 → 8 times in all, in 4 and 8 iterations"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_edit_and_what_is_said_of_it(name: str) -> None:
    new, sentences = CASES[name]
    assert said(ring(marks="without marks" not in name), new) == sentences
    assert bool(said(new, ring(marks="without marks" not in name))) == bool(sentences), "both ways round"


def test_roles_and_barriers_are_matched_by_name_then_without_their_lines_then_in_order() -> None:
    one = "INIT barrier=0;ARRIVE barrier=0;ARRIVE barrier=0"
    names = ("kernel.cu:38", "kernel.cu:52"), ("kernel.cu:41", "done")
    old, new = (build(one, barriers=tuple(Barrier(0, name, 0) for name in some)) for some in names)
    assert said(old, new) == []
    gone = build(one, "ARRIVE barrier=0 count=3")
    assert said(gone, build(one)) == [
        "role1: gone, was a role of 1 warp",
        "role1: arrive on b[0]: gone, was executed 3 times",
    ]
    assert said(build(one), gone)[0] == "role1: a new role of 1 warp"


def test_of_a_role_that_was_not_read_to_its_end_the_common_order_is_compared() -> None:
    whole = ring()
    begun = replace(ring(tiles=2), cut=(1,))
    found = sync_changes(whole, begun)
    assert (found.unread, found.changes) == (("role1",), ())
    other = replace(ring(tiles=2, use=USE.replace("FENCE fence=1;", "")), cut=(1,))
    assert said(whole, other) == ["role1: another sequence, arrive empty[0] where fence proxy.async was"]
    for use, load, sentence in (
        (USE.replace("count=2", "count=32"), LOAD, "role1: its 1st arrive on empty[0]: 2 → 32 arrivals"),
        (
            USE,
            LOAD.replace("bytes=64", "bytes=64 cta_mask=1"),
            "role0: another sequence, copy in CTAs 0 full[0] where copy full[0] was",
        ),
        (USE, LOAD.replace("expect=64", "expect={q}"), "role0: its 1st arrive on full[0]: 64 → 1 byte"),
        (USE, LOAD.replace("parity={q}", "parity=1"), "role0: its 3rd wait on empty[0] is for parity 1 instead of 0"),
    ):
        assert said(whole, replace(ring(load, use, tiles=3), cut=(0, 1))) == [sentence]
    spins = "TRY_WAIT barrier={f} parity={p} register=0;" * 2 + "WAIT barrier={f} parity={p};"
    without = USE.replace("ARRIVE barrier={e} count=2;", "")
    first = replace(ring(use=without + spins, tiles=1, marks=False), cut=(0, 1))
    assert said(ring(use=USE + "WAIT barrier={f} parity={p};", marks=False), first) == [
        "role1: another sequence, wait full[0] where arrive empty[0] was"
    ]
