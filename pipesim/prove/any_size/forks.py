"""Which of many programs that begin alike are right: each is run only from where it parts from the longest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import ge

from pipesim.model.program import Program
from pipesim.prove.any_size.laps import Outline, common, same_tables
from pipesim.prove.certificate.canonical import CanonicalRun, Witness
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.memory_order.faults import memory_order
from pipesim.prove.memory_order.order import MemoryOrder

_NEVER = -1


def holds(program: Program) -> bool:
    """True if one run represents every schedule of the program, and nothing is wrong with it."""
    certificate, memory = Certificate(program), memory_order(program)
    return _ends_well(CanonicalRun(program, _both(certificate, memory)), certificate, memory)


def each_holds(outlines: Sequence[Outline]) -> list[bool]:
    """:func:`holds` of the program of each outline; the last should be the longest."""
    if not outlines:
        return []
    programs, concern = [outline.program for outline in outlines], outlines[-1].order_may_fail
    longest = programs[-1]
    stood = _rounds(longest)
    forks = [
        _parting(outline, outlines[-1], stood) if outline.order_may_fail == concern else _NEVER for outline in outlines
    ]  # where only one gives concern, memory order is watched in one of them
    right: dict[int, bool] = {n: holds(programs[n]) for n, at in enumerate(forks) if at == _NEVER}
    certificate, memory = Certificate(longest), MemoryOrder(longest) if concern else None
    run = CanonicalRun(longest, _both(certificate, memory))
    for done in range(len(stood)):
        for n in (n for n, at in enumerate(forks) if at == done):
            watching, observer = certificate.fork(programs[n]), None
            if memory is not None:
                observer = memory.fork()
                observer.goes_on_in(programs[n])
            right[n] = _ends_well(run.fork(programs[n], _both(watching, observer)), watching, observer)
        if _is_wrong(run, certificate, memory) or run.over:
            break
        run.round()
    return [right.get(n, False) for n in range(len(programs))]


def _both(certificate: Certificate, memory: MemoryOrder | None) -> list[Witness]:
    return [certificate, *([memory] if memory is not None else [])]


def _is_wrong(run: CanonicalRun, certificate: Certificate, memory: MemoryOrder | None) -> bool:
    return bool(certificate.doubts or run.faults or (memory is not None and memory.faults))


def _ends_well(run: CanonicalRun, certificate: Certificate, memory: MemoryOrder | None) -> bool:
    while not run.over and not _is_wrong(run, certificate, memory):
        run.round()
    certificate.close()
    return run.finished and not _is_wrong(run, certificate, memory)


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
    if not same_tables(one, other) or outline.awaited != longest.awaited:
        return _NEVER
    codes = zip(outline.code, longest.code, strict=True)
    items = zip(outline.items, longest.items, strict=True)
    alike = [min(common(*code), common(*item)) for code, item in zip(codes, items, strict=True)]
    ends = zip(outline.lengths, longest.lengths, alike, strict=True)
    limits = [same + (mine == theirs == same) for mine, theirs, same in ends]  # who has ended stands behind its last

    def parted(pcs: tuple[int, ...]) -> bool:
        return any(map(ge, pcs, limits))

    return bisect_left(stood, True, key=parted) - 1
