"""Single edits: what each changes in a flat program, what it is called, where it makes no sense."""

from collections import Counter
from typing import Any

import pytest

from pipesim.conform.diagnose.edits import Edit, EditKind, apply, describe, edits
from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.targets import find
from tests.conform.cases import simulated

SHORT = {Op.WAIT: "wait", Op.ARRIVE: "arrive", Op.READ: "read", Op.WORK: "work", Op.TMA_LOAD: "copy"}


def pc(**params: int) -> Program:
    return find("producer_consumer").build({"stages": 2, "tiles": 4, "tile_bytes": 64} | params)


def told(program: Program, agent: int) -> list[str]:
    """An agent's operations in short: ``wait full[0]/1``, ``arrive full[0]+64``, ``read 3``."""
    lines = []
    for op in program.code[agent]:
        name = SHORT.get(Op(op[0]))
        match op[0]:
            case Op.WAIT:
                lines.append(f"wait {program.barrier_name(op[1])}/{op[2]}")
            case Op.ARRIVE:
                lines.append(f"arrive {program.barrier_name(op[1])}" + (f"+{op[3]}" if op[3] else ""))
            case Op.READ:
                lines.append(f"read {program.access_name(op[1]).split()[0]} for {op[2]}")
            case Op.TMA_LOAD:
                lines.append(f"copy {op[4]}")
            case Op.WORK:
                lines.append("work")
            case _:
                assert name is None
    return lines


def tile(stage: int, parity: int, item: int) -> list[str]:
    return [f"wait full[{stage}]/{parity}", f"read tile[{stage}] for {item}", "work", f"arrive empty[{stage}]"]


RIGHT = tile(0, 0, 0) + tile(1, 0, 1) + tile(0, 1, 2) + tile(1, 1, 3)


def load(stage: int, parity: int, item: int) -> list[str]:
    return [f"wait empty[{stage}]/{parity}", f"arrive full[{stage}]+64", f"copy {item}"]


LOADS = load(0, 1, 0) + load(1, 1, 1) + load(0, 0, 2) + load(1, 0, 3)

STORIES: dict[tuple[EditKind, int, int], tuple[list[str], str]] = {
    (EditKind.MISSING_ARRIVE, 1, 1): (
        [*RIGHT[:7], *RIGHT[8:]],
        "consumer/0 does not arrive on empty[1] for tile 1",
    ),
    (EditKind.EXTRA_ARRIVE, 1, 2): (
        [*RIGHT[:12], "arrive empty[0]", *RIGHT[12:]],
        "consumer/0 arrives twice on empty[0] for tile 2",
    ),
    (EditKind.WRONG_PARITY, 1, 1): (
        [*RIGHT[:4], "wait full[1]/1", *RIGHT[5:]],
        "consumer/0 waits for full[1] with parity 1 instead of 0 for tile 1",
    ),
    (EditKind.EXPECT_MORE, 0, 3): (
        [*LOADS[:10], "arrive full[1]+80", "copy 3"],
        "producer expects 80 bytes instead of 64 at full[1] for tile 3",
    ),
    (EditKind.EXPECT_LESS, 0, 0): (
        ["wait empty[0]/1", "arrive full[0]+32", *LOADS[2:]],
        "producer expects 32 bytes instead of 64 at full[0] for tile 0",
    ),
    (EditKind.RELEASE_EARLY, 1, 3): (
        [*RIGHT[:13], "arrive empty[1]", "read tile[1] for 3", "work"],
        "consumer/0 arrives on empty[1] before it has used tile 3",
    ),
    (EditKind.NO_ACQUIRE, 0, 2): (
        [*LOADS[:6], *LOADS[7:]],
        "producer does not wait for empty[0] for tile 2",
    ),
    (EditKind.LEAVES_EARLY, 1, 1): (
        RIGHT[:4],
        "consumer/0 leaves its loop before tile 1, its wait for full[1]",
    ),
    (EditKind.LEAVES_EARLY, 1, 0): (
        [],
        "consumer/0 leaves its loop before tile 0, its wait for full[0]",
    ),
    (EditKind.SWAPPED_STAGES, 1, 1): (
        [
            *RIGHT[:4],
            *("wait full[0]/1", "read tile[0] for 1", "work", "arrive empty[0]"),
            *("wait full[1]/0", "read tile[1] for 2", "work", "arrive empty[1]"),
            *RIGHT[12:],
        ],
        "consumer/0 swaps the stages of tile 1 and the next: full[0] before full[1]",
    ),
    (EditKind.PHASE_NOT_TOGGLED, 1, 0): (
        [*RIGHT[:8], "wait full[0]/0", *RIGHT[9:12], "wait full[1]/0", *RIGHT[13:]],
        "consumer/0 does not toggle its phase when it reaches full[0] after tile 0",
    ),
}


@pytest.mark.parametrize(("kind", "agent", "iteration"), STORIES, ids=lambda v: v.value if hasattr(v, "value") else v)
def test_what_an_edit_changes(kind: EditKind, agent: int, iteration: int) -> None:
    program, edit = pc(), Edit(kind, agent, iteration)
    wrong = apply(program, edit)
    operations, words = STORIES[kind, agent, iteration]
    assert told(wrong, agent) == operations
    assert describe(program, edit) == words
    others = [a for a in range(3) if a != agent]
    assert [wrong.code[a] for a in others] == [program.code[a] for a in others]
    assert (wrong.agents, wrong.barriers, wrong.params) == (program.agents, program.barriers, program.params)


def test_every_kind_has_its_story() -> None:
    assert {kind for kind, _, _ in STORIES} == set(EditKind)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Edit(EditKind.MISSING_ARRIVE, 3, 0), "has no agent 3"),
        (Edit(EditKind.MISSING_ARRIVE, 1, 4), "consumer/0 has 4 such operations on empty"),
        (Edit(EditKind.WRONG_PARITY, 1, -1), "4 such operations on full"),
    ],
)
def test_edits_that_do_not_exist(edit: Edit, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        apply(pc(), edit)


def test_an_agent_of_two_pipelines() -> None:
    """A warp between two rings: its edits name the group, and each changes the right one."""
    p = Protocol("chain")
    tile = p.smem("tile", 2, 64)
    first, second = p.mbarriers("first", 2, count=1), p.mbarriers("second", 2, count=1)

    @p.role("middle")
    def middle(w: Any) -> None:
        with w.elect_one():
            for i in w.loop(4):
                first[i % 2].wait(i // 2 & 1)
                w.read(tile[i % 2])
                second[i % 2].wait(1 - (i // 2 & 1))
                first[i % 2].arrive()
                second[i % 2].arrive()

    program = p.flatten()
    kinds = Counter((edit.kind, edit.group) for edit in edits(program))
    assert kinds[EditKind.MISSING_ARRIVE, "first"] == kinds[EditKind.MISSING_ARRIVE, "second"] == 4
    assert kinds[EditKind.WRONG_PARITY, "first"] == kinds[EditKind.WRONG_PARITY, "second"] == 4
    assert sum(n for (kind, _), n in kinds.items() if kind is EditKind.LEAVES_EARLY) == 4  # one loop
    with pytest.raises(ParameterError, match="has such operations on first, second"):
        apply(program, Edit(EditKind.WRONG_PARITY, 0, 1))
    edit = Edit(EditKind.WRONG_PARITY, 0, 1, "second")
    assert describe(program, edit) == "middle waits for second[1] with parity 0 instead of 1 for tile 1"
    differing = [
        i for i, ops in enumerate(zip(program.code[0], apply(program, edit).code[0], strict=True)) if len(set(ops)) > 1
    ]
    assert [program.barrier_name(program.code[0][i][1]) for i in differing] == ["second[1]"]


def test_a_wait_that_tries_first_is_one_wait() -> None:
    program = simulated(stages=2, tiles=4, tries=True).program
    inverted = apply(program, Edit(EditKind.WRONG_PARITY, 1, 1, "full"))
    pairs = zip(program.code[1], inverted.code[1], strict=True)
    assert [(a[0], a[2], b[2]) for a, b in pairs if a != b] == [(Op.TRY_WAIT, 0, 1), (Op.WAIT_UNLESS, 0, 1)]
    without = apply(program, Edit(EditKind.NO_ACQUIRE, 1, 1, "full"))
    assert len(without.code[1]) == len(program.code[1]) - 2
