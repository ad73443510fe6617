"""What is wrong with a program: counterexamples at the smallest sizes that still fail, each schedule shortened."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from pipesim.answers.progress import Unit
from pipesim.answers.views.check import Counterexample, Origin
from pipesim.answers.views.conclusion import Basis
from pipesim.errors import PipesimError
from pipesim.explain.blocked_agents import explain
from pipesim.explain.causes import with_causes
from pipesim.explain.lap_counters import Laps
from pipesim.findings.catalog import MEMORY_ORDER, NO_MOVE_SHOWS, of_fault, report_fault
from pipesim.findings.counts.tx_edge import one_operand
from pipesim.findings.kind import Certainty
from pipesim.findings.waivers import main_wait
from pipesim.model.coverage import NotJudgedKind, switches
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, Finding, LedPast, Verdict
from pipesim.model.groups import ON_BARRIER
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.check import Check
from pipesim.prove.check import check as prove
from pipesim.prove.counterexample.late import late_of
from pipesim.prove.counterexample.play import Play, to_text
from pipesim.prove.counterexample.shorten import shorten
from pipesim.prove.counterexample.words import final_states, schedule_lines
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.behind import Hidden
from pipesim.prove.repair.correction import MOST_TRIED, Correction, corrections
from pipesim.prove.repair.kinds import Ranked, Repair
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.ptx.branch_decisions import BranchPast
    from pipesim.ptx.extract import Extraction
    from pipesim.ptx.kernel import EditableKernel

MOST_TRIES = 12  #: values of one parameter
FEW_STATES = 2_000  #: searched of each smaller size
_SHORT = 400  #: operations of a program that is searched for other ways to fail
#: Faults that a wait shows which returns with an earlier phase than is meant.
_BY_A_WAIT: frozenset[FaultKind | Ending] = frozenset({FaultKind.STALE_WAIT, FaultKind.WRONG_ITEM})
_REGISTERS = FaultKind.TOO_MANY_REGISTERS
_MORE = 2  #: iterations of a size at which a correction has to be right as well
_MOST_MOVES = 30_000  #: made to shorten a schedule


class SmallestFailure:
    """A program that fails, and one of smaller sizes that still does so in one of the same ways, as far as looked for.

    ``sizes`` are its parameters, ``found`` its refutations. Only the parameters that the loops are named after are
    lowered; a flat program has none.
    """

    def __init__(self, target: Target, sizes: Mapping[str, int], program: Program, found: Check) -> None:
        self.sizes = self._asked = dict(sizes)
        self.program = program
        self.found = found
        self._target = target

    def lower(self, unit: Unit) -> None:
        """Make the sizes as small as they can be, one parameter after the other, the least value first.

        A size that one run does not decide is searched; where that took too many states, larger sizes are not. One
        that fails at other agents and barriers fails for another reason.
        """
        kinds, about = {shown.kind for shown in self.found.refutations}, _about(self.program, self.found)
        tries = self._tries()
        done, of = 0, sum(map(len, tries.values()))
        states = FEW_STATES
        for name, values in tries.items():
            for value in values:
                unit(done + value, of)
                smaller = at_size(self._target, self.sizes | {name: value}, states)
                if smaller is not None and fails_so(smaller[1], kinds) and about & _about(*smaller):
                    self.sizes = self.sizes | {name: value}
                    self.program, self.found = smaller
                    break
                if smaller is not None and smaller[1].verdict is Verdict.UNKNOWN:
                    states = 1
            done += len(values)

    def another_size(self) -> Program | None:
        """The program of a few iterations more, but no more than were asked for, or of more where that is the smallest
        size; None if there is none.
        """
        defaults = self._target.defaults
        if self._target.program is not None or self.program.words_cta >= 0:
            return None
        mine = {name: self.sizes.get(name, defaults[name]) for name in self.program.loops if name in defaults}
        asked = {name: self._asked.get(name, defaults[name]) for name in mine}
        more = {n: v + _MORE if mine == asked else min(v + _MORE, asked[n]) for n, v in mine.items()}
        try:
            return self._target.build(self.sizes | more, twice=False) if more != asked else None
        except PipesimError:
            return None

    def _tries(self) -> dict[str, range]:
        """The parameters to lower, each with the values to try."""
        if self._target.program is not None or not self.found.refutations:
            return {}
        names = [name for name in dict.fromkeys(self.program.loops) if name in self._target.defaults]
        asked = {name: self.sizes.get(name, self._target.defaults[name]) for name in names}
        return {name: range(min(value, MOST_TRIES)) for name, value in asked.items()}


def shorten_refutation(program: Program, refuted: Refutation) -> Refutation:
    """Without the moves that it can spare; as it is where a single schedule does not show what is wrong."""
    return refuted if refuted.kind in NO_MOVE_SHOWS else shorten(program, refuted, _MOST_MOVES)


def other_ends(program: Program, known: Collection[Refutation]) -> tuple[Refutation, ...]:
    """The other ways in which schedules of a small program end, one schedule each."""
    if not known or sum(map(len, program.code)) > _SHORT:
        return ()
    kinds = {refuted.kind for refuted in known}
    others = {each.kind: each for each in reversed(explore(program, FEW_STATES).refutations) if each.kind not in kinds}
    return tuple(others[kind] for kind in sorted(others, key=lambda kind: kind.value))


def corrections_of(
    small: Program,
    refuted: Refutation,
    asked: Program,
    unit: Unit,
    kernel: EditableKernel | None = None,
    led_past: Sequence[BranchPast] = (),
    most: int = MOST_TRIED,
    again: Callable[[Repair], bool] | None = None,
    of_words: Collection[Ranked] = (),
    other: Program | None = None,
) -> tuple[Correction, ...]:
    """Its likely corrections, where the finding has none of its own and a change of the program shows them; of a kernel
    changes of its file first.

    ``led_past``: the branches by which what is missing did not come. ``most``: operations that are tried, if it is not
    a kernel. ``again``: whether CTAs that talk are proved with a change; ``of_words`` and ``other``: as of
    :func:`corrections`.
    """
    if refuted.kind in NO_MOVE_SHOWS - MEMORY_ORDER - _BY_A_WAIT - {FaultKind.READ_BEFORE_WAIT, _REGISTERS}:
        return ()
    if asked.words_cta >= 0 and kernel is not None:
        from pipesim.answers.kernel.locks import corrections_of_locks  # reads PTX, which few commands need

        return corrections_of_locks(kernel, asked, refuted, unit)
    if asked.coverage.stopped or (again is None and asked.words_cta >= 0):
        return ()  # of which nothing can be proved; whose barriers are words
    if asked.words_cta >= 0:  # ``again`` is about every order
        small, asked = (
            replace(each, coverage=each.coverage.judging(NotJudgedKind.WORD_ORDERS)) for each in (small, asked)
        )
    if kernel is None:
        return corrections(small, refuted, asked, unit, most, again, of_words=of_words, other=other)
    from pipesim.answers.kernel.corrections import corrections_of_kernel  # reads PTX, which few commands need

    return corrections_of_kernel(kernel, asked, refuted, unit, led_past)


def hidden_in_hang(refuted: Refutation, asked: Program, unit: Unit, kernel: EditableKernel | None) -> Hidden | None:
    """What the hang of a kernel hides, which was read up to it."""
    if kernel is None or refuted.deadlock is None:
        return None
    from pipesim.answers.kernel.corrections import hidden_in_kernel  # reads PTX, which few commands need

    return hidden_in_kernel(kernel, asked, refuted, unit)


def computing_of(refuted: Refutation, kernel: EditableKernel | None) -> str:
    """Where a kernel computes the stage and parity of a wait that returns with an earlier phase, as a clause, or ""."""
    if kernel is None or refuted.fault is None or refuted.kind not in _BY_A_WAIT:
        return ""
    from pipesim.answers.kernel.corrections import computed_at  # reads PTX, which few commands need

    return computed_at(kernel, refuted.fault)


def led_past_of(
    program: Program, refuted: Refutation, kernel: EditableKernel | None
) -> tuple[tuple[LedPast, BranchPast], ...]:
    """Of a kernel that hangs: the branches by which what is missing did not come, where agents missed no phase."""
    if kernel is None or refuted.deadlock is None:
        return ()
    if any(b.lapped_by or b.missed >= 0 for b in _with_causes(program, refuted, refuted.deadlock, None).blocked):
        return ()
    from pipesim.answers.kernel.led_past import led_past_by  # reads PTX, which few commands need

    return led_past_by(kernel, program, refuted)


def with_led_past(found: Deadlock, past: tuple[LedPast, ...]) -> Deadlock:
    """The deadlock with them: the count of a barrier at which an arrive is left out is not what is wrong."""
    left_out = {each.barrier for each in past if each.does == "arrive" and not each.ends}
    blocked = tuple(replace(b, given=-1, count_line="") if b.barrier in left_out else b for b in found.blocked)
    return replace(found, led_past=past, blocked=blocked)


def without_unproved(finding: Finding, found: Collection[Correction], *, beside: bool = False) -> Finding:
    """The finding without the correction that its rule names, if changes of the program have been tried and none is
    proved: then an order or a fence alone does not correct it; or if one is that says more. ``beside``: another
    finding is about its barrier, which would remain where a wait that missed its phase is left out.
    """
    if isinstance(finding, Deadlock):
        return replace(finding, correction="") if beside and finding.kind == "lapped_waiter" else finding
    kind = finding.kind
    unproved = (kind in MEMORY_ORDER and not found) or (kind is _REGISTERS and found)
    return replace(finding, correction="") if unproved else finding


def counterexample_of(
    program: Program,
    refuted: Refutation,
    lowered: Mapping[str, int] | None = None,
    command: str = "",
    *,
    asked: Program | None = None,
    quick: bool = False,
    kernel: Extraction | None = None,
) -> Counterexample:
    """One way in which it fails, with all that a report says about it; ``lowered`` and ``command`` as there.

    ``asked``: the program that was asked about, if this is one of smaller sizes. ``quick``: without the schedule in
    words. ``kernel``: what the program was read from.
    """
    if refuted.deadlock is not None:
        refuted = replace(refuted, deadlock=_with_causes(program, refuted, refuted.deadlock, asked))
    told = replace(refuted, deadlock=_with_what_follows(program, refuted, kernel))
    finding = report_fault(program, refuted.fault) if refuted.fault is not None else told.deadlock
    assert finding is not None
    return Counterexample(
        finding,
        () if quick else schedule_lines(program, refuted),
        lowered or {},
        to_text(refuted.schedule),
        command,
        {} if quick else final_states(program, refuted),
        cause=refuted.why.name if refuted.why is not None else "",
        basis=(basis := _basis(program, told, kernel)),
        late=late_of(program, refuted) if basis is Basis.POSSIBLE and not quick else None,
        names=names_of(program, told),
    )


def names_of(program: Program, refuted: Refutation) -> tuple[str, ...]:
    """The barriers and tiles that it is about, without their stages and slots."""
    wait, fault = main_wait(refuted.deadlock) if refuted.deadlock is not None else None, refuted.fault
    found = {wait.barrier} if wait is not None else set()
    if fault is not None:
        op = program.code[fault.agent][fault.pc]
        on = {fault.barrier, operand(op, "barrier") if op[0] in ON_BARRIER else -1} - {-1}
        found |= {program.barriers[barrier].name for barrier in on}
        found |= {program.access_name(access) for access in program.accesses_of(op)}
    return tuple(sorted({name.partition("[")[0].partition(" bytes ")[0] for name in found}))


def _about(program: Program, found: Check) -> set[tuple[object, str, str]]:
    """What the ways in which it fails are about: of each the roles, with the barriers and tiles."""
    about: set[tuple[object, str, str]] = set()
    for each in found.refutations:
        if each.deadlock is not None:
            waits = ((b.agent.partition("@")[0].partition("/")[0], b.barrier) for b in each.deadlock.blocked)
            about |= {(each.kind, role, barrier.partition("[")[0]) for role, barrier in waits}
        elif each.fault is not None:
            agents = (agent for agent in (each.fault.agent, each.fault.other_agent) if agent >= 0)
            roles = {program.agents[agent].role for agent in agents}
            about |= {(each.kind, role, name) for role in roles for name in names_of(program, each) or [""]}
    return about


def origin_of(kernel: Extraction | None, program: Program, refuted: Refutation) -> Origin:
    """Whose the line is that it is reported at; of a described protocol it is the user's."""
    if kernel is None:
        return Origin()
    fault, at = refuted.fault, (-1, -1)
    if fault is not None:
        at = fault.agent, fault.pc
    elif refuted.deadlock is not None and (wait := main_wait(refuted.deadlock)) is not None:
        pcs = Play(program, refuted.schedule).state.pcs
        at = next(((n, pc) for n, pc in enumerate(pcs) if program.agent_name(n) == wait.agent), at)
    return Origin(*kernel.owner_at(*at)) if at[0] >= 0 else Origin()


def _basis(program: Program, refuted: Refutation, kernel: Extraction | None) -> Basis:
    if refuted.fault is not None and of_fault(refuted.fault.kind).certainty is Certainty.LETTER:
        kind, seen = refuted.fault.kind, program.fences_reads  # wrong data, in three libraries
        if kind is not FaultKind.READ_NOT_FENCED:
            seen = kind is FaultKind.TX_EDGE and one_operand(program, refuted.fault)
        return Basis.POSSIBLE if seen else Basis.LETTER
    return Basis.CERTAIN if refuted.usual and not _lanes_may_go_on(program, refuted, kernel) else Basis.POSSIBLE


def _lanes_may_go_on(program: Program, refuted: Refutation, kernel: Extraction | None) -> bool:
    """Whether lanes of a warp that waits may have seen the end of their own wait, and send what others wait for.

    PTX does not say that they wait for the other lanes.
    """
    found = refuted.deadlock
    if found is None or kernel is None or kernel.program.code != program.code or not kernel.apart:
        return False
    pcs = Play(program, refuted.schedule).state.pcs
    streams = [(n, kernel.streams[n].positions) for n in range(len(pcs))]
    waits = {program.agent_name(n) for n, at in streams if pcs[n] < len(at) and at[pcs[n]] in kernel.apart}
    return any(
        waits & {s.agent for s in b.suppliers if s.next_line} or (found.cut and b.agent in waits) for b in found.blocked
    )


def command_of(target: Target, sizes: Mapping[str, int], ctas: int | None) -> str:
    """The protocol, its launch and its parameters as a command line takes them, "" for one that has no name there."""
    if not target.spelling:
        return ""
    words = [target.spelling, *target.launch_words]
    words += [word for name, value in sizes.items() for word in ("-p", f"{name}={value}")]
    words += ["--ctas", str(ctas)] if ctas is not None else []
    return shlex.join([*words, *switches(target.strictness)])


def _with_causes(program: Program, refuted: Refutation, deadlock: Deadlock, asked: Program | None) -> Deadlock:
    """The deadlock with its causes: a phase that an agent asks for and has missed, a count that is never reached."""
    laps = Laps(program)
    play = Play(program, refuted.schedule, [laps])
    play.ask_all()
    return with_causes(program, play.state, deadlock, laps.disagreements, asked)


def _with_what_follows(program: Program, refuted: Refutation, kernel: Extraction | None) -> Deadlock | None:
    """The deadlock with what agents would send after their waits, of a kernel that is followed past its hang."""
    found = refuted.deadlock
    if found is None or not found.cut or kernel is None or kernel.program.code != program.code:
        return found
    read = kernel.past_hangs.program
    more = explain(read, Play(read, refuted.schedule).state)
    agents = [each.agent for each in found.blocked]
    if more is None or read.code == program.code or agents != [each.agent for each in more.blocked]:
        return found
    pairs = zip(found.blocked, more.blocked, strict=True)
    blocked = tuple(replace(each, suppliers=further.suppliers) for each, further in pairs)
    return replace(found, blocked=blocked, cycle=more.cycle, cut=more.cut)


def at_size(target: Target, sizes: dict[str, int], max_states: int) -> tuple[Program, Check] | None:
    """The program of these sizes and what is known about it after this many states; None if there is none."""
    try:
        program = target.build(sizes, twice=False)  # the program that was asked for was
    except PipesimError:
        return None
    return program, prove(program, max_states=max_states)


def fails_so(found: Check, kinds: Set[FaultKind | Ending] | None) -> bool:
    """True if it is refuted in one of these ways, a hang among them too, or (None) in any."""
    if found.verdict is not Verdict.REFUTED:
        return False
    shown = {each.kind for each in found.refutations}
    return kinds is None or (bool(kinds & shown) and (Ending.DEADLOCK in shown or Ending.DEADLOCK not in kinds))


def refuted_at(target: Target, sizes: dict[str, int]) -> tuple[Program, Check] | None:
    """The program of these sizes if a schedule of it fails."""
    smaller = at_size(target, sizes, FEW_STATES)
    return smaller if smaller is not None and fails_so(smaller[1], None) else None
