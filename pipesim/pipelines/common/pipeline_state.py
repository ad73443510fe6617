"""``PipelineState``: index, phase and count of one side of a ring.

Two libraries have it with the same meaning: Modular's ``layout/tma_async.mojo`` (``step``, ``next``) and CUTLASS's
``include/cutlass/pipeline/sm90_pipeline.hpp`` (``++state``, ``state += n``, ``advance``). Both pass it by value.
Python passes the object itself, so a method that steps a state which it only borrowed takes a copy first.
"""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.pipelines.common.register_value import RegisterValue


class PipelineState(RegisterValue):
    """The place of one side in a ring of ``num_stages`` stages. A consumer starts at phase 0, a producer at phase 1.

    With 0 stages no step changes anything; with 1 stage every step toggles the phase.
    """

    def __init__(self, num_stages: int, index: int = 0, phase: int = 0, count: int = 0) -> None:
        super().__init__()
        if num_stages < 0 or not 0 <= index < max(num_stages, 1) or phase not in (0, 1):
            raise ProtocolError(
                f"a state at stage {index}, phase {phase} of a ring of {num_stages} stages",
                place=author_line(),
                correction="give a stage inside the ring, and phase 0 or 1",
            )
        self.num_stages = num_stages
        self._index = index
        self._phase = phase
        self._count = count

    def index(self) -> int:
        """The stage."""
        return self._index

    def phase(self) -> int:
        """The parity to wait for."""
        return self._phase

    def count(self) -> int:
        """Steps made so far."""
        return self._count

    def step(self) -> None:
        """To the next stage (CUTLASS: ``++state``); after the last one back to 0, and the phase toggles."""
        self.advance(1)

    def next(self) -> PipelineState:
        """:meth:`step`, then a copy of the state."""
        self.step()
        return self.copy()

    def advance(self, num_iterations: int) -> PipelineState:
        """Several steps in one call; the state itself, as CUTLASS returns it."""
        self._mine()
        if num_iterations < 0:
            raise ProtocolError(
                f"a pipeline state moves back by {-num_iterations} steps",
                place=author_line(),
                correction="advance by 0 or more",
            )
        if self.num_stages:
            laps, self._index = divmod(self._index + num_iterations, self.num_stages)
            self._phase ^= laps & 1
            self._count += num_iterations
        return self

    @staticmethod
    def make_pipeline_state(start_state: PipelineState, num_iterations: int) -> PipelineState:
        """A copy of ``start_state``, this many steps further."""
        return start_state.copy().advance(num_iterations)


def make_producer_start_state(num_stages: int) -> PipelineState:
    """Where a producer starts: stage 0, phase 1, because every stage is empty at first."""
    return PipelineState(num_stages, 0, 1, 0)
