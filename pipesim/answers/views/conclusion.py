"""What every answer has: its heading, which is read off the program, its conclusion, and the scope of its verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from pipesim.errors import InternalError
from pipesim.model.coverage import RULES, WHOLE, Assumed, Assumption, Coverage, NotJudged, NotJudgedKind, never_wrapped
from pipesim.model.finding import Verdict
from pipesim.model.ops import Space
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import executes_as_warp_group
from pipesim.model.tables import number_runs
from pipesim.model.waits import never_wrapped_in

if TYPE_CHECKING:
    from pipesim.conform.result import TraceVerdict  # which a check does without


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


class Basis(Enum):
    """How sure one finding is. The value is what reports say."""

    CERTAIN = "certain"  #: also the schedule in which nothing is late ends so
    POSSIBLE = "possible"  #: a schedule that PTX permits, or an order that it does not promise
    LETTER = "letter"  #: PTX leaves it undefined, and no measured hardware does it

    def fails(self, threshold: "Basis") -> bool:
        """Whether a finding of this basis fails a check that fails on this one and all that is surer."""
        order = list(Basis)
        return order.index(self) <= order.index(threshold)


class Answer(Protocol):
    """Every answer has a conclusion."""

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion."""


_BY_WEIGHT = (Conclusion.INTERNAL_ERROR, Conclusion.WRONG, Conclusion.UNKNOWN, Conclusion.OUTSIDE_TOLERANCE)
_OF_VERDICT = {"PROVED": Conclusion.AGREES, "REFUTED": Conclusion.WRONG, "UNKNOWN": Conclusion.UNKNOWN}
_OF_VERDICT |= {"AGREES": Conclusion.AGREES, "DIFFERS": Conclusion.WRONG}  # of a trace


def worst(conclusions: Iterable[Conclusion]) -> Conclusion:
    """The conclusion of several: an internal error precedes what is wrong, that the unknown, that the tolerance."""
    found = set(conclusions)
    return next((each for each in _BY_WEIGHT if each in found), Conclusion.AGREES)


#: The one place where exit codes are decided (those of errors are in pipesim.errors).
EXIT_CODES = {
    Conclusion.AGREES: 0,
    Conclusion.WRONG: 1,
    Conclusion.UNKNOWN: 3,
    Conclusion.OUTSIDE_TOLERANCE: 4,
    Conclusion.INTERNAL_ERROR: InternalError.exit_code,
}


def exit_code(*answers: Answer) -> int:
    """The code of the worst of these answers; 0 of none."""
    return EXIT_CODES[worst(answer.conclusion for answer in answers)]


def of_verdict(verdict: "Verdict | TraceVerdict") -> Conclusion:
    """The conclusion of a verdict for every schedule, or on a trace."""
    return _OF_VERDICT[verdict.name]


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
        grid=_grid(program),
        roles=tuple(roles.items()),
        cluster=program.ctas if program.words_cta < 0 else 1,
        pipelines=program.pipelines,
        coverage=program.coverage,
        warps=_warps(program),
    )


def _grid(program: Program) -> int:
    """The CTAs of the launch."""
    return program.grid * program.agent_ctas


def _warps(program: Program) -> tuple[str, ...]:
    if not any(executes_as_warp_group(op) for op in program.operations):
        return ()
    numbers: dict[str, set[int]] = {}
    for agent in program.agents:
        if agent.cta == 0:
            numbers.setdefault(agent.role, set()).add(agent.warp)
    used = set().union(*numbers.values())
    unused = sorted(set(range(max(used, default=0))) - used)
    said = [f"{role} {number_runs(sorted(mine))}" for role, mine in numbers.items()]
    return (*said, *([f"unused {number_runs(unused)}"] if unused else []))


@dataclass(frozen=True)
class VerdictScope:
    """``ctas``: the CTAs of the ``grid`` that were followed, () where all are the same; ``cluster``: CTAs of a cluster.

    ``assuming``: each assumption place by place, those of a kind together. ``policies``: with which of these values the
    kernel was checked, where other CTAs may leave it fewer tiles. ``contents``: the free arrays, with the values that
    each element may have: from, to, in steps of. ``any_tiles``: whichever tiles are handed out, up to this many;
    -1: in all that were looked at, None: they are not free. ``together``: how many CTAs were looked at that talk by
    these ``words`` of global memory. ``on_global``: what is said of global memory. ``meet``: all CTAs
    of the grid do the same to the words, so that each wait ends when all have come so far. ``any_ctas``: so it is in a
    grid of any number of CTAs along x, up to this one.
    """

    grid: int = 1
    cluster: int = 1
    ctas: tuple[int, ...] = ()
    assuming: tuple[Assumed, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    policies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    contents: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    any_tiles: int | None = None
    together: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    on_global: tuple[str, ...] = ()
    meet: bool = False
    any_ctas: int = 0

    def counted(self) -> dict[Assumption, int]:
        """Each assumption, and at how many places it is made."""
        return {kind: sum(each.kind is kind for each in self.assuming) for kind in self.kinds}

    @property
    def kinds(self) -> tuple[Assumption, ...]:
        """The assumptions, each once."""
        made = {each.kind for each in self.assuming}
        return tuple(kind for kind in Assumption if kind in made)


@dataclass(frozen=True)
class AssumptionCount:
    """An assumption as JSON, SARIF and JUnit name it: its switch, at how many places it is made, and its words."""

    name: str
    switch: str
    count: int
    said: str


def scope_of(
    program: Program,
    assuming: tuple[Assumed, ...],
    policies: Mapping[str, tuple[int, ...]] | None = None,
    *,
    one_size: bool = False,
    every_cta: bool = False,
) -> VerdictScope:
    """The scope of a verdict on ``program``, which assumes what the kernel's reader did, and ``assuming``.

    ``policies``: with which the kernel was checked. ``one_size``: it is a proof for these sizes only, with which a ring
    may not be gone through again. ``every_cta``: others than those of the program were looked at as well.
    """
    coverage = program.coverage
    described: tuple[NotJudged, ...] = ()
    if not coverage.extracted:
        once = _never_wrapped(program) if one_size else ()
        declares = program.words_cta >= 0 or any(each.space == Space.GLOBAL for each in program.tiles)
        described = (NotJudged(NotJudgedKind.UNDECLARED if declares else NotJudgedKind.DESCRIPTION), *once)
    findings = program.strictness & RULES  # what breaks these is a finding, and not assumed
    made = dict.fromkeys(each for each in (*coverage.assumed, *assuming) if each.kind not in findings)
    return VerdictScope(
        grid=_grid(program),
        cluster=program.ctas,
        ctas=() if every_cta or len(coverage.ctas) == _grid(program) else coverage.ctas,
        assuming=tuple(sorted(made, key=lambda each: _ORDER[each.kind])),
        not_judged=(*coverage.not_judged, *described),
        policies=policies or {},
        on_global=coverage.on_global,
    )


def _never_wrapped(program: Program) -> tuple[NotJudged, ...]:
    """The barriers of a described program whose stages are used once, which a larger size would use again."""
    words = {each.name for n, each in enumerate(program.barriers) if program.is_word(n)}
    found = [each for each in never_wrapped_in(program) if each[0] not in words]
    return (never_wrapped(found, [(each.name, each.stage) for each in program.barriers]),) if found else ()


_ORDER = {kind: n for n, kind in enumerate(Assumption)}
