"""Laps that are left out of a long run: on random loops it says what the whole run says, items and all."""

import random

import pytest

from pipesim.model.ops import OPERANDS, Op
from pipesim.model.program import Program
from pipesim.prove.any_size import skip_laps as module
from pipesim.prove.any_size.skip_laps import phases_by_laps
from pipesim.prove.certificate.canonical import CanonicalRun, completed_phases
from pipesim.prove.certificate.certificate import Certificate
from tests.support.random_programs.loops import HALF, MEET, SLOT, loop_program, random_loop

LAPS = 12
_WRITES = {Op.WRITE: 1, Op.TMA_LOAD: 2, Op.TRANSFER_WRITE: 2}  #: position of the access in each


def whole(program: Program) -> int | None:
    """The phases of the whole run if it stands for every schedule, else None."""
    certificate = Certificate(program)
    run = CanonicalRun(program, [certificate])
    run.to_end()
    certificate.close()
    right = run.finished and not run.faults and not certificate.doubts
    return sum(completed_phases(run.state)[: len(program.barriers)]) if right else None


def numbered(seed: int) -> Program:
    """The loop of this seed, whose hand-overs are numbered, from 0 on or in threes; in some one item is wrong.

    In every fourth of them what is wrong, if anything is, shows late.
    """
    _, program = random_loop(seed, LAPS, ends_late=seed % 4 == 3)
    rng = random.Random(seed)
    period = rng.choice([1, 3, 1 << 30, 1 << 30])
    codes = []
    for agent, code in enumerate(program.code):
        made, told = [], 0
        for op in code:
            hands_over = op[0] in _WRITES and op[_WRITES[Op(op[0])]] == SLOT and agent == 0
            takes = op[0] == Op.READ and op[1] in (SLOT, HALF) and agent > 0
            made.append(_with_item(op, told % period) if hands_over or takes else op)
            told += hands_over or takes
        codes.append(made + MEET)
    if rng.random() < 0.4:
        wrong = rng.choice(codes)
        at = rng.choice([n for n, op in enumerate(wrong) if op[0] in (Op.READ, Op.WRITE)] or [0])
        if wrong[at][0] in (Op.READ, Op.WRITE):
            wrong[at] = _with_item(wrong[at], wrong[at][2] + 1)
    return loop_program(codes, [agent.cta for agent in program.agents])


def _with_item(op: tuple[int, ...], item: int) -> tuple[int, ...]:
    at = OPERANDS[Op(op[0])].index("item") + 1
    return (*op[:at], item, *op[at + 1 :])


@pytest.mark.slow
def test_what_is_left_out_changes_nothing() -> None:
    said = [(whole(numbered(seed)), phases_by_laps(numbered(seed))) for seed in range(80)]
    assert [seed for seed, (all_of_it, short) in enumerate(said) if all_of_it != short] == []
    assert sum(phases is not None for phases, _ in said) > 12
    assert sum(phases is None for phases, _ in said) > 12


def test_items_that_are_not_looked_at_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: laps left out without a look at their items."""
    monkeypatch.setattr(module._LapRun, "_items_go_on", lambda *_: True)
    program = numbered(125)
    assert phases_by_laps(program) is not None
    assert whole(program) is None
