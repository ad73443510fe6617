"""For what a verdict holds, what it assumes and what is not judged: the same for every command."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.model.assumptions import Assumption
from pipesim.model.coverage import Assumed, NotJudged, NotJudgedKind, never_wrapped
from pipesim.model.program import Program
from pipesim.model.rings import never_wrapped_in


@dataclass(frozen=True)
class VerdictScope:
    """``ctas``: the CTAs of the ``grid`` that were followed, () where all are the same; ``cluster``: CTAs of a cluster.

    ``assuming``: each assumption place by place, those of a kind together.
    """

    grid: int = 1
    cluster: int = 1
    ctas: tuple[int, ...] = ()
    assuming: tuple[Assumed, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()

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


def scope_of(program: Program, assuming: tuple[Assumed, ...], *, one_size: bool = False) -> VerdictScope:
    """The scope of a verdict on ``program``, which assumes what the kernel's reader did, and ``assuming``.

    ``one_size``: it is a proof for these sizes only, with which a ring may not be gone through again.
    """
    coverage = program.coverage
    described: tuple[NotJudged, ...] = ()
    if not coverage.extracted:
        once = _never_wrapped(program) if one_size else ()
        described = (NotJudged(NotJudgedKind.DESCRIPTION), *once)
    made = dict.fromkeys((*coverage.assumed, *assuming))
    return VerdictScope(
        grid=program.grid * program.ctas,
        cluster=program.ctas,
        ctas=coverage.ctas if len(coverage.ctas) < program.grid * program.ctas else (),
        assuming=tuple(sorted(made, key=lambda each: _ORDER[each.kind])),
        not_judged=(*coverage.not_judged, *described),
    )


def _never_wrapped(program: Program) -> tuple[NotJudged, ...]:
    """The barriers of a described program whose stages are used once, which a larger size would use again."""
    found = never_wrapped_in(program)
    return (never_wrapped(found, [(each.name, each.stage) for each in program.barriers]),) if found else ()


_ORDER = {kind: n for n, kind in enumerate(Assumption)}
