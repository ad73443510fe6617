"""The states of one stage of a pipeline, from the code: drawn by ``docs_pictures.py``, does nothing by itself.

A protocol that uses a struct is run, and what happens to the barriers of its first stage is noted until they are as
they were: the states, and the steps that lead from one to the next. Nothing of it is typed by hand.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipesim.explain.operation_words import landing_in_words, operation_in_short
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.groups import BLOCKING_WAITS, ON_BARRIER, TRIES
from pipesim.model.machine import Flight, Observer, State, Step
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play
from pipesim.report.pictures.drawing import CELL, LINE, MARGIN, TEXT_STYLE, arrowhead, box, label, px, svg_file
from pipesim.report.text.words import count, number

_ITEM = re.compile(r" \(item \d+\)")
_STYLE = TEXT_STYLE + ".state{fill:#eaf2fc;stroke:#1f5fae}.way{fill:none;stroke:#33557f;stroke-width:1.4}"
_PAD, _BETWEEN, _LEFT = 8, 3 * LINE, 40  # inside a box; from one to the next, with the words; room for the way back


@dataclass(frozen=True)
class Place:
    """The barriers of one stage: of each the arrivals and the bytes pending, and the phases completed since then."""

    words: tuple[tuple[int, int, int], ...]

    def is_next_lap_of(self, first: "Place") -> bool:
        """As the first state, with one phase more of every barrier."""
        return self.words == tuple((arrivals, nbytes, done + 1) for arrivals, nbytes, done in first.words)


@dataclass
class Diagram:
    """The states in the order in which they were met, and what leads from one to the next."""

    names: tuple[str, ...]
    states: list[Place] = field(default_factory=list)
    edges: list[tuple[int, int, list[str]]] = field(default_factory=list)
    passed: dict[int, list[str]] = field(default_factory=dict)


def diagram(program: Program, groups: tuple[str, ...]) -> Diagram:
    """What happens to stage 0 of these groups of barriers in CTA 0, from their inits until they are as they were."""
    bars = [_index(program, group) for group in groups]
    found = Diagram(groups)
    begun: list[int] = []
    for state, said, waits in _steps(program, bars):
        begun = begun or [word.done for word in state]
        here = Place(tuple((word.pending, word.tx, word.done - n) for word, n in zip(state, begun, strict=True)))
        if not found.states:
            found.states.append(here)
            continue
        now = len(found.states) - 1
        if waits:
            found.passed.setdefault(now, []).append(said)
        elif here.is_next_lap_of(found.states[0]):
            found.edges.append((now, 0, [said]))
            return found
        elif here != found.states[now]:
            last = found.edges[-1][2] if found.edges else []
            if said in last and now not in found.passed:  # the same by another warp
                last.append(said)
                found.states[now] = here
            else:
                found.states.append(here)
                found.edges.append((now, now + 1, [said]))
    raise ValueError(f"{program.name}: the barriers {', '.join(groups)} do not become what they were")


def _index(program: Program, group: str) -> int:
    return next(n for n, bar in enumerate(program.barriers) if (bar.name, bar.stage, bar.cta) == (group, 0, 0))


class _Notes(Observer):
    """Every step on these barriers: their words after it, what was done, and whether it was a wait."""

    def __init__(self, program: Program, bars: list[int]) -> None:
        self.found: list[tuple[list[BarrierState], str, bool]] = []
        self._program, self._bars = program, bars

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An operation of an agent."""
        op = self._program.code[agent][before.pcs[agent]]
        if result.state is before or op[0] in TRIES or op[0] not in ON_BARRIER:
            return
        if operand(op, "barrier") not in self._bars:
            return
        said = f"{self._program.agents[agent].role}: {operation_in_short(self._program, op)}"
        self._note(result, said, waits=op[0] in BLOCKING_WAITS)

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """Bytes, or the arrival of a commit."""
        if flight.barrier not in self._bars:
            return
        op = self._program.code[flight.agent][flight.pc]
        self._note(result, landing_in_words(self._program, op, flight.barrier, nbytes, flight.remaining), waits=False)

    def _note(self, result: Step, said: str, *, waits: bool) -> None:
        self.found.append(([result.state.barriers[bar] for bar in self._bars], _ITEM.sub("", said), waits))


def _steps(program: Program, bars: list[int]) -> Iterator[tuple[list[BarrierState], str, bool]]:
    """What happens to these barriers in one plain schedule, from the last of their inits on."""
    notes = _Notes(program, bars)
    play = Play(program, observers=(notes,))
    agents = range(len(program.agents))
    while sum(play.advance(agent) for agent in agents) or play.land():  # each of them, not until one has moved
        pass
    live = [n for n, (words, _, _) in enumerate(notes.found) if all(word.life == LIVE for word in words)]
    yield from notes.found[live[0] :]


def state_lines(found: Diagram, n: int) -> list[str]:
    """What a state's box says: what each barrier waits for, and the waits that pass there."""
    words = [f"{name}: {_pending(*word)}" for name, word in zip(found.names, found.states[n].words, strict=True)]
    return words + [each.replace(": ", " passes ", 1) for each in dict.fromkeys(found.passed.get(n, []))]


def edge_words(said: list[str]) -> str:
    """What leads to the next state."""
    return f"{said[0]}, by {len(said)} warps" if len(said) > 1 else said[0]


def _pending(arrivals: int, nbytes: int, done: int) -> str:
    said = f"{count(arrivals, 'arrival')} pending{f', {number(nbytes)} bytes' if nbytes else ''}"
    return f"complete; of the next phase {said}" if done else said


def states_svg(struct: str, found: Diagram) -> str:
    """The states of a stage below each other, and the way from the last back to the first."""
    boxes = [state_lines(found, n) for n in range(len(found.states))]
    edges = [edge_words(said) for _, _, said in found.edges]
    wide = max(len(line) for lines in boxes for line in lines) * CELL + 4 * _PAD
    wide = max(wide, max(map(len, edges)) * CELL + wide / 2)
    tops = [MARGIN + sum(_height(lines) + _BETWEEN for lines in boxes[:n]) for n in range(len(boxes))]
    x, centre = MARGIN + _LEFT, MARGIN + _LEFT + 6 * CELL
    end = tops[-1] + _height(boxes[-1])
    body: list[str] = []
    for lines, top in zip(boxes, tops, strict=True):
        body += [box("state", x, top, wide, _height(lines), 4), *_text(lines, x + _PAD, top)]
        below = top + _height(lines)
        if top != tops[-1]:
            body.append(_way(f"M{px(centre)} {px(below)}V{px(below + _BETWEEN)}"))
    for top, lines, said in zip(tops, boxes, edges, strict=True):
        body.append(label(centre + _PAD, top + _height(lines) + _BETWEEN / 2 + 4, said))
    back, middle = MARGIN + _LEFT / 3, tops[0] + _height(boxes[0]) / 2
    body.append(_way(f"M{px(centre)} {px(end)}V{px(end + _BETWEEN)}H{px(back)}V{px(middle)}H{px(x)}"))
    title = f"the states of a stage of {struct}"
    head = arrowhead("next", "#33557f")
    return svg_file(title, _STYLE, head, body, x + wide + MARGIN, end + _BETWEEN + MARGIN)


def _height(lines: list[str]) -> float:
    return len(lines) * LINE + 2 * _PAD


def _text(lines: list[str], x: float, top: float) -> Iterator[str]:
    for n, line in enumerate(lines):
        yield label(x, top + _PAD + (n + 0.8) * LINE, line, "quiet" if " passes " in line else "")


def _way(path: str) -> str:
    return f'<path class="way" d="{path}" marker-end="url(#next)"/>'
