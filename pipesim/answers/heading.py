"""What was checked, simulated or compared, read off its program."""

from __future__ import annotations

from pipesim.answers.view import Heading
from pipesim.model.program import Program


def heading(program: Program) -> Heading:
    """The first lines of every report."""
    roles: dict[str, int] = {}
    for agent in program.agents:
        if agent.cta == 0:
            roles[agent.role] = roles.get(agent.role, 0) + 1
    return Heading(program.name, program.params, program.grid * program.ctas, tuple(roles.items()), program.ctas)
