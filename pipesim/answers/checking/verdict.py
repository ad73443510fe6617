"""The verdict of a check: of the program in every order of its atomics, in all CTAs, with global memory, at every size.

Each function takes what is known before, and leaves in the state about which program the check continues.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pipesim.answers.checking.counterexample import FEW_STATES
from pipesim.answers.checking.failures import CheckQuestion
from pipesim.answers.checking.state import ENDED, CheckState
from pipesim.answers.every_cta.inside import with_words_inside
from pipesim.answers.every_cta.launches import WORSE, OtherLaunches
from pipesim.answers.every_size.claims import EverySize
from pipesim.answers.every_size.classes import AnyWord, has_all_tiles
from pipesim.answers.global_memory.grid_memory import (
    INSIDE,
    GridMemory,
    MeetingInside,
    is_on_global_memory,
    with_accesses,
    with_global_memory,
)
from pipesim.answers.global_memory.judge import judge, uses_global_memory
from pipesim.answers.views.check import CheckStep, CutBy, LeftOut
from pipesim.model.coverage import Assumption, NotJudgedKind
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.model.words import TURNS
from pipesim.process.limits import LimitReachedError
from pipesim.prove.check import Check, How, unknown
from pipesim.prove.check import check as prove
from pipesim.prove.refutation import lines_of
from pipesim.ptx.hand_outs import all_left
from pipesim.ptx.launch.values import ANY_DATA, TILE_COUNTER
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.ptx.prepare import Kernel

_OF_OTHERS = {Assumption.GLOBAL_LOOPS, Assumption.POLICIES}
_TILES_MORE, _PERCENT_MORE = 256, 20  #: of each number up to 16, and of some laps; of the instructions before
_FEW = 2  #: clusters of a grid, each of which may have words of its own
AddBeside = Callable[[CheckQuestion, Check], None]  #: a check of other CTAs, which have a finding of their own


def proof_of(state: CheckState, program: Program) -> Check:
    """The verdict on a program; unknown where a limit is reached."""
    try:
        return prove(program, state.asked.max_states)
    except LimitReachedError as reached:
        state.reach(reached)
        return unknown(program, ENDED[reached.limit])


def by_laps(state: CheckState) -> Check | None:
    """The verdict on a kernel of which laps are left out, if it is proved or hangs; else the check is about as much of
    it as is followed.
    """
    asked = state.asked
    if not asked.program.laps:
        return None
    found = proof_of(state, asked.program)
    if found.verdict is Verdict.PROVED or state.cut is not None:
        state.asked = replace(asked, program=asked.program.with_laps)
        return found
    if (hangs := _hangs_after_laps(state, asked.program)) is not None:
        state.asked = replace(asked, program=replace(asked.program, laps=()))
        return hangs
    target = asked.target.followed
    state.asked = replace(asked, target=target, program=target.build(grid=asked.ctas))
    state.look_elsewhere()
    return None


def _hangs_after_laps(state: CheckState, program: Program) -> Check | None:
    """The verdict on a kernel whose warps all wait at the end of the run from which laps are left out.

    That is where a schedule of the kernel leads. Of other faults that are found without these laps this is not known.
    """
    if not program.laps or not program.coverage.blocked:
        return None
    found = proof_of(state, replace(program, laps=()))
    hangs = found.verdict is Verdict.REFUTED and {each.kind for each in found.refutations} == {Ending.DEADLOCK}
    return found if hangs else None


def with_sizes_nearby(state: CheckState, kernel: "Kernel", first: Check) -> Check:
    """The verdict where CTAs may meet in global memory. If it is the one before that, also for values nearby."""
    found = first if first.verdict is Verdict.REFUTED else on_global_memory(state, first)
    same = found.verdict is first.verdict is not Verdict.UNKNOWN and state.cut is None
    made = state.asked.target.kernel
    if made is not None and made.kernel.launch.inside:
        return found  # it was read with its words at the given values alone
    if same and not state.talk and not state.asked.any_words:
        from pipesim.answers.every_size.nearby import values_nearby  # of kernels alone

        state.nearby = values_nearby(kernel, state.others.looked_at)
    return found


def _with_hangs(state: CheckState, program: Program) -> Check:
    """The verdict, also where laps are left out before all warps wait."""
    return _hangs_after_laps(state, program) or proof_of(state, program)


def in_every_order(state: CheckState, first: Check) -> Check:
    """The verdict on a description in each order of the atomics whose answers decide; the check continues about the
    first that is not proved.
    """
    asked, kind, found = state.asked, NotJudgedKind.WORD_ORDERS, first
    open_ = [str(asked.params.get(TURNS, 0))]
    if first.how is How.SOME_ORDERS and asked.target.program is None:
        for order in open_:
            if not order.isdecimal():
                found = first
                break
            params = {**asked.params, TURNS: int(order)} if int(order) or TURNS in asked.params else asked.params
            program = asked.program if order == open_[0] else asked.target.build(params, grid=asked.ctas)
            open_ += [each for each in program.coverage.names_of(kind) if each not in open_]
            program = replace(program, coverage=program.coverage.judging(kind))
            found = proof_of(state, program)
            if found.verdict is not Verdict.PROVED:
                state.asked = replace(asked, params=params, program=program)
                break
            state.assume_for(program, found)
        else:
            coverage = asked.program.coverage.judging(kind)
            state.asked = replace(asked, program=replace(asked.program, coverage=coverage))
    state.take_beside(found)
    return found


def by_words_inside(state: CheckState, first: Check) -> Check:
    """The verdict on a kernel that is not proved, or if loops end, with the words by which the warps of a cluster talk.

    If these are understood the check continues about the kernel with them, in the first order that is not proved.
    """
    asked, kernel, made = state.asked, state.asked.target.kernel, list[tuple[CheckQuestion, Check]]()
    if kernel is None or state.cut is not None or not kernel.may_talk_inside:
        return first
    proved, launch = first.verdict is Verdict.PROVED, kernel.kernel.launch
    assumed = {each.kind for each in asked.program.coverage.assumed}
    if proved and (assumed.isdisjoint(_OF_OTHERS) or prod(launch.grid) > _FEW * prod(launch.cluster)):
        return first
    for settings, each in with_words_inside(kernel, asked.program.strictness):
        target = asked.target.with_settings(settings, each)
        program = target.build(grid=asked.ctas)
        made.append((replace(asked, target=target, program=program), proof_of(state, program)))
        if made[-1][1].how is How.WORDS and not proved:
            state.asked, state.weakened = replace(asked, program=_weakened(asked.program)), True
        if made[-1][1].how is How.WORDS:
            return first if proved else proof_of(state, state.asked.program)
    if not made:
        return first
    question, found = max(reversed(made), key=lambda each: WORSE.index(each[1].verdict))
    if found.verdict is first.verdict is Verdict.REFUTED and _at(asked.program, first) <= _at(question.program, found):
        return first  # its words order nothing of what is found
    state.asked = question
    state.look_elsewhere()
    for others, shown in made if found.verdict is Verdict.PROVED else ():
        state.assume_for(others.program, shown)
    return found


def with_any_data(state: CheckState, first: Check) -> Check:
    """The verdict on a kernel of which data decides what its CTAs do, if it is proved whatever data decides.

    What fails with some answers is not refuted: no data may lead to them.
    """
    asked, kernel = state.asked, state.asked.target.kernel
    if kernel is None or kernel.limited or first.how is not How.CUT or state.cut is not None:
        return first
    made = kernel.with_any_data() if not kernel.kernel.launch.inside else kernel
    if not made.asks_data or made.program.coverage.stopped:
        return first
    target = asked.target.with_settings({ANY_DATA: 1}, made)
    state.asked = replace(asked, target=target, program=target.build(grid=asked.ctas))
    state.look_elsewhere()
    return _of_any_data(proof_of(state, state.asked.program), target)


def _of_any_data(found: Check, target: Target) -> Check:
    """Where data decides whether what fails happens, it is not known whether it does."""
    if found.verdict is not Verdict.REFUTED or not _asks_data(target):
        return found
    return replace(found, verdict=Verdict.UNKNOWN, how=How.PERHAPS, refutations=())


def _asks_data(target: Target) -> bool:
    """Whether data decides what the kernel does, of which this run has one answer."""
    return target.kernel is not None and bool(target.kernel.kernel.launch.any_data)


def _at(program: Program, found: Check) -> set[tuple[FaultKind | Ending, frozenset[str]]]:
    """The kinds of what is refuted, each with its lines in any order."""
    return {(each.kind, frozenset(lines_of(program, each))) for each in found.refutations}


def _weakened(program: Program) -> Program:
    """The program of a kernel that may have an order which it has not."""
    what = "what is ordered by words, by which its warps may talk, is not followed"
    return program.with_coverage(replace(program.coverage, weakened=(*program.coverage.weakened, what)))


def beyond_the_limit(state: CheckState) -> Check | None:
    """The verdict on a kernel that runs longer than is followed, if it is refuted at a smaller value of a word."""
    asked = state.asked
    if asked.target.kernel is None or not asked.target.kernel.limited or asked.any_words:
        return None
    from pipesim.answers.every_size.nearby import words_that_decide  # of kernels alone

    for name, value in words_that_decide(asked.target.kernel.kernel).items():
        if value < 1:
            break  # the largest come first
        every = EverySize(asked.target, (AnyWord(name, 1, value),))
        found = at_every_size(state, unknown(asked.program, How.CUT), every)
        if found.verdict is Verdict.REFUTED:
            return found
        state.asked, state.ranges, state.assumed = asked, [], ()
    return None


def at_every_size(state: CheckState, proved: Check, every: EverySize) -> Check:
    """The verdict on the same kernel with other values of the words that may have any, if it is not proved.

    With that verdict the check continues about the kernel as it is then. A limit leaves it unknown.
    """
    for program, settings in every:
        found = _of_any_data(proof_of(state, program), state.asked.target)
        if found.verdict is not Verdict.PROVED:
            return _at_size(state, every.target(settings), settings, found)
        state.assume_for(program, found)
    if not state.talk and not _asks_data(state.asked.target):
        for settings in every.beyond(lambda program: _with_hangs(state, program).verdict is Verdict.REFUTED):
            target = every.target(settings)  # the same read to its end
            found = _with_hangs(state, target.build(grid=state.asked.ctas))
            if found.verdict is Verdict.REFUTED:
                return _at_size(state, target, settings, found)
        state.ranges, state.together = list(every.ranges), every.together
    return proved


def _at_size(state: CheckState, target: Target, settings: Mapping[str, int], found: Check) -> Check:
    """The verdict on the kernel with these settings, about which the check continues."""
    program = target.build(grid=state.asked.ctas)
    program = replace(program, laps=()) if found.verdict is Verdict.REFUTED else program
    state.asked, state.size = replace(state.asked, target=target, program=program), settings
    state.take(found)
    return found


def with_each_number_of_tiles(state: CheckState, proved: Check) -> Check:
    """The verdict also where a counter hands out any number of its tiles, if that takes few instructions more.

    Where the code does not show it for each number nothing is said of others than were looked at before.
    """
    kernel = state.asked.target.kernel
    assert kernel is not None
    left, stopped = all_left(kernel.fewer_tiles), kernel.program.coverage.stopped
    spent = sum(kind.instructions for every in state.others.looked_at for kind in every.kinds)
    data = _asks_data(state.asked.target)
    if left is None or stopped or state.talk or data or state.cut is not None or has_all_tiles(kernel):
        return proved
    if kernel.instructions * _TILES_MORE > left.tiles * spent * _PERCENT_MORE // 100:
        return proved
    found = at_every_size(state, proved, EverySize(state.asked.target, (AnyWord(TILE_COUNTER),)))
    state.ranges = [each for each in state.ranges if each.is_every]
    return found


def in_other_launches(state: CheckState, first: Check, add_beside: AddBeside) -> Check:
    """The verdict on the same kernel in all CTAs, and where other CTAs leave it fewer tiles.

    The check continues about the kernel as it is where it is refuted first, else where it is unknown first. If it
    is refuted elsewhere with other findings, these are checks of their own. A limit leaves unknown what no run
    refutes.
    """
    asked, others, worst, states = state.asked, state.others, first, 0
    others.begin(first.verdict)
    state.findings.add(asked.program, first.refutations)
    together: Check | None = None  # of CTAs that are followed together
    try:
        for target in others:
            program = target.build(grid=asked.ctas)
            is_together = target.kernel is not None and target.kernel.kernel.launch.together > 0
            program = _weakened(program) if state.weakened and not is_together else program
            proved = worst.verdict is Verdict.PROVED
            most = asked.max_states if proved else max(FEW_STATES, asked.max_states - states)
            found = _of_any_data(prove(program, most), target)
            if program.laps and found.verdict is not Verdict.PROVED:
                target = target.followed
                program = target.build(grid=asked.ctas)
                found = _of_any_data(prove(program, most), target)
            states += found.states
            others.judge(found.verdict)
            together = found if is_together else together
            there = replace(asked, target=target, program=program)
            new = state.findings.add(program, found.refutations)
            if WORSE.index(found.verdict) > WORSE.index(worst.verdict):
                state.asked, worst = there, found
                others.settle()
                state.take(found)
            elif new:
                add_beside(there, found)
            elif proved:
                state.assume_for(program, found)
            if worst.verdict is Verdict.UNKNOWN and _asks_data(target):
                break  # whatever else data decides does not refute it
    except LimitReachedError as reached:
        state.reach(reached, CheckStep.CTAS)
        if worst.verdict is Verdict.PROVED:
            worst = unknown(asked.program, ENDED[reached.limit])
            state.take(worst)
    else:
        if others.left_out and worst.verdict is Verdict.PROVED:
            how = How.SOME_CONTENTS if others.contents else How.SOME_CTAS
            worst = replace(worst, verdict=Verdict.UNKNOWN, how=how)
            state.take(worst)
        elif others.left_out:
            state.left_out.append(LeftOut(CheckStep.CTAS, CutBy.WORK))
        if state.weakened and worst is first and together is not None and others.are_all_together:
            worst = together  # which has all that one of them does, with its order
            state.take(worst)
        if worst.verdict is Verdict.PROVED and _is_ruled_out(asked.program, others):
            worst = unknown(asked.program, How.ASSUMES)
            state.take(worst)
    return worst


def _is_ruled_out(program: Program, others: OtherLaunches) -> bool:
    """Whether what is assumed of CTAs that talk is not to be assumed."""
    return not program.strictness.isdisjoint(each.kind for each in others.together.assumed)


def on_global_memory(state: CheckState, first: Check) -> Check:
    """The verdict where CTAs may meet in global memory; what is said of it is part of the program's coverage."""
    asked = state.asked
    assert asked.target.kernel is not None
    kernel = asked.target.kernel.kernel
    if not uses_global_memory(kernel):
        return first
    try:
        judged, words = judge(kernel), asked.target.kernel.words if kernel.launch.inside else None
        if words is not None:
            left_open = {at: why for at, why in judged.left_open.items() if at not in words.followed}
            judged = replace(judged, left_open=left_open)
        for met in () if judged.races else judged.inside:
            wrong, judged = _inside_a_cluster(state, met, judged)
            if wrong is not None:
                return wrong
        program = with_global_memory(asked.program, kernel, judged)
    except LimitReachedError as reached:
        state.reach(reached, CheckStep.CTAS)
        return first
    target = replace(asked.target, program=program, kernel=replace(asked.target.kernel, program=program))
    state.asked = replace(asked, program=program, target=target)
    if len(program.coverage.forbidden) > len(asked.program.coverage.forbidden):
        found = proof_of(state, program)
    elif first.verdict is Verdict.PROVED and program.strictness & {
        each.kind for each in program.coverage.assumed if each not in asked.program.coverage.assumed
    }:
        found = unknown(program, How.ASSUMES)
    else:
        found = first
    state.take_beside(found)  # of other CTAs, and of CTAs together
    return found


def _inside_a_cluster(state: CheckState, met: MeetingInside, judged: GridMemory) -> tuple[Check | None, GridMemory]:
    """The verdict where warps of one cluster access the same bytes of global memory in any order, None elsewhere;
    and what is known then.

    With it the check continues about the program that has these accesses.
    """
    asked = state.asked
    assert asked.target.kernel is not None
    kernel = asked.target.kernel.kernel
    made = with_accesses(kernel, met)
    program = with_global_memory(made.program, made.kernel, judged).with_strictness(asked.program.strictness)
    found = prove(program, FEW_STATES)
    wrong = tuple(each for each in found.refutations if is_on_global_memory(program, each))
    words = asked.target.kernel.words if kernel.launch.inside else None
    some = bool(words is not None and words.observed)  # of their orders this is one
    if not wrong or some or (met.told and words is None):
        if some or found.verdict is not Verdict.PROVED or not met.everywhere:
            judged = replace(judged, left_open={**dict.fromkeys(met.positions, INSIDE), **judged.left_open})
        return None, replace(judged, equal=judged.equal | (met.positions & made.equal_stores))
    made = replace(made, program=program)
    target = asked.target.with_settings({"cta": met.cta} if met.cta else {}, made)
    state.asked = replace(asked, target=replace(target, program=program, kernel=made), program=program)
    found = replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=wrong)
    state.take(found)
    return found, judged
