"""The model compared with what an H100 and an H200 answered in the experiments of docs/experiments.md.

``traces/DEVICE/experiments.json`` has, for each case of an experiment, how often each thing happened, and numbers. A
check says whether an answer is one that the model allows; every check also sees a changed answer.
"""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from statistics import mode
from typing import Any

import numpy as np
import pytest

from hwkernels.records.clocks import ANCHOR, CLOCK_SKEW_CYCLES, Line, read_line
from hwkernels.source_recorder.decode import TIMER_STEPS
from pipesim.model import barrier
from pipesim.model.barrier import FRESH, LIVE, BarrierState, Effect
from tests.support.barrier_words import word_of
from tests.support.paths import TRACES

Answer = dict[str, Any]  #: ``outcomes``: what happened, how often; ``data``: lists of integers by name
DEVICES = ("h100", "h200")
RETURNED, WAITING = "returned", "still waiting at the deadline"


def trapped(answer: Answer) -> bool:
    return bool(answer["outcomes"]) and all(name.startswith("trap") for name in answer["outcomes"])


def step(state: BarrierState, name: str, operand: int) -> Effect:
    """What one operation of a sequence does."""
    match name:
        case "init":
            return barrier.init(state, operand)
        case "expect_tx":
            return barrier.add_tx(state, operand)
        case "arrive":
            return barrier.arrive(state, operand)
        case "arrive.expect_tx":
            return barrier.arrive(state, 1, operand)
        case "complete_tx":
            return barrier.add_tx(state, -operand)
        case "arrive_drop":
            return barrier.arrive_drop(state, operand)
        case "arrive.noComplete":
            return barrier.arrive_no_complete(state, operand)
        case "inval":
            return barrier.inval(state)
    raise AssertionError(name)


def a_sequence(case: str, answer: Answer) -> bool:
    """One thread's operations (``init 1; arrive``): the parity that has completed after each, and the last word."""
    state, expected = FRESH, []
    for part in case.split("; "):
        name, _, operand = part.partition(" ")
        state, _, fault = step(state, name, int(operand or 1))
        if fault is not None and fault.traps:
            return trapped(answer)
        expected.append(0 if state.life != LIVE else 1 if barrier.passes(state, 0) else 2)
    seen = [each & 3 for each in answer["data"]["answers"]]
    return (
        list(answer["outcomes"]) == ["finished"] and seen == expected and answer["data"]["words"][1] == word_of(state)
    )


def lanes_of_a_warp(case: str, answer: Answer) -> bool:
    """``5 on 3``: that many lanes arrive together on this count, or one after the other."""
    lanes, count = map(int, re.findall(r"\d+", case))
    state, traps = barrier.init(FRESH, count)[0], False
    for each in [1] * lanes if "after the other" in case else [lanes]:
        state, _, fault = barrier.arrive(state, each)
        traps |= fault is not None and fault.traps
    return trapped(answer) if traps else answer["data"]["words"] == [word_of(state)]


def a_copy(case: str, answer: Answer) -> bool:
    """``4 KB, 3/4 expected``: bytes that were not expected may complete the phase early, or leave it open."""
    size = 1024 * int(case.split(maxsplit=1)[0])
    share = case.partition(", ")[2].removesuffix(" expected")
    expected = {"all": size, "all but 16": size - 16}.get(share) or size * int(share[0]) // int(share[-1])
    early = {"completed early, all landed", "completed early, words missing"}
    allowed = {"completed, all landed"} if expected == size else {"hung", *early}
    words = {word_of(BarrierState(1, 1, expected - size, 1))}
    words |= set() if expected == size else {word_of(BarrierState(1, 0, expected - size))}
    return set(answer["outcomes"]) <= allowed and set(answer["data"]["words"]) <= words


def pieces(case: str, answer: Answer) -> bool:
    """A copy of which all bytes are expected completes its phase in all of 200 runs."""
    return bool(answer["data"]["at_once"] == [200])


def laps(case: str, answer: Answer) -> bool:
    """A wait for a parity, after some phases or while they complete, which may be missed."""
    phases = int(re.findall(r"(\d+) phases", case)[0])
    parity = int(case[-1]) if case.startswith("held") else 0
    state = barrier.init(FRESH, 1)[0]
    seen = [barrier.passes(state, parity)]
    for _ in range(phases):
        state = barrier.arrive(state, 1)[0]
        seen.append(barrier.passes(state, parity))
    either = any(seen) and not case.startswith("held")
    allowed = {RETURNED} if seen[-1] else {RETURNED, WAITING} if either else {WAITING}
    return set(answer["outcomes"]) <= allowed


def remote(case: str, answer: Answer) -> bool:
    """An arrive on the barrier of a CTA that has exited stops the launch."""
    return trapped(answer) if case == "exited" else list(answer["outcomes"]) == ["the wait returned"]


def finished(case: str, answer: Answer) -> bool:
    """Loads and products are finished at the arrive after them, stores are not; a control must show torn words."""
    torn = any(name.endswith("torn") for name in answer["outcomes"])
    ended = all(name.endswith(("torn", "whole")) for name in answer["outcomes"])
    return ended and (torn if "control" in case else case.startswith("st,") or not torn)


def timer_step(case: str, answer: Answer) -> bool:
    steps = {int(name.split()[0]): count for name, count in answer["outcomes"].items()}
    return max(steps) <= TIMER_STEPS * mode([each for each, count in steps.items() for _ in range(count)])


def quarters(case: str, answer: Answer) -> bool:
    """The clocks of an SM's quarters are within the bound that all traces state."""
    data = answer["data"]
    if case == "after a barrier":
        return bool(max(data["spread"]) <= CLOCK_SKEW_CYCLES)
    return bool(max(data["low"]) <= CLOCK_SKEW_CYCLES and min(data["high"]) >= -CLOCK_SKEW_CYCLES)


def timer_agreement(case: str, answer: Answer) -> bool:
    """All SMs may have one timer."""
    return bool(max(answer["data"]["low"]) <= 0 <= min(answer["data"]["high"]))


def pingpong(case: str, answer: Answer) -> bool:
    """A token is placed as sent before it is placed as received, in the bounds of both clocks."""
    data, size = answer["data"], int(case[-1])
    lines = [line_of(each) for each in data["anchors"]]
    origin = min(line.timers[0] for line in lines)
    agree = bool(answer["outcomes"] == {"CTAs finished": len(lines)})
    for cta, line in enumerate(lines):
        to = cta - cta % size + (cta + 1) % size
        sent = np.array(data["sent"][cta], dtype=np.int64) - line.cycles[0]
        received = np.array(data["received"][to], dtype=np.int64) - lines[to].cycles[0]
        earliest = line.place(sent, origin) - line.error_ps(sent)
        agree &= bool((earliest <= lines[to].place(received, origin) + lines[to].error_ps(received)).all())
    return agree


def line_of(anchors: list[list[int]]) -> Line:
    rows = np.array(anchors, dtype=np.uint64).reshape(2, -1).tolist()
    return read_line(np.array([tuple(row) for row in rows], dtype=ANCHOR), "a CTA")


CHECKS: dict[str, Callable[[str, Answer], bool]] = {
    "mbarrier": a_sequence,
    "lanes": lanes_of_a_warp,
    "copies": a_copy,
    "pieces": pieces,
    "laps": laps,
    "remote": remote,
    "finished": finished,
    "timer_step": timer_step,
    "quarters": quarters,
    "timer_agreement": timer_agreement,
    "pingpong": pingpong,
}
NOT_MODELLED = {"reading_cost", "latency"}  #: numbers only


def stored(device: str) -> dict[str, dict[str, Answer]]:
    """The answers by experiment and case."""
    document = json.loads((TRACES / device / "experiments.json").read_text(encoding="utf-8"))
    return {name: each["cases"] for name, each in document["experiments"].items()}


@pytest.mark.parametrize("device", DEVICES)
def test_the_model_allows_every_stored_answer(device: str) -> None:
    answers = stored(device)
    assert set(answers) - NOT_MODELLED <= set(CHECKS)
    assert set(CHECKS) - set(answers) <= {"finished"}
    for name, check in CHECKS.items():
        assert [case for case, answer in answers.get(name, {}).items() if not check(case, answer)] == []


#: A change of every answer of an experiment that no longer is what the model says.
CHANGES: dict[str, Callable[[Answer], object]] = {
    "mbarrier": lambda answer: answer["outcomes"].update({"finished": 1} if trapped(answer) else {"trap: x": 1}),
    "lanes": lambda answer: answer.update(outcomes={"finished": 1}, data={"words": [7]}),
    "copies": lambda answer: answer["data"].update(words=[word ^ 1 << 63 ^ 2 for word in answer["data"]["words"]]),
    "pieces": lambda answer: answer["data"].update(at_once=[199]),
    "laps": lambda answer: answer["outcomes"].update({"the launch failed": 1}),
    "remote": lambda answer: answer["outcomes"].update({"the wait did not return": 1}),
    "finished": lambda answer: answer["outcomes"].update({"CTAs at the deadline": 1}),
    "timer_step": lambda answer: answer["outcomes"].update({"96 ns": 1}),
    "quarters": lambda answer: answer["data"].update(spread=[1, 8, 21], low=[21], high=[30]),
    "timer_agreement": lambda answer: answer["data"].update(low=[-500, 64], high=[600, 700]),
    "pingpong": lambda answer: answer["data"].update(received=answer["data"]["sent"], sent=answer["data"]["received"]),
}


@pytest.mark.parametrize("name", CHECKS)
def test_another_answer_is_seen(name: str) -> None:
    for case, answer in stored("h200")[name].items():
        other = deepcopy(answer)
        CHANGES[name](other)
        assert not CHECKS[name](case, other), case
