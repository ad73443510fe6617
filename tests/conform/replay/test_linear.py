"""Replay is linear: it carries out each operation once, and asks in vain only where something then helps. No timing."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pipesim.conform.replay import follow_records as replay
from pipesim.model.machine import land, pass_over, step
from pipesim.model.ops import Op
from tests.conform.cases import simulated
from tests.support.fixture_types import Make


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counter[str]]:
    """Counts the machine's moves in the replay of a case."""
    seen: Counter[str] = Counter()

    def counted_step(program: Any, state: Any, agent: int) -> Any:
        result = step(program, state, agent)
        seen["moved" if result.blocked < 0 else "blocked"] += 1
        return result

    def counted_pass_over(program: Any, state: Any, agent: int, most: int) -> Any:
        after = pass_over(program, state, agent, most)
        seen["moved"] += after.pcs[agent] - state.pcs[agent]
        return after

    def counted_land(*arguments: Any) -> Any:
        seen["landed"] += 1
        return land(*arguments)

    monkeypatch.setattr(replay, "step", counted_step)
    monkeypatch.setattr(replay, "pass_over", counted_pass_over)
    monkeypatch.setattr(replay, "land", counted_land)

    def run(case: Any, *, accepted: bool = True) -> Counter[str]:
        seen.clear()
        if accepted:
            case.accepted()
        else:
            case.refused()
        return Counter(seen)

    return run


def operations(case: Any) -> int:
    return sum(len(code) for code in case.program.code)


def copies(case: Any) -> int:
    return sum(op[0] == Op.TMA_LOAD for code in case.program.code for op in code)


def suppliers(case: Any) -> int:
    """Operations that another agent may wait for: arrives, expects, copies, and the CTA barrier of the start."""
    helping = (Op.ARRIVE, Op.TMA_LOAD, Op.BAR_SYNC)
    return sum(op[0] in helping for code in case.program.code for op in code)


@pytest.mark.parametrize("shape", [{}, {"stages": 1}, {"warps": 4, "stages": 4}, {"tries": True, "work": 30}])
def test_every_operation_is_carried_out_once(count: Make, shape: dict[str, Any]) -> None:
    case = simulated(**{"tiles": 40} | shape)
    seen = count(case)
    assert seen["moved"] == operations(case)
    assert seen["landed"] <= copies(case)
    assert seen["blocked"] <= seen["landed"] + suppliers(case)
