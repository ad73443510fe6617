"""A likely correction: the single change of the protocol with which it is proved. Where none is, nothing is said."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain

from pipesim.explain.causes import is_unserved
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.groups import CORRECTABLE, ON_NAMED_BARRIER, SIGNALS
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import holds
from pipesim.prove.check import check
from pipesim.prove.counterexample.past import core
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.applicable import (
    fences,
    fences_of_writes,
    group_waits,
    initialisations,
    invals,
    publications,
    repairs,
    stronger,
)
from pipesim.prove.repair.changes.iterations import of_iterations
from pipesim.prove.repair.changes.left_over import of_reads_again
from pipesim.prove.repair.changes.meeting_points import of_met_signals, of_signals_for_all, of_uses
from pipesim.prove.repair.changes.numbers import registers
from pipesim.prove.repair.edits import apply_repair, place_of
from pipesim.prove.repair.handovers import readers_of
from pipesim.prove.repair.kinds import OF_WORDS, Ranked, Repair, RepairKind, fits_words, words_of
from pipesim.prove.repair.side_effects import leaves_more, serialised
from pipesim.prove.repair.sites import barrier_of, operations_of, pairs
from pipesim.prove.repair.wording.added_line import AddedLine, added_line, beside, line_of
from pipesim.prove.repair.wording.sentences import sentence

K = RepairKind
MOST = 2  #: corrections of one finding
MOST_TRIED = 400_000  #: operations of all small programs that are tried for one finding
MOST_READ = 3_000  #: operations of the program that was asked for, to look for changes in it as well
EVERY_RANK = 99
_FURTHER = 3  #: ranks after that of a correction that serialises, in which one that does not is looked for
_OF_A_RUN = 8  #: a run of CTAs that talk, with a proof of it, takes as long as the proofs of this number of programs
MOST_ASKED = 60_000  #: operations of the program that was asked for


OTHER_PARITY = "^ 1"  #: what a token becomes: every wait of a line is for the other parity


@dataclass(frozen=True)
class ChangedToken:
    """A number that is another one in a line of the source: one of ``lines``, the likeliest first.

    ``was`` is "" of a comparison that becomes strict, or is it no more, or of the other parity; a line has its column
    after a comma.
    """

    was: str
    now: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Correction:
    """What to change, in a sentence, and the author's line of it ("" where there is none).

    ``source``: the line of the author's source to which all of the change maps, "" if it is not one, and ``call`` that
    of the call of its function; ``added``: what is added beside one; ``token``: what may be written otherwise in it.
    """

    repair: Repair
    said: str
    line: str
    source: str = ""
    added: AddedLine | None = None
    token: ChangedToken | None = None
    call: str = ""


def corrections(
    program: Program,
    refuted: Refutation,
    asked: Program,
    unit: Callable[[int, int], None] | None = None,
    most: int = MOST_TRIED,
    again: Callable[[Repair], bool] | None = None,
    last: int = EVERY_RANK,
    of_words: Collection[Ranked] = (),
    other: Program | None = None,
) -> tuple[Correction, ...]:
    """Single changes with which both the program that shows the fault and the one that was asked for are proved.

    The likeliest; a second one only if it is of another kind and just as likely, at most :data:`MOST`. () if there
    is none, or if the programs are too large to try: ``most`` operations of them all. ``unit`` is called before
    each change that is tried, with how many were, and 0: it is not known how many there will be. ``again``: whether
    what the program was read from is proved with a change of which the program does not show enough. ``last``: the
    rank of the least likely ones that are tried; ``of_words``: those of what CTAs do to words. ``other``: the
    program of a size between the two, or beyond both where they are one.
    """
    if sum(map(len, asked.code)) > MOST_ASKED:
        return ()
    beyond, other = (other, None) if asked is program else (None, other)
    traps = refuted.fault is None or refuted.fault.kind.traps
    hang, of_whole = refuted.deadlock is not None, asked.words_cta >= 0 and traps
    trials = _Trials(program, asked, other, unit, most, again, hang, of_whole)
    found: list[tuple[int, Correction]] = []
    held: tuple[int, Correction] | None = None  # serialises, or fits one size: something else may be wrong instead
    for rank, repair in candidates(program, refuted, asked, of_words, other):
        if rank > (last if held is None or held[1].repair.serialises else min(last, held[0] + _FURTHER)):
            break
        if refuted.deadlock is not None and repair.meets and last < EVERY_RANK:
            continue  # what makes agents wait for each other ends no hang
        if held is not None and not _instead(held[1].repair, repair):
            continue
        known = {K.EVERY_TIME, *(each.repair.kind for _, each in found)}  # which moves much else at times
        if found and (rank > found[0][0] or repair.meets or repair.kind in known):
            continue
        large = trials.proved(repair)
        if trials.left < 0:
            break
        if large is None:
            continue
        line = place_of(program, repair) or place_of(asked, repair)
        added = beside(added_line(asked, large), line_of(asked))
        serial = serialised(asked, large) if large is not asked and repair.adds_order else ()
        alone = beyond is not None and not trials.proves(apply_repair(beyond, repair))
        if (serial or alone) and (found or held is not None):
            continue
        said = sentence(repair) + "".join(f", which serialises {one} and {another}" for one, another in serial[:1])
        said += ", which is right at this size alone" * alone
        proved = rank, Correction(repair, said, line, only_line(asked, large, asked.line), added)
        if (repair.serialises or serial or alone) and not found:
            held = proved
            continue
        found.append(proved)
        if len(found) == MOST or held is not None:
            break
    return tuple(correction for _, correction in found or filter(None, [held]))


def _instead(held: Repair, other: Repair) -> bool:
    """Whether what a correction that serialises is about may be wrong otherwise: what an instruction is on, if it
    leaves no transfers under way.
    """
    return not held.serialises or other.kind in _IS_ON or (other.kind, other.was) == _LATER


@dataclass
class _Trials:
    """The changes of a small program and of the one that was asked for that have been tried; ``left`` operations may
    still be. ``of_whole``: CTAs talk, and what comes after the hang or the trap has no values of words yet.
    """

    program: Program
    asked: Program
    other: Program | None
    unit: Callable[[int, int], None] | None
    left: int
    again: Callable[[Repair], bool] | None
    hang: bool
    of_whole: bool
    small: dict[object, bool] = field(default_factory=dict)  #: by code: whether it is proved
    large: set[object] = field(default_factory=set)  #: changes that make one small program may make several large ones

    def proved(self, repair: Repair) -> Program | None:
        """The program that was asked for with the change, if it is proved, the small one is, and no other makes it.

        None if it leaves more bytes that no agent reads. To the small one what it executes in no iteration cannot be
        added.
        """
        talk = self.asked.words_cta >= 0
        if repair.kind in OF_WORDS:
            self.left -= sum(map(len, self.asked.code)) * _OF_A_RUN
            return self.asked if self._proves_again(repair) else None
        small = apply_repair(self.program, repair)
        other = None if self.other is None else apply_repair(self.other, repair)
        if small is other is None and repair.kind not in (K.EVERY_TIME, K.TRIPS, K.PRIME):
            return None
        if not all(each is None or self._holds(each) for each in (None if self.of_whole else small, other)):
            return None
        large = apply_repair(self.asked, repair)
        if large is None or large.code in self.large:
            return None
        self.large.add(large.code)
        self.left -= sum(map(len, large.code)) * (_OF_A_RUN if talk else small is None)
        if not talk and self.proves(large) and not leaves_more(self.asked, large):
            return large
        return large if self._proves_again(repair) else None

    def _proves_again(self, repair: Repair) -> bool:
        return self.again is not None and self.again(repair)

    def proves(self, program: Program | None) -> bool:
        """Whether it is proved; a check refutes at length."""
        return program is not None and holds(program) and check(program, max_states=1).verdict is Verdict.PROVED

    def _holds(self, small: Program) -> bool:
        if small.code not in self.small:
            if self.unit is not None:
                self.unit(len(self.small), 0)
            self.left -= sum(map(len, small.code))
            self.small[small.code] = self.left >= 0 and holds(small, may_hang=self.hang)
        return self.small[small.code]


def only_line(before: Program, after: Program, line: Callable[[int, int], str]) -> str:
    """The line of all operations that differ, "" if there are several, or some are added or left out; ``line``: of an
    operation.
    """
    found: set[str] = set()
    for agent, (code, now) in enumerate(zip(before.code, after.code, strict=True)):
        if len(code) != len(now):
            return ""
        found |= {line(agent, pc) for pc, op in enumerate(code) if op != now[pc]}
    return found.pop() if len(found) == 1 else ""


def candidates(
    program: Program,
    refuted: Refutation,
    asked: Program,
    of_words: Collection[Ranked] = (),
    other: Program | None = None,
) -> Iterator[Ranked]:
    """What may correct it: of a fault that only a fence corrects, fences; nothing that ends a wait that no operation
    serves by asking for another phase, and nothing of pipelines that overlap, whose barriers are the wrong ones.
    """
    if program.overlaps:
        return iter(())
    found = None if refuted.fault is None else _of_fault(program, refuted, refuted.fault)
    return _of_pipelines(program, refuted, asked, of_words, other) if found is None else found


def _of_fault(program: Program, refuted: Refutation, fault: Fault) -> Iterator[Ranked] | None:
    """What may correct a fault of which the kind says it; None of any other kind."""
    match fault.kind:
        case FaultKind.READ_NOT_FENCED:
            fenced = fences(program.agents[fault.other_agent].role)
            return merge(fenced, of_reads_again(program, fault), key=_rank)
        case FaultKind.MISSING_PROXY_FENCE:
            return fences_of_writes(program, program.agents[fault.other_agent].role, program.agents[fault.agent].role)
        case FaultKind.READ_BEFORE_WAIT:
            return group_waits(program, Engine.WGMMA)
        case FaultKind.TOO_MANY_REGISTERS:
            return ((each.was > program.launch_registers, each) for each in registers(program))
        case FaultKind.UNPUBLISHED_INIT:
            return publications(program)
        case FaultKind.NOT_INITIALISED | FaultKind.REINITIALISED:
            return chain(initialisations(program), publications(program), repairs(program, groups_of(program, refuted)))
        case FaultKind.WEAK_ORDER | FaultKind.NARROW_SCOPE:
            told = chain(of_signals_for_all(program, fault), of_met_signals(program, fault))
            weak = chain(stronger(program), ((0, each) for _, each in dict.fromkeys(told)))
            read = program.coverage.extracted
            return chain(weak, repairs(program, groups_of(program, refuted))) if read else weak
        case _:
            return None


def _of_pipelines(
    program: Program, refuted: Refutation, asked: Program, of_words: Collection[Ranked], other: Program | None
) -> Iterator[Ranked]:
    """What may correct a hang, or a fault of any other kind: changes of what agents do with barriers and words."""
    fault, groups, talk = refuted.fault, groups_of(program, refuted), program.words_cta >= 0
    blocked = refuted.deadlock.blocked if refuted.deadlock is not None else ()
    unserved = {each.agent for each in blocked if is_unserved(program, each, asked)}
    roles = readers_of(asked, [n for n in range(len(asked.agents)) if asked.agent_name(n) in unserved])
    if roles:  # those that signal some stages of groups of which nothing signals the one that is waited for
        roles |= {role for role, group in pairs(asked, lambda op: op[0] in SIGNALS) if group in groups}
    at = (
        operations_of(fault) if fault is not None and fault.kind is not FaultKind.INVALIDATED else ()
    )  # the inval is as likely
    sites = [program.instructions[agent][pc] for agent, pc in at if agent >= 0 and pc >= 0]
    several = fault is not None and fault.other_agent >= 0 and fault.kind in _OF_BYTES
    roles = frozenset(program.agents[agent].role for agent, _ in at) if several else roles
    raced = {site.about for site in sites} if several and fault is not None and fault.kind is FaultKind.RACE else set()
    found: Iterator[Ranked] = merge(
        invals(program, fault), repairs(program, groups, roles, asked, frozenset(sites)), key=_rank
    )
    if talk:
        words = words_of(program)
        of_ctas = (each for each in found if fits_words(each[1], words))
        found = merge(sorted(of_words, key=_rank), of_ctas, key=_rank)
    if fault is not None:
        found = merge(of_reads_again(program, fault), found, key=_rank)
        found = of_uses(program, fault, found) if raced else found
    if asked is not program:  # which has iterations that the other has not
        larger = next((each for each in (asked, other) if each and sum(map(len, each.code)) <= MOST_READ), None)
        more = repairs(larger, groups, roles) if larger else sorted(of_iterations(other or asked), key=_rank)
        found = iter(dict.fromkeys(merge(found, () if talk else more, key=_rank)))
    found = (each for each in found if not (raced and each[1].is_after_uses) or each[1].past.about in raced)
    return (each for each in found if each[1].kind not in _OTHER_PHASE or each[1].at.op or not unserved)


def _rank(each: Ranked) -> int:
    return each[0]


#: What an instruction is on.
_IS_ON = frozenset({K.SYNC, K.SHIFT, K.OTHER_GROUP, K.SWAP, K.PHASES, K.STAGES, K.CARRY})
_LATER = K.MOVE, 1  #: an arrive that comes an iteration later, which serialises nothing
_OTHER_PHASE = frozenset({K.PHASES, K.STAGES, K.LAPS, K.LEAVE_OUT})
_OF_BYTES = frozenset({FaultKind.RACE, FaultKind.WRONG_ITEM, FaultKind.UNINITIALISED_READ})


def groups_of(program: Program, refuted: Refutation) -> frozenset[str]:
    """The groups of barriers that a failure is about: those waited for, or which guard the bytes that are used."""
    fault, found = refuted.fault, refuted.deadlock
    if found is not None:
        missed = any(each.missed >= 0 or each.lapped_by for each in found.blocked)
        causes = core(found) if missed else {each.agent for each in found.blocked}
        named = {each.barrier.rpartition("[")[0] or each.barrier for each in found.blocked if each.agent in causes}
        return frozenset(name.removeprefix("named barrier ") for name in named)
    if fault is None:
        return frozenset()
    op = program.code[fault.agent][fault.pc]
    if op[0] in ON_NAMED_BARRIER:
        return frozenset({str(program.named_barrier(op))})
    own = [op for agent, _ in operations_of(fault) if agent >= 0 for op in program.code[agent] if op[0] in CORRECTABLE]
    barriers = {fault.barrier, *map(barrier_of, own)} - {-1}
    return frozenset(program.barriers[barrier].name for barrier in barriers)
