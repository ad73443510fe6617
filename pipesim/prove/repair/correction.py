"""A likely correction: the single change of the protocol with which it is proved. Where none is, nothing is said."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import chain

from pipesim.explain.causes import is_unserved
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.groups import CORRECTABLE, ON_NAMED_BARRIER, SIGNALS
from pipesim.model.ops import Engine, operand
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
from pipesim.prove.repair.wording.added_line import AddedLine, added_line, beside, line_of
from pipesim.prove.repair.wording.sentences import sentence

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

    The likeliest; a second one only if it is of another kind and just as likely, at most :data:`MOST`. () if there is
    none, or if the programs are too large to try: ``most`` operations of them all. ``unit`` is called before each
    change that is tried, with how many were, and 0: it is not known how many there will be. ``again``: whether what the
    program was read from is proved with a change of which the program does not show enough. ``last``: the rank of the
    least likely ones that are tried; ``of_words``:
    those of what CTAs do to words. ``other``: the program of a size between the two, or beyond both where they are one.
    """
    if sum(map(len, asked.code)) > MOST_ASKED:
        return ()
    beyond, other = (other, None) if asked is program else (None, other)
    trials = _Trials(program, asked, unit, most, again, other, hang=refuted.deadlock is not None)
    trials.of_whole = asked.words_cta >= 0 and (refuted.fault is None or refuted.fault.kind.traps)
    found: list[tuple[int, Correction]] = []
    held: tuple[int, Correction] | None = None  # serialises, or fits one size: something else may be wrong instead
    for rank, repair in candidates(program, refuted, asked, of_words, other):
        if rank > (last if held is None or held[1].repair.serialises else min(last, held[0] + _FURTHER)):
            break
        if refuted.deadlock is not None and repair.meets and last < EVERY_RANK:
            continue  # what makes agents wait for each other ends no hang
        if held is not None and not _instead(held[1].repair, repair):
            continue
        known = {RepairKind.EVERY_TIME, *(each.repair.kind for _, each in found)}  # which moves much else at times
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
    if held is not None and not found:
        found.append(held)
    return tuple(correction for _, correction in found)


def _instead(held: Repair, other: Repair) -> bool:
    """Whether what a correction that serialises is about may be wrong otherwise: what an instruction is on, if it
    leaves no transfers under way.
    """
    return not held.serialises or other.kind in _IS_ON or (other.kind, other.was) == _LATER


class _Trials:
    """The changes of a small program and of the one that was asked for that have been tried; ``left`` operations may
    still be.
    """

    def __init__(
        self,
        program: Program,
        asked: Program,
        unit: Callable[[int, int], None] | None,
        most: int,
        again: Callable[[Repair], bool] | None,
        other: Program | None,
        *,
        hang: bool,
    ) -> None:
        self.left, self._hang = most, hang
        self.of_whole = False  # CTAs talk, and what comes after the hang or the trap has no values of words yet
        self._talk = asked.words_cta >= 0
        self._program, self._asked, self._unit, self._again, self._other = program, asked, unit, again, other
        self._small: dict[object, bool] = {}  # by code: whether it is proved
        self._large: set[object] = set()  # changes that make one small program may make several large ones

    def proved(self, repair: Repair) -> Program | None:
        """The program that was asked for with the change, if it is proved, the small one is, and no other makes it.

        None if it leaves more bytes that no agent reads. To the small one what it executes in no iteration cannot be
        added.
        """
        if repair.kind in OF_WORDS:
            self.left -= sum(map(len, self._asked.code)) * _OF_A_RUN
            return self._asked if self._again is not None and self._again(repair) else None
        small = apply_repair(self._program, repair)
        other = None if self._other is None else apply_repair(self._other, repair)
        if small is other is None and repair.kind not in (RepairKind.EVERY_TIME, RepairKind.TRIPS, RepairKind.PRIME):
            return None
        if small is not None and not self.of_whole and not self._holds(small):
            return None
        if other is not None and not self._holds(other):
            return None
        large = apply_repair(self._asked, repair)
        if large is None or large.code in self._large:
            return None
        self._large.add(large.code)
        self.left -= sum(map(len, large.code)) * (_OF_A_RUN if self._talk else small is None)
        if self._talk:
            return large if self._again is not None and self._again(repair) else None
        if self.proves(large) and not leaves_more(self._asked, large):
            return large
        return large if self._again is not None and self._again(repair) else None

    def proves(self, program: Program | None) -> bool:
        """Whether it is proved; a check refutes at length."""
        return program is not None and holds(program) and check(program, max_states=1).verdict is Verdict.PROVED

    def _holds(self, small: Program) -> bool:
        if small.code not in self._small:
            if self._unit is not None:
                self._unit(len(self._small), 0)
            self.left -= sum(map(len, small.code))
            self._small[small.code] = self.left >= 0 and holds(small, may_hang=self._hang)
        return self._small[small.code]


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
    fault = refuted.fault
    blocked = refuted.deadlock.blocked if refuted.deadlock is not None else ()
    unserved = any(is_unserved(program, each, asked) for each in blocked)
    of_bytes = fault is not None and fault.other_agent >= 0 and fault.kind in _OF_BYTES
    touching = (fault.agent, fault.other_agent) if fault is not None and of_bytes else ()
    roles = frozenset(program.agents[agent].role for agent in touching)
    if unserved:
        waiting = {each.agent for each in blocked if is_unserved(program, each, asked)}
        roles = readers_of(asked, [n for n in range(len(asked.agents)) if asked.agent_name(n) in waiting])
    groups = groups_of(program, refuted)
    if unserved and roles:
        roles |= _signalling(asked, groups)
    at = ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)) if fault is not None else ()
    at = () if fault is not None and fault.kind is FaultKind.INVALIDATED else at  # the inval is as likely
    sites = frozenset(program.instructions[agent][pc] for agent, pc in at if agent >= 0 and pc >= 0)
    found: Iterator[Ranked] = merge(invals(program, fault), repairs(program, groups, roles, asked, sites), key=_rank)
    if program.words_cta >= 0:
        words = words_of(program)
        of_ctas = (each for each in found if fits_words(each[1], words))
        found = merge(sorted(of_words, key=_rank), of_ctas, key=_rank)
    found = merge(of_reads_again(program, fault), found, key=_rank) if fault is not None else found
    races = fault is not None and fault.kind is FaultKind.RACE and touching
    raced = {program.instructions[agent][pc].about for agent, pc in at} if races else set()
    found = of_uses(program, fault, found) if fault is not None and raced else found
    if asked is not program:  # which has iterations that the other has not
        larger = next((each for each in (asked, other) if each and sum(map(len, each.code)) <= MOST_READ), None)
        more = repairs(larger, groups, roles) if larger else sorted(of_iterations(other or asked), key=_rank)
        more = iter(()) if program.words_cta >= 0 else more
        found = iter(dict.fromkeys(merge(found, more, key=_rank)))
    found = (each for each in found if not (raced and each[1].is_after_uses) or each[1].past.about in raced)
    return (each for each in found if each[1].kind not in _OTHER_PHASE or each[1].at.op or not unserved)


def _signalling(program: Program, groups: frozenset[str]) -> frozenset[str]:
    """The roles that signal some stages of groups of which nothing signals the one that is waited for."""
    found = (
        program.agents[agent].role
        for agent, code in enumerate(program.code)
        for op in code
        if op[0] in SIGNALS and operand(op, "barrier") >= 0 and program.barriers[operand(op, "barrier")].name in groups
    )
    return frozenset(found)


def _rank(each: Ranked) -> int:
    return each[0]


_IS_ON = frozenset(
    {
        RepairKind.SYNC,
        RepairKind.SHIFT,
        RepairKind.OTHER_GROUP,
        RepairKind.SWAP,
        RepairKind.PHASES,
        RepairKind.STAGES,
        RepairKind.CARRY,
    }
)
_LATER = RepairKind.MOVE, 1  #: an arrive that comes an iteration later, which serialises nothing
_OTHER_PHASE = frozenset({RepairKind.PHASES, RepairKind.STAGES, RepairKind.LAPS, RepairKind.LEAVE_OUT})


_OF_BYTES = frozenset({FaultKind.RACE, FaultKind.WRONG_ITEM, FaultKind.UNINITIALISED_READ})


def groups_of(program: Program, refuted: Refutation) -> frozenset[str]:
    """The groups of barriers that a failure is about: those waited for, or which guard the bytes that are used."""
    fault, found = refuted.fault, refuted.deadlock
    if found is not None:
        causes = (
            core(found)
            if any(b.missed >= 0 or b.lapped_by for b in found.blocked)
            else {b.agent for b in found.blocked}
        )
        named = {b.barrier.rpartition("[")[0] or b.barrier for b in found.blocked if b.agent in causes}
        return frozenset(name.removeprefix("named barrier ") for name in named)
    if fault is None:
        return frozenset()
    groups = {program.barriers[fault.barrier].name} if fault.barrier >= 0 else set()
    op = program.code[fault.agent][fault.pc]
    if op[0] in ON_NAMED_BARRIER:
        return frozenset({str(program.named_barrier(op))})
    agents = {agent for agent in (fault.agent, fault.other_agent) if agent >= 0}
    groups |= {
        program.barriers[operand(op, "barrier")].name
        for agent in agents
        for op in program.code[agent]
        if op[0] in CORRECTABLE
    }
    return frozenset(groups)
