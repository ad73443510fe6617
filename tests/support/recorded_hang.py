"""The buffer of a rewritten kernel that hangs and is stopped by its flag: what a random schedule of the model leaves.

The times are those of the schedule, so that the order in which warps wait for each other is kept. It is for stamps by
position.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hwkernels.rewriter.instrument import Instrumented
from hwkernels.rewriter.sites import RecordedSite
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import Kind, canonical, make, moves
from pipesim.ptx.emit.record import Executed
from tests.support.recorded_path import PathWriter, filled

_APART = 1_000  #: cycles from one move of the schedule to the next


class HangWriter(PathWriter):
    """Writes the streams of one agent as far as it came; ``held``: the step at which it waits, -1 if it ended."""

    def __init__(
        self,
        kernel: Instrumented,
        agent: int,
        words: dict[int, npt.NDArray[np.uint32]],
        times: Mapping[int, int],
        held: int,
    ) -> None:
        super().__init__(kernel, agent, words, 0)
        self.times, self.held = times, held

    def _step(self, number: int, step: Executed) -> None:
        if self.held < 0 or number < self.held:
            super()._step(number, step)
        elif number == self.held:  # the first try and the time of the end, which the cursor does not pass
            for lane, words in self.words.items():
                if step.lanes >> lane & 1:
                    at = self.at[lane] // 4
                    words[at : at + 2] = self.clock + 10, self.clock + 1_000_000

    def _stamps(self, site: RecordedSite, number: int) -> tuple[int, ...]:
        then = max(self.times.get(number, 0), self.clock + 20)
        found = (self.clock + 10, then) if site.records == 2 else (then,)
        self.clock = then
        return found


def hung(kernel: Instrumented, seed: int = 0) -> bytearray:
    """The buffer that a launch leaves. AssertionError if the kernel does not hang, or a warp not at a wait."""
    program, chance = kernel.extraction.program, random.Random(seed)
    state, now = canonical(initial_state(program)), 0
    times: list[dict[int, int]] = [{} for _ in program.agents]
    while possible := moves(program, state):
        move = chance.choice(possible)
        now += _APART
        if move.kind is Kind.STEP:
            first, last = kernel.streams[move.who].steps[state.pcs[move.who]]
            times[move.who] |= dict.fromkeys(range(first, last + 1), now)
        after = make(program, state, move)
        assert not after.faults
        state = after.state
    held = []
    for agent, stream in enumerate(kernel.streams):
        step = -1 if finished(program, state, agent) else stream.steps[state.pcs[agent]][0]
        assert step < 0 or kernel.by_position[stream.path[step].position].spins
        held.append(step)
    assert max(held) >= 0
    return filled(kernel, lambda agent, words: HangWriter(kernel, agent, words, times[agent], held[agent]))
