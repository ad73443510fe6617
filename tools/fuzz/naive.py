"""Engines of a few lines: every schedule in a loop, a schedule move by move, the order of a trace's records.

They know the machine and its moves, and nothing of the proof, its reductions, or the replay of traces.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.model.ending import Ending
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import Kind, Move, canonical, make, moves
from pipesim.model.program import Program
from pipesim.trace.schema import Trace

DEADLOCK = Ending.DEADLOCK.name.lower()
#: Kinds that no schedule shows: the naive search cannot see them.
UNSEEN = frozenset(kind.name.lower() for kind in NO_MOVE_SHOWS)
#: A hang that has a name of its own ends as every other one.
_HANGS = {"lapped_waiter": DEADLOCK}
_MARKS = {"": Kind.STEP, "o": Kind.OPEN, "n": Kind.FAIL}
_STEP = re.compile(r"([0-9]+)([on]?)")
_LANDING = re.compile(r"~([0-9]+):([0-9]+)")


def seen_kinds(document: Mapping[str, Any]) -> set[str]:
    """The kinds of findings of an answer, as the naive search calls them, without those that it cannot see."""
    return {_HANGS.get(each["kind"], each["kind"]) for each in document["findings"]} - UNSEEN


@dataclass(frozen=True)
class Explored:
    """What every schedule of a program does. ``complete``: all of them were followed."""

    wrong: frozenset[str]
    complete: bool


def explore(program: Program, most: int) -> Explored:
    """Follow every move of every state, up to this many states."""
    start = canonical(initial_state(program))
    known, waiting, wrong = {start}, deque([start]), set()
    while waiting and len(known) <= most:
        state = waiting.popleft()
        possible = moves(program, state)
        if not possible and not all(finished(program, state, a) for a in range(len(program.agents))):
            wrong.add(DEADLOCK)
        for move in possible:
            after = make(program, state, move)
            wrong |= {fault.kind.name.lower() for fault in after.faults}
            if not after.faults and after.state not in known:
                known.add(after.state)
                waiting.append(after.state)
    return Explored(frozenset(wrong), not waiting)


def replay(program: Program, text: str, most: int = 20_000) -> frozenset[str] | None:
    """What is wrong after the moves of a line, or was first; None where one is not possible or there are too many."""
    state, wrong, first = canonical(initial_state(program)), frozenset[str](), frozenset[str]()
    done, trapped = 0, False
    for word in "".join(text.split()).split("."):
        name, times = _times(word)
        for _ in range(times):
            done += 1
            move = _move(name)
            if done > most or trapped or move is None or move not in moves(program, state):
                return None
            after = make(program, state, move)
            state, wrong = after.state, frozenset(fault.kind.name.lower() for fault in after.faults)
            first, trapped = first or wrong, any(fault.kind.traps for fault in after.faults)
    ended = all(finished(program, state, agent) for agent in range(len(program.agents)))
    return wrong or first if wrong or ended or moves(program, state) else frozenset({DEADLOCK})


def _times(word: str) -> tuple[str, int]:
    name, star, times = word.partition("*")
    if not star:
        return name, 1
    return (name, min(int(times[:9]), 10**8)) if re.fullmatch("[1-9][0-9]*", times) else ("", 1)


def _move(name: str) -> Move | None:
    if (step := _STEP.fullmatch(name)) and len(name) < 30:
        return Move(_MARKS[step[2]], int(step[1]))
    if (landing := _LANDING.fullmatch(name)) and len(name) < 60:
        return Move(Kind.LAND, int(landing[1]), int(landing[2]))
    return None


def recorded_order(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    """What each agent of a trace recorded, in its order and without times: sites by what they are, not by number.

    Agents by role and number, each with its CTA's place among those recorded.
    """
    meta, events = trace.meta, trace.events
    ctas = {int(cta): n for n, cta in enumerate(sorted(set(events.cta.tolist())))}
    found: dict[str, list[tuple[object, ...]]] = {}
    columns = (events.cta, events.agent, events.site, events.stage, events.parity, events.iteration, events.value)
    for cta, agent, site, *rest in zip(*(column.tolist() for column in columns), strict=True):
        info = meta.agents[agent]
        who = f"{info.role}/{info.index}@{ctas[cta]}"
        found.setdefault(who, []).append((*meta.sites[site].key, *rest))
    return found
