"""What each agent knows to have happened, whatever the times: vector clocks along the order that a program enforces.

A clock has a component for each agent (operations carried out), each mbarrier (phases completed), each named barrier
(generations), the cluster barrier, and each agent's groups on each engine (groups finished). One thing happens before
another in every schedule if the other's clock says so; then no time can turn the two round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipesim.model.ops import Engine
from pipesim.model.program import Program

KnowledgeClock = NDArray[np.int64]

_ENGINES = len(Engine)


class AgentKnowledge:
    """The clock of every agent of a program."""

    def __init__(self, program: Program) -> None:
        agents = len(program.agents)
        self.barrier = agents  #: component of the first mbarrier
        self.named = agents + len(program.barriers)  #: of the first named barrier; the last is the cluster barrier
        self._groups = self.named + len(program.named_barriers) + 1
        self.clocks: list[KnowledgeClock] = [
            np.zeros(self._groups + agents * _ENGINES, dtype=np.int64) for _ in program.agents
        ]

    def did(self, agent: int, pc: int) -> None:
        """An agent has carried out the operation at ``pc``."""
        self.clocks[agent][agent] = pc + 1

    def learns(self, agent: int, clock: KnowledgeClock) -> None:
        """An agent knows from now on what is known by this clock, too."""
        np.maximum(self.clocks[agent], clock, out=self.clocks[agent])

    def groups(self, agent: int, engine: int) -> int:
        """The component of an agent's groups on an engine."""
        return self._groups + agent * _ENGINES + engine

    def copy(self, agent: int) -> KnowledgeClock:
        """What an agent knows now."""
        return self.clocks[agent].copy()
