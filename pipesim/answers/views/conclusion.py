"""What every answer has: its heading, which is read off the program, and its conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pipesim.model.coverage import WHOLE, Coverage
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.model.tables import number_runs
from pipesim.model.warp_shape import executes_as_warp_group


class Conclusion(Enum):
    """The conclusion of an answer; the command line has an exit code for each."""

    AGREES = "agrees"  #: proved, finished without a finding, or the same as what it was compared with
    OUTSIDE_TOLERANCE = "outside the tolerance"  #: agrees, but for the time
    UNKNOWN = "unknown"  #: a limit was reached, or evidence is missing
    WRONG = "wrong"  #: a finding, or a difference
    INTERNAL_ERROR = "internal error"  #: pipesim itself failed in a part of it

    @property
    def ok(self) -> bool | None:
        """True if it agrees, None if that is not known, False for anything else."""
        not_known = (Conclusion.UNKNOWN, Conclusion.INTERNAL_ERROR)
        return None if self in not_known else self is Conclusion.AGREES


class Answer(Protocol):
    """Every answer has a conclusion."""

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion."""


_BY_WEIGHT = (Conclusion.INTERNAL_ERROR, Conclusion.WRONG, Conclusion.UNKNOWN, Conclusion.OUTSIDE_TOLERANCE)
_OF_VERDICT = {
    Verdict.PROVED: Conclusion.AGREES,
    Verdict.REFUTED: Conclusion.WRONG,
    Verdict.UNKNOWN: Conclusion.UNKNOWN,
}


def worst(conclusions: Iterable[Conclusion]) -> Conclusion:
    """The conclusion of several: an internal error precedes what is wrong, that the unknown, that the tolerance."""
    found = set(conclusions)
    return next((each for each in _BY_WEIGHT if each in found), Conclusion.AGREES)


def of_verdict(verdict: Verdict) -> Conclusion:
    """The conclusion of a verdict for every schedule."""
    return _OF_VERDICT[verdict]


@dataclass(frozen=True)
class Heading:
    """What was run: the protocol, its parameters in their order, CTAs of the launch, and (role, warps) of each role.

    ``cluster``: CTAs in a cluster of the launch. ``pipelines``: the pipeline structs that its roles make.
    ``coverage``: what the program leaves out of the kernel that it was read from. ``warps``: the numbers of the warps
    of each role in the first CTA, where some execute what is for warp groups, in words: ``load 0``, ``mma 4 to 11``.
    """

    protocol: str
    params: Mapping[str, int]
    grid: int
    roles: tuple[tuple[str, int], ...]
    cluster: int = 1
    pipelines: tuple[str, ...] = ()
    coverage: Coverage = WHOLE
    warps: tuple[str, ...] = ()


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
        warps=_warps(program),
    )


def _warps(program: Program) -> tuple[str, ...]:
    if not any(executes_as_warp_group(op) for code in program.code for op in code):
        return ()
    numbers: dict[str, set[int]] = {}
    for agent in program.agents:
        if agent.cta == 0:
            numbers.setdefault(agent.role, set()).add(agent.warp)
    used = set().union(*numbers.values())
    unused = sorted(set(range(max(used))) - used)
    said = [f"{role} {number_runs(sorted(mine))}" for role, mine in numbers.items()]
    return (*said, *([f"unused {number_runs(unused)}"] if unused else []))
