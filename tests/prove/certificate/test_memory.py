"""What one run keeps of a program of 512 agents: not the moments of all of them for each operation, 4 KB each."""

import json
import tracemalloc
from collections import Counter

import pytest

from pipesim.answers.budget import USUAL_STATES, states_of
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.prove import check as checks
from pipesim.prove.certificate import certificate
from pipesim.prove.certificate.certificate import certified
from pipesim.prove.check import How, check
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Why
from tests.support.random_programs import FAMILIES

AGENTS, MANY = 512, 500
_Code = list[list[object]]
BEGIN: _Code = [[0, "INIT", 0, 1], [0, "FENCE", 0, 0]]
WAIT: _Code = [[0, "WAIT_GROUP", 1, 0]]
#: What agent 0 does 500 times, then once, and the doubts: phases, copies to one place, groups, groups of a later wait.
LOOPS: list[tuple[_Code, _Code, dict[Why, int]]] = [
    ([[0, "ARRIVE", 0, 1, 0, -1, 0]], [], {Why.EARLY_PART: 10}),
    ([[0, "TMA_LOAD", 0, 0, 16, 0, 0]], [], {Why.RACE: 10, Why.BYTES: 1}),
    ([[0, "COMMIT", 1, -1], *WAIT], [], {}),
    ([[0, "COMMIT", 1, -1]], WAIT, {}),
]


def program(code: _Code, barriers: int = 1) -> Program:
    """Of 16 CTAs, whose agents but the first end without a word."""
    small = json.loads(dumps(FAMILIES["rings"](0)))
    own = {"agents": [[n // 32, n % 32, 0xFFFFFFFF, "r", n] for n in range(AGENTS)], "named_barriers": [], "tiles": []}
    own |= {"barriers": [[0, "b", n] for n in range(barriers)], "accesses": [["SHARED", 0, 0, 64]], "loops": []}
    more = {"ctas": 16, "grid": 16, "sources": ["x:1"], "notes": [], "code": [code, *([[]] * (AGENTS - 1))]}
    return loads(json.dumps(small | own | more))


@pytest.mark.slow
@pytest.mark.parametrize(("often", "last", "doubts"), LOOPS, ids=["phases", "copies", "groups", "one wait"])
def test_a_loop(often: _Code, last: _Code, doubts: dict[Why, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "_MOST_OF_A_KIND", 10)
    made = program([*BEGIN, *(often * MANY), *last])
    tracemalloc.start()
    _, found = certified(made, MemoryOrder(made))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < MANY * 2_000
    assert Counter(doubt.why for doubt in found.doubts) == doubts


def test_what_is_wide_is_followed_less(monkeypatch: pytest.MonkeyPatch) -> None:
    made = program([[0, "INIT", 0, 1], [0, "INIT", 1, 1]], barriers=2)
    monkeypatch.setattr(checks, "_MOST_CLOCKED", 1_000)
    assert check(made, max_states=10).how is How.TOO_WIDE
    assert check(made, max_states=100_000).verdict is Verdict.PROVED
    assert states_of(None, program([])) == 30_000_000 // (1 + AGENTS + 1 + 1)
    assert states_of(None, FAMILIES["rings"](0)) == USUAL_STATES
