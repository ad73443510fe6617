"""The verdict for every schedule: by the certificate, else by a schedule that fails, else by search."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.certificate import Certificate
from pipesim.prove.confirm import confirm, refutation
from pipesim.prove.doubt import Doubt, Why
from pipesim.prove.memory_faults import memory_order, memory_refutations
from pipesim.prove.play import Play
from pipesim.prove.refutation import Refutation
from pipesim.prove.search import explore
from pipesim.unfold.occurrence import unfold

MOST_STATES = 200_000
_MOST_DOUBTS = 12  #: looked into, the first of each kind before the second of any


class How(Enum):
    """What the verdict rests on. The value is what reports say."""

    CERTIFICATE = "one run stands for every schedule"
    LAPS = "shorter runs that repeat stand for it"
    SCHEDULE = "a schedule that shows it"
    SEARCH = "every schedule was followed"
    SEARCH_OF_ONE_MEMORY = "every schedule was followed, fences and scopes in one of them"
    NOTHING = "the limit of the search was reached"


@dataclass(frozen=True)
class Check:
    """The verdict on one program.

    ``phases`` were completed in the run of the certificate; ``states`` are the search's, 0 if there was none.
    """

    verdict: Verdict
    how: How
    operations: int
    phases: int
    states: int
    doubts: tuple[Doubt, ...]
    refutations: tuple[Refutation, ...]


def check(program: Program, max_states: int = MOST_STATES) -> Check:
    """Judge ``program`` for every schedule. Proved, refuted with schedules, or unknown with what is doubtful."""
    certificate = Certificate(program)
    memory = memory_order(program)
    run = unfold(program, observers=[certificate, *([memory] if memory is not None else [])])
    certificate.close()
    unordered = memory_refutations(program, memory)
    phases = sum(phase.complete for barrier in run.phases for phase in barrier)

    def verdict(said: Verdict, how: How, states: int = 0, found: tuple[Refutation, ...] = ()) -> Check:
        operations = sum(map(len, program.code))
        return Check(said, how, operations, phases, states, certificate.doubts, found)

    if run.finished and not run.faults and not certificate.doubts and not unordered:
        return verdict(Verdict.PROVED, How.CERTIFICATE)
    found = _first_of_each(program, certificate.doubts)
    if not found and (run.faults or not run.finished) and not run.exhausted:
        play = Play(program)
        play.go_on(range(len(program.agents)))
        shown = refutation(play)
        found = (shown,) if shown is not None else ()
    if found or unordered:
        return verdict(Verdict.REFUTED, How.SCHEDULE, 0, found + unordered)
    seen = explore(program, max_states)
    searched = How.SEARCH if memory is None else How.SEARCH_OF_ONE_MEMORY
    how = How.SCHEDULE if seen.refutations else searched if seen.complete else How.NOTHING
    return verdict(seen.verdict, how, seen.states, seen.refutations)


def certified(program: Program) -> bool:
    """True if one run of ``program`` stands for every schedule and nothing is wrong in it."""
    certificate = Certificate(program)
    memory = memory_order(program)
    run = unfold(program, observers=[certificate, *([memory] if memory is not None else [])])
    certificate.close()
    return run.finished and not run.faults and not certificate.doubts and not (memory is not None and memory.faults)


def _first_of_each(program: Program, doubts: tuple[Doubt, ...]) -> tuple[Refutation, ...]:
    """A refutation of each kind that the doubts lead to, the shortest schedule first."""
    earlier: Counter[Why] = Counter()
    ranked: list[tuple[int, int, Doubt]] = []
    for n, doubt in enumerate(doubts):
        ranked.append((earlier[doubt.why], n, doubt))
        earlier[doubt.why] += 1
    found: dict[object, Refutation] = {}
    for _, _, doubt in sorted(ranked)[: max(_MOST_DOUBTS, len(earlier))]:
        shown = confirm(program, doubt)
        if shown is not None:
            known = found.get(shown.kind)
            if known is None or len(shown.schedule) < len(known.schedule):
                found[shown.kind] = shown
    return tuple(sorted(found.values(), key=lambda r: len(r.schedule)))
