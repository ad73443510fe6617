"""Which of many programs that begin alike are right: each is run only from where it parts from the longest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import ge

from pipesim.model.program import Program
from pipesim.prove.any_size.laps import Outline, common, same_tables
from pipesim.prove.certificate.canonical import CanonicalRun, Witness
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.groups import awaited
from pipesim.prove.memory_order.faults import memory_order

_NEVER = -1


def holds(program: Program) -> bool:
    """True if one run represents every schedule of the program, and nothing is wrong with it."""
    certificate, memory = Certificate(program), memory_order(program)
    watching: list[Witness] = [certificate, *([memory] if memory is not None else [])]
    ends_well = _ends_well(CanonicalRun(program, watching), certificate)
    return ends_well and not (memory is not None and memory.faults)


def each_holds(outlines: Sequence[Outline]) -> list[bool]:
    """:func:`holds` of the program of each outline; the last should be the longest."""
    if not outlines:
        return []
    programs = [outline.program for outline in outlines]
    longest = programs[-1]
    stood = _rounds(longest)
    forks = [
        _NEVER if outline.order_may_fail else _parting(outline, outlines[-1], stood) for outline in outlines
    ]  # what gives concern runs as a whole, watched
    right: dict[int, bool] = {n: holds(programs[n]) for n, at in enumerate(forks) if at == _NEVER}
    certificate = Certificate(longest)
    run = CanonicalRun(longest, [certificate])
    for done in range(len(stood)):
        for n in (n for n, at in enumerate(forks) if at == done):
            watching = certificate.fork(programs[n])
            right[n] = _ends_well(run.fork(programs[n], [watching]), watching)
        if run.over or certificate.doubts or run.faults:
            break
        run.round()
    return [right.get(n, False) for n in range(len(programs))]


def _ends_well(run: CanonicalRun, certificate: Certificate) -> bool:
    while not run.over and not certificate.doubts and not run.faults:
        run.round()
    certificate.close()
    return run.finished and not run.faults and not certificate.doubts


def _rounds(program: Program) -> list[tuple[int, ...]]:
    """Where the agents stand before each round of the canonical run."""
    run = CanonicalRun(program)
    stood = [run.state.pcs]
    while not run.over:
        run.round()
        stood.append(run.state.pcs)
    return stood[:-1]


def _parting(outline: Outline, longest: Outline, stood: Sequence[tuple[int, ...]]) -> int:
    """The last of these moments of ``longest`` to which the program comes as well; :data:`_NEVER`: not to the first."""
    one, other = outline.program, longest.program
    if not same_tables(one, other) or awaited(one) != awaited(other):
        return _NEVER
    codes = zip(outline.code, longest.code, strict=True)
    items = zip(outline.items, longest.items, strict=True)
    alike = [min(common(*code), common(*item)) for code, item in zip(codes, items, strict=True)]
    ends = zip(outline.lengths, longest.lengths, alike, strict=True)
    limits = [same + (mine == theirs == same) for mine, theirs, same in ends]  # who has ended stands behind its last

    def parted(pcs: tuple[int, ...]) -> bool:
        return any(map(ge, pcs, limits))

    return bisect_left(stood, True, key=parted) - 1
