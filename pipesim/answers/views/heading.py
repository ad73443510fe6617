"""What was checked, simulated or compared, read off its program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesim.model.program import Program
from pipesim.model.tables import WHOLE, Coverage


@dataclass(frozen=True)
class Heading:
    """What was run: the protocol, its parameters in their order, CTAs of the launch, and (role, warps) of each role.

    ``cluster``: CTAs in a cluster of the launch. ``pipelines``: the pipeline structs that its roles make.
    ``coverage``: what the program leaves out of the kernel that it was read from.
    """

    protocol: str
    params: Mapping[str, int]
    grid: int
    roles: tuple[tuple[str, int], ...]
    cluster: int = 1
    pipelines: tuple[str, ...] = ()
    coverage: Coverage = WHOLE


def heading(program: Program) -> Heading:
    """The heading of an answer about ``program``."""
    roles: dict[str, int] = {}
    for agent in program.agents:
        if agent.cta == 0:
            roles[agent.role] = roles.get(agent.role, 0) + 1
    return Heading(
        protocol=program.name,
        params=program.params,
        grid=program.grid * program.ctas,
        roles=tuple(roles.items()),
        cluster=program.ctas,
        pipelines=program.pipelines,
        coverage=program.coverage,
    )
