"""Random schedules of a program and how they end, and every end over all schedules."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipesim.model.finding import FaultKind
from pipesim.model.machine import Flight, Observer, State, finished, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import Op
from pipesim.model.program import Program


@dataclass(frozen=True)
class Run:
    """One schedule's end: where it stands, what went wrong, whether somebody never finished."""

    state: State
    faults: frozenset[FaultKind]
    stuck: bool

    @property
    def outcome(self) -> str:
        """The first fault, or how it ended."""
        if self.faults:
            return min(kind.name for kind in self.faults)
        return "stuck" if self.stuck else "finished"


def run(
    program: Program,
    seed: int,
    watch: Callable[[State], None] = lambda _: None,
    bias: int = 1,
    observers: Sequence[Observer] = (),
) -> Run:
    """A random schedule: who can move is chosen ``bias`` times in a row; copies land in random pieces, any time.

    ``watch`` sees every state, ``observers`` every move. Ends with the first fault, when nobody can move, or when all
    is done.
    """
    rng = random.Random(seed)
    state = initial_state(program)
    while True:
        able = [a for a in range(len(program.agents)) if not finished(program, state, a) and _moves(program, state, a)]
        moves: list[int | Flight] = [*able, *(f for f in state.flights if can_land(program, state, f))]
        if not moves:
            return Run(
                state, frozenset(), stuck=any(not finished(program, state, a) for a in range(len(program.agents)))
            )
        chosen = rng.choice(moves)
        for _ in range(rng.randint(1, bias) if isinstance(chosen, int) else 1):
            watch(state)
            if isinstance(chosen, int):
                if finished(program, state, chosen):
                    break
                made = step(program, state, chosen)
                for observer in observers:
                    observer.on_step(state, chosen, made)
            else:
                part = rng.choice([-1, 16, chosen.remaining // 32 * 16])
                made = land(program, state, chosen, part)
                for observer in observers:
                    observer.on_landing(chosen, chosen.remaining if part < 0 else min(part, chosen.remaining), made)
            state = made.state
            if made.faults:
                return Run(state, frozenset(f.kind for f in made.faults), stuck=False)
            if made.blocked >= 0:
                break


def _moves(program: Program, state: State, agent: int) -> bool:
    made = step(program, state, agent)
    return made.blocked < 0 or made.state is not state


def outcomes(program: Program, schedules: int = 60) -> set[str]:
    """How this many random schedules ended; half of them let an agent run on for a while."""
    return {run(program, seed, bias=1 + 7 * (seed % 2)).outcome for seed in range(schedules)}


_PRIVATE = frozenset({Op.WORK, Op.FENCE, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END})


def every_end(program: Program) -> set[str]:
    """How the program can end, over **all** its schedules (copies land whole)."""
    ends: set[str] = set()
    seen = {_settled(program, initial_state(program))}
    todo = list(seen)
    while todo:
        state = todo.pop()
        running = [a for a in range(len(program.agents)) if not finished(program, state, a)]
        made = [m for m in (step(program, state, a) for a in running) if m.state is not state or m.faults]
        made += [land(program, state, f) for f in state.flights if can_land(program, state, f)]
        if not made:
            ends.add("stuck" if running else "finished")
        for move in made:
            ends |= {fault.kind.name for fault in move.faults}
            after = _settled(program, move.state)
            if not move.faults and after not in seen:
                seen.add(after)
                todo.append(after)
    return ends


def _settled(program: Program, state: State) -> State:
    """The state after every move that nobody else can notice. An agent's last is none: its CTA may then exit."""
    for agent, code in enumerate(program.code):
        while state.pcs[agent] + 1 < len(code) and code[state.pcs[agent]][0] in _PRIVATE:
            state = step(program, state, agent).state
    return state
