"""The verdict for every schedule: by the certificate, else by a schedule that fails, else by search."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from pipesim.findings.catalog import CAUSES_THEMSELVES
from pipesim.model.coverage import RULES, Assumption, NotJudgedKind
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import assumed_registers
from pipesim.model.state import own_channel
from pipesim.prove.any_size.left_out import does_the_same
from pipesim.prove.any_size.skip_laps import LONG, phases_by_laps
from pipesim.prove.certificate.canonical import CanonicalRun, by_rules_for_commits, completed_phases
from pipesim.prove.certificate.certificate import certified
from pipesim.prove.counterexample.confirm import at_once, confirm, hang_beside, may_be_ended, shown_by_code
from pipesim.prove.counterexample.every_schedule import in_every_schedule
from pipesim.prove.dependent_launch import assumed_of_earlier_kernels, is_open, launch_refutations
from pipesim.prove.memory_order.exchanged import exchanged_barriers
from pipesim.prove.memory_order.may_fail import memory_order, memory_refutations
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Doubt, Refutation, Why, certain_part, is_unsure, sides_of
from pipesim.prove.search.breadth_first import MOST_STATES as MOST_WITH_CLOCKS
from pipesim.prove.search.breadth_first import explore, of_two, outcomes, search_memory_order
from pipesim.prove.search.random_schedules import random_refutation

MOST_STATES = 200_000
_MOST_OF_BEGINNINGS = 2_000  #: states of a program that cannot be proved
_MOST_CLOCKED = 20_000_000  #: agents and barriers that the last phases of all barriers may know of: 8 bytes each, twice
_MOST_KNOWN = 1_600_000  #: agents and barriers in all states of a search that follows the order of memory
_MOST_DOUBTS = 12  #: looked into, the first of each kind before the second of any


class How(Enum):
    """What the verdict rests on. The value is what reports say."""

    CERTIFICATE = "one run represents every schedule"
    SCHEDULE = "counterexample found"
    SEARCH = "every schedule searched"
    NOTHING = "the search reached its limit"
    OUT_OF_TIME = "the time limit was reached"
    OUT_OF_MEMORY = "the memory limit was reached"
    STOPPED = "stopped by the user"
    SOME_CTAS = "not every CTA was looked at"
    WORDS = "what CTAs read of words of global memory may depend on the schedule"
    OPEN_WORDS = "whether CTAs hang that wait for each other is not known"
    OPEN_DATA = "what orders data that CTAs share is not known"
    SOME_ORDERS = "not all orders of atomics were looked at"
    SOME_CONTENTS = "not all contents of free arrays were looked at"
    CUT = "agents were not followed to their end: see coverage"
    PERHAPS = "values that are not known decide whether what fails happens: see coverage"
    GUESSED = "what is guessed of the launch decides whether what fails happens"
    UNREAD = "what was not understood may touch what others use: see coverage"
    UNSIZED = "tensor maps have no box: see coverage"
    UNDEFINED = "the kernel does what PTX leaves undefined: see coverage"
    LANES = "lanes of a warp may send what others of it wait for, on another way of a branch"
    WEAKENED = "the kernel has an order that the program has not: see coverage"
    OPEN_WAITS = "no one run shows, in the order of memory, which accesses come after griddepcontrol.wait"
    ASSUMES = "it needs an assumption that was ruled out"
    TOO_WIDE = "more agents and barriers than are followed together (--max-states raises the limit)"
    MEMORY_NOT_SEARCHED = "the search of fences and scopes reached its limit"


@dataclass(frozen=True)
class Check:
    """The verdict on one program.

    ``phases`` were completed in the run of the certificate; ``states`` are the search's, 0 if there was none.
    ``by_commit_order``: one run represents every schedule, but only if commits of one thread arrive in order.
    """

    verdict: Verdict
    how: How
    operations: int
    phases: int
    states: int
    doubts: tuple[Doubt, ...]
    refutations: tuple[Refutation, ...]
    by_commit_order: bool = False


def check(program: Program, max_states: int = MOST_STATES, *, one_memory: bool = False) -> Check:
    """Check ``program`` for every schedule. Proved, refuted with schedules, or unknown with what is doubtful.

    ``one_memory``: as on a machine that needs no fences and knows no scopes, which is what the search follows. Where
    the program's coverage says that agents were not followed to their end, nothing is proved. What a schedule of their
    beginnings shows is refuted: the kernel has a schedule that begins so, and what was not read comes later. An agent
    at the place where reading stopped has not ended, and whoever waits then may wait for it.
    """
    if program.laps:
        found = check(program.with_laps, max_states, one_memory=one_memory)
        proved = found.verdict is Verdict.PROVED and found.how is How.CERTIFICATE and does_the_same(program)
        return found if proved else unknown(program, How.CUT)
    channels = own_channel(program, 0)
    if channels * (channels + len(program.agents)) > max(_MOST_CLOCKED, 100 * max_states):
        return unknown(program, How.TOO_WIDE)
    if program.coverage.stopped and not program.cut:  # what was read is not what happens: sizes are not known
        return unknown(program, How.UNSIZED if program.coverage.unsized else How.CUT)
    if any(each.kind is NotJudgedKind.WORDS for each in program.coverage.not_judged):
        return unknown(program, How.WORDS)
    found = _with_coverage(program, _without_unsure(program, _check(program, max_states, one_memory=one_memory)))
    if found.verdict is Verdict.PROVED and (certain := certain_part(program)) is not program:
        without = _check(certain, max_states, one_memory=True).verdict  # a write that others need may not happen
        found = found if without is Verdict.PROVED else replace(found, verdict=Verdict.UNKNOWN, how=How.PERHAPS)
    shown = () if one_memory else shown_by_code(program)
    shown += launch_refutations(program) if program.coverage.dependent and not one_memory else ()
    if not shown:
        return found
    ranked = sorted((*shown, *found.refutations), key=lambda each: each.kind not in CAUSES_THEMSELVES)
    return replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=tuple(ranked))


def _with_coverage(program: Program, found: Check) -> Check:
    """What of a verdict on the program holds for the kernel that it was read from."""
    if not program.coverage.complete and found.verdict is not Verdict.REFUTED and found.how is not How.PERHAPS:
        return replace(found, verdict=Verdict.UNKNOWN, how=How.CUT)
    if program.coverage.unsized and found.verdict is not Verdict.REFUTED:
        return replace(found, verdict=Verdict.UNKNOWN, how=How.UNSIZED)
    if program.coverage.unread and found.verdict is Verdict.PROVED:
        return replace(found, verdict=Verdict.UNKNOWN, how=How.UNREAD)
    if program.coverage.undefined and found.verdict is Verdict.PROVED:
        return replace(found, verdict=Verdict.UNKNOWN, how=How.UNDEFINED)
    if program.coverage.weakened and found.verdict is Verdict.REFUTED:
        certain = in_every_schedule(program, found.refutations)
        found = replace(found, refutations=certain)
        found = found if certain else replace(found, verdict=Verdict.UNKNOWN, how=How.WEAKENED)
    if found.verdict is Verdict.PROVED and program.coverage.dependent and is_open(program):
        return replace(found, verdict=Verdict.UNKNOWN, how=How.OPEN_WAITS)
    if found.verdict is Verdict.PROVED and program.coverage.names_of(NotJudgedKind.WORD_ORDERS):
        return replace(found, verdict=Verdict.UNKNOWN, how=How.SOME_ORDERS)
    if found.verdict is Verdict.PROVED and _needs_what_is_ruled_out(program):
        return replace(found, verdict=Verdict.UNKNOWN, how=How.ASSUMES)
    return found


def _needs_what_is_ruled_out(program: Program) -> bool:
    """Whether the kernel was read, or the registers of the launch taken, with an assumption that may not be made."""
    made = {each.kind for each in program.coverage.assumed} - RULES
    made |= (
        {Assumption.REGISTERS} if assumed_registers(program.agents, program.code, program.launch_registers) else set()
    )
    if program.coverage.dependent:
        made |= {each.kind for each in assumed_of_earlier_kernels(program)}
    return not made.isdisjoint(program.strictness)


def _without_unsure(program: Program, found: Check) -> Check:
    """The verdict without the refutations that are not certain; unknown if it rests on these."""
    sure = [each for each in found.refutations if not is_unsure(program, each.fault)]
    certain = tuple(each for each in sure if not may_be_ended(program, each))
    if certain or not found.refutations:
        return replace(found, refutations=certain)
    return replace(found, verdict=Verdict.UNKNOWN, how=How.LANES if sure else How.PERHAPS, refutations=())


def _check(program: Program, max_states: int, *, one_memory: bool) -> Check:
    """The verdict on the program as it is."""

    def memory_of_a_run() -> MemoryOrder | None:
        return None if one_memory else memory_order(program)

    operations = sum(map(len, program.code))
    rules = by_rules_for_commits(program)
    for each in rules if operations >= LONG else ():
        if (reached := phases_by_laps(each, memory_of_a_run())) is not None:
            needs = each is not rules[0]
            return Check(Verdict.PROVED, How.CERTIFICATE, operations, reached, 0, (), (), by_commit_order=needs)
    memory = memory_of_a_run()
    run, certificate = certified(rules[0], memory)
    by_commit_order = bool(certificate.doubts) and run.finished and len(rules) > 1
    if by_commit_order:
        _, certificate = certified(program)
    unordered = memory_refutations(program, memory)
    phases = sum(completed_phases(run.state)[: len(program.barriers)])

    def verdict(said: Verdict, how: How, states: int = 0, found: tuple[Refutation, ...] = ()) -> Check:
        found = _marked(program, found, run)
        needs = by_commit_order and how is How.CERTIFICATE
        return Check(said, how, operations, phases, states, certificate.doubts, found, by_commit_order=needs)

    ordered = run.finished and not run.faults and not unordered
    if ordered and (not certificate.doubts or _holds_exchanged(program, certificate.doubts, one_memory=one_memory)):
        return replace(verdict(Verdict.PROVED, How.CERTIFICATE), doubts=())
    found = _first_of_each(program, certificate.doubts)
    if all(is_unsure(program, each.fault) for each in (*found, *unordered)):
        shown = at_once(program)
        found = (*found, shown) if shown is not None else found
    if found or unordered:
        hang = () if run.finished or any(each.deadlock for each in found) else hang_beside(program)
        return verdict(Verdict.REFUTED, How.SCHEDULE, 0, (*found, *unordered, *hang))
    doubtful = bool(run.faults or certificate.doubts)
    searched = _by_search(program, max_states, doubtful=doubtful, one_memory=one_memory)
    if searched[0] is Verdict.UNKNOWN:
        most = _most_states(program, max_states, doubtful=doubtful) // 2
        shown = random_refutation(program, most, one_memory=one_memory)
        searched = searched if shown is None else (Verdict.REFUTED, How.SCHEDULE, searched[2], (shown,))
    return verdict(*searched)


_Searched = tuple[Verdict, How, int, tuple[Refutation, ...]]  #: with how many states


def _by_search(program: Program, max_states: int, *, doubtful: bool, one_memory: bool) -> _Searched:
    """The verdict of a search of every schedule."""
    seen = explore(program, _most_states(program, max_states, doubtful=doubtful))
    if seen.refutations:
        lines = {
            (each.kind, sides_of(program, each.fault) if each.fault else id(each)): each
            for each in seen.refutations[::-1]
        }
        return Verdict.REFUTED, How.SCHEDULE, seen.states, tuple(lines.values())[::-1]
    if not seen.complete or program.cut:
        return Verdict.UNKNOWN, How.NOTHING, seen.states, ()
    ends = outcomes(program, max_states)
    if ends.different is not None:
        return Verdict.REFUTED, How.SCHEDULE, seen.states, of_two(program, ends.different)
    if not ends.complete:
        return Verdict.UNKNOWN, How.NOTHING, seen.states, ()
    if one_memory:
        return Verdict.PROVED, How.SEARCH, seen.states, ()
    most = min(max_states, MOST_WITH_CLOCKS, _MOST_KNOWN // (len(program.agents) + own_channel(program, 0)))
    ordered = search_memory_order(program, most)
    if ordered.refutations:
        return Verdict.REFUTED, How.SCHEDULE, seen.states, ordered.refutations
    if not ordered.complete:
        return Verdict.UNKNOWN, How.MEMORY_NOT_SEARCHED, seen.states, ()
    return Verdict.PROVED, How.SEARCH, seen.states, ()


def _holds_exchanged(program: Program, doubts: tuple[Doubt, ...], *, one_memory: bool) -> bool:
    """Whether one run represents every schedule, if phases of the barriers in doubt may get each other's arrivals."""
    exchanged = exchanged_barriers(program, doubts)
    if not exchanged:
        return False
    memory = None if one_memory or memory_order(program) is None else MemoryOrder(program, exchanged)
    _, certificate = certified(program, memory, exchanged=exchanged)
    return not certificate.doubts and (memory is None or not (memory.exchange_fails or memory.faults))


def with_usual(program: Program, found: Iterable[Refutation]) -> tuple[Refutation, ...]:
    """Each marked where the one run in which every operation is made as soon as it can be ends so as well: with the
    same fault at one of the same lines, or with a deadlock.
    """
    return _marked(program, found, CanonicalRun(program).to_end())


def _marked(program: Program, found: Iterable[Refutation], run: CanonicalRun) -> tuple[Refutation, ...]:
    usual = {(fault.kind, line) for fault in run.faults for line in sides_of(program, fault)}
    hangs = not run.finished and not run.faults
    return tuple(
        replace(each, usual=True)
        if (hangs and each.kind is Ending.DEADLOCK)
        or (each.fault is not None and any((each.kind, at) in usual for at in sides_of(program, each.fault)))
        else each
        for each in found
    )


def _most_states(program: Program, most: int, *, doubtful: bool) -> int:
    """How many states are searched: where agents were cut few, and none without a doubt, as all schedules are alike."""
    if not program.cut:
        return most
    return min(most, _MOST_OF_BEGINNINGS) if doubtful else 0


def unknown(program: Program, how: How) -> Check:
    """What is known about a program whose check was ended."""
    return Check(Verdict.UNKNOWN, how, sum(map(len, program.code)), 0, 0, (), ())


def _rank(program: Program, found: Refutation) -> tuple[bool, int]:
    return is_unsure(program, found.fault), len(found.schedule)


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
            shown = replace(shown, why=doubt.why)
            known = found.get(shown.kind)
            if known is None or _rank(program, shown) < _rank(program, known):
                found[shown.kind] = shown
    return tuple(sorted(found.values(), key=lambda r: (r.kind not in CAUSES_THEMSELVES, len(r.schedule))))
