"""A cluster that hangs is followed further: where every warp waits, the phase that is most overdue is completed.

Then it is known what the warps do after a hang, so that corrections can be tried on all of it; the order in which they
do so is one of many. What lacks something is a guess: the wait for the earliest phase of an mbarrier, since all later
phases come after it. Where the guess is wrong the cluster hangs again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipesim.model.barrier import BarrierState
from pipesim.model.groups import BY_PARITY, ON_NAMED_BARRIER
from pipesim.model.ops import operand
from pipesim.ptx.emit.record import Place, StreamRecorder
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulate.warp import EmulatedWarp

MOST_COMPLETED = 4_000  #: phases; beyond them nothing is guessed


def most_overdue(
    recorder: StreamRecorder, warps: Sequence[EmulatedWarp], states: Mapping[Place, BarrierState]
) -> EmulatedWarp | None:
    """The warp that waits for it, None if none waits: for an mbarrier before a named barrier or the cluster.

    Of equal phases that of the barrier for which the warp has waited least often, as of a stage that is filled; of
    named barriers that of the fewest threads: a meeting of the whole CTA is last for all.
    """
    places = list(recorder.barriers)

    def rank(warp: EmulatedWarp) -> tuple[int, int, int]:
        code = recorder.streams[warp.agent].code
        op = code[-1]
        if op[0] not in BY_PARITY:
            return (1, operand(op, "threads"), 0) if op[0] in ON_NAMED_BARRIER else (2, 0, 0)
        mine = operand(op, "barrier")
        often = sum(each[0] in BY_PARITY and operand(each, "barrier") == mine for each in code)
        return 0, states[places[mine]].done, often

    return min((warp for warp in warps if warp.status is Status.BLOCKED), key=rank, default=None)
