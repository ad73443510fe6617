"""What is wrong with a kernel whose trace leaves its protocol: the single edits of the protocol that explain it whole.

Every edit of the closed list is considered. The first event at which an edit changes what its agent records must be the
agent's first event that the protocol does not have, which leaves a handful; those are replayed, and an edit is an
explanation only if the edited program does all that the trace says, to its end. Mistakes in a line of code
(:mod:`.code_edits`) are replayed as far as the trace came there: what is recorded beside such a line may be as it was
meant.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice

from pipesim.conform.diagnose.autopsy import autopsy
from pipesim.conform.diagnose.code_edits import CodeEdit, barrier_names, code_edits, in_place, includes, places_of
from pipesim.conform.diagnose.code_edits import apply as apply_to_code
from pipesim.conform.diagnose.code_edits import describe as describe_code
from pipesim.conform.diagnose.edits import Change, Edit, apply, change_of, describe, edits, parse_fault
from pipesim.conform.diagnose.examination import Autopsy, Diagnosis, Examination, Explanation, LaunchOutcome
from pipesim.conform.diagnose.forgiving import EditExplanation, explain_with
from pipesim.conform.diagnose.outcomes import outcome_of, outcomes
from pipesim.conform.replay.align import AgentAlignment, Alignments
from pipesim.conform.replay.conformance import align_cta, as_clusters, events_of, recorded_ctas
from pipesim.conform.result import Conformance, DivergenceKind, TraceVerdict
from pipesim.errors import PipesimError
from pipesim.findings.catalog import report_faults
from pipesim.model.ending import Ending
from pipesim.model.groups import BY_ANSWER, BY_PARITY, ON_NAMED_BARRIER
from pipesim.model.ops import Operation, operand
from pipesim.model.program import Program
from pipesim.trace.schema import Events, Trace
from pipesim.trace.sites import RECORDED, Record, SiteBook, SiteTable, optional_of, optional_sites, site_table

_MOST_WORK = 500_000_000  #: of an agent the square of its operations, since each edit makes a list of them: 10 s
_LATEST = 8  #: passes of a line before the divergence at which a mistake of one pass is looked for


def diagnose(program: Program, trace: Trace, found: Conformance) -> Diagnosis | None:
    """Why ``trace`` leaves ``program``; ``found`` is what :func:`conform` said about the two.

    None if there is nothing to explain (it conforms, and no fault was injected) or nothing to explain it with: records
    were lost, only a window of them was kept, only a barrier's word or the time of a return is wrong, or the program is
    far larger than any that was recorded.
    """
    made = trace.meta.fault
    if found.verdict is TraceVerdict.UNKNOWN or found.lost or trace.meta.window:
        return None
    if found.divergence is not None and found.divergence.kind in (DivergenceKind.BARRIER_WORD, DivergenceKind.TOO_SOON):
        return None  # the records distinguish edits, and these conform; no edit makes the hardware faster
    wrong = trace.meta.wrong_tiles > 0
    if found.divergence is None and (made or not wrong):
        return Diagnosis((), 0, made, manifest=wrong) if made else None
    if sum(len(code) ** 2 for code in program.code) > _MOST_WORK:
        return None
    candidates, in_code = edits(program), code_edits(program)
    tried = len(candidates) + len(in_code)
    if found.divergence is None:
        return Diagnosis((), tried)  # every edit would show in the records
    if found.divergence.stuck_too:
        return Diagnosis((), 0, made)  # the protocol itself ends there
    deviations = _find_deviations(program, trace, found)
    explained: list[tuple[Edit | CodeEdit, EditExplanation]] = [
        (edit, why)
        for edit in _possible(program, trace, candidates, deviations)
        if (why := explain_with(apply(program, edit), trace)) is not None
    ]
    named = bool(made) and any(isinstance(edit, Edit) and _same(program, edit, made) for edit, _ in explained)
    lines = list(_explaining_lines(program, trace, in_code, deviations))
    values: dict[CodeEdit, list[int]] = {}
    for edit, _ in lines:
        values.setdefault(replace(edit, value=0), []).append(edit.value)
    alike = [(edit, why) for edit, why in lines if values[replace(edit, value=0)][0] == edit.value]
    explained = [*alike, *explained]
    explained.sort(key=lambda pair: len(pair[1].hazards) > 0)  # stable: the order of the list decides the rest
    explanations = tuple(
        _explanation(program, edit, why, values[replace(edit, value=0)] if isinstance(edit, CodeEdit) else [])
        for edit, why in explained
    )
    return Diagnosis(explanations, tried, made, named)


def apply_edit(program: Program, edit: Edit | CodeEdit) -> Program:
    """The program with one of the edits that explain a trace."""
    return apply(program, edit) if isinstance(edit, Edit) else apply_to_code(program, edit)


def _explaining_lines(
    program: Program, trace: Trace, candidates: tuple[CodeEdit, ...], deviations: "_Deviations"
) -> Iterator[tuple[CodeEdit, EditExplanation]]:
    """The mistakes in a line of code that explain the trace; not those of one pass where one of all passes does."""
    always: list[CodeEdit] = []
    known, also = optional_sites(program), optional_of(trace.meta)
    culprits = {agent for agent, _ in deviations.wrong}
    for edit in candidates:
        places = places_of(program, edit)
        if (
            not _reached(program, edit, deviations)
            or not culprits <= places.keys()
            or any(includes(wider, edit) for wider in always)
        ):
            continue
        why = None if culprits else explain_with(in_place(program, edit), trace, program)
        wrong = apply_to_code(program, edit)
        if why is None and not (optional_sites(wrong) - known - also):  # what is done instead would also be recorded
            why = explain_with(wrong, trace)
        if why is not None:
            always += [edit] if edit.iteration < 0 else []
            yield edit, why


def _reached(program: Program, edit: CodeEdit, deviations: "_Deviations") -> bool:
    """Whether an agent reached the place of the edit before the divergence; of one pass, not long before."""
    for agent, pcs in places_of(program, replace(edit, iteration=-1)).items():
        came = sum(pc in deviations.ran[agent] for pc in pcs)
        if came and (edit.iteration < 0 or came - _LATEST <= edit.iteration < came):
            return True
    return False


def _explanation(program: Program, edit: Edit | CodeEdit, why: EditExplanation, values: list[int]) -> Explanation:
    """``values``: all with which such a mistake in a line explains the trace; none for an edit of the protocol."""
    if isinstance(edit, Edit):
        agent, role, text = edit.agent, program.agent_name(edit.agent), describe(program, edit)
        change = change_of(program, edit)
        pc, barrier = change.pc, program.barrier_name(change.barrier)
    else:
        agent, pcs = next(iter(places_of(program, edit).items()))
        role, text, pc = edit.role or "everyone", describe_code(program, edit, values), pcs[0]
        op = program.code[agent][pc]
        if op[0] in ON_NAMED_BARRIER:
            barrier = barrier_names([program.named_barriers[operand(op, "named_barrier")][1]])
        else:
            barrier = program.barrier_name(operand(op, "barrier"))
    return Explanation(
        edit,
        text,
        role,
        barrier,
        edit.iteration,
        program.line(agent, pc),
        report_faults(why.program, why.hazards),
        next(iter(report_faults(why.program, (why.trap,) if why.trap else ())), None),
        why.stuck,
    )


def _same(program: Program, edit: Edit, made: str) -> bool:
    """Whether the injected fault is this edit, or one of another iteration that changes the same."""
    try:
        kind, iteration = parse_fault(made)
        if edit.kind is not kind:
            return False
        return change_of(program, replace(edit, iteration=iteration)).code == change_of(program, edit).code
    except PipesimError:
        return False


@dataclass(frozen=True)
class _Deviations:
    """How the trace goes along the protocol.

    ``wrong``: (agent, its first event that is not the protocol's). ``short``: by agent how many events it has, where
    they end too early. ``ran``: by agent the operations that it can have reached before the divergence.
    """

    wrong: set[tuple[int, int]]
    short: dict[int, set[int]]
    ran: list[set[int]]


def _find_deviations(program: Program, trace: Trace, found: Conformance) -> _Deviations:
    assert found.divergence is not None
    at = found.divergence.cycle
    late = (
        at + found.uncertainty_cycles if at >= 0 and found.divergence.kind is not DivergenceKind.NOT_FINISHED else None
    )
    table = site_table(program, optional_of(trace.meta))
    alignments = Alignments(program, table, trace)
    deviations = _Deviations(set(), {}, [set() for _ in program.code])
    for cta in recorded_ctas(trace):
        events_here = events_of(trace, cta)
        aligned, ending = align_cta(program, alignments, trace, events_here, cta)
        for a, ends in zip(aligned, ending, strict=True):
            events = sum(len(rows) for rows in a.rows)
            if cta == found.divergence.cta:
                deviations.ran[a.agent].update(_until(a, events_here, late))
            if a.mismatch is not None and not (ends and trace.meta.status != Ending.FINISHED):
                deviations.wrong.add((a.agent, events))
            elif ends:
                deviations.short.setdefault(a.agent, set()).add(events)
    return deviations


def _until(aligned: AgentAlignment, events: Events, late: int | None) -> Iterator[int]:
    """The operations that an agent ran, up to its first record after this time (None: all)."""
    for pc, rows in zip(aligned.ran, aligned.rows, strict=True):
        if late is not None and rows and int(events.cycle[rows[0]]) > late:
            return
        yield pc
    if aligned.mismatch is not None:
        yield aligned.mismatch.pc  # it should have come here


def _possible(program: Program, trace: Trace, candidates: tuple[Edit, ...], deviations: _Deviations) -> Iterator[Edit]:
    """The edits that change an agent's events exactly where they leave the protocol, or end before it does.

    If one agent does something else than the protocol, it is the agent to edit; two such agents are no single edit.
    """
    table = site_table(program, optional_of(trace.meta))
    book = SiteBook(program, optional_of(trace.meta))
    wrong, short = deviations.wrong, deviations.short
    culprits = {agent for agent, _ in wrong}
    for edit in candidates:
        if culprits and culprits != {edit.agent}:
            continue
        if any(op[0] in BY_ANSWER for op in program.code[edit.agent]):
            yield edit  # what it records depends on the answers of tries
            continue
        first = _first_event(program, table, book, edit.agent, change_of(program, edit))
        if all(first == event for _, event in wrong) if culprits else first in short.get(edit.agent, ()):
            yield edit


def _first_event(program: Program, table: SiteTable, book: SiteBook, agent: int, change: Change) -> int:
    """How many events the agent records before the first in which the edit shows."""
    code = program.code[agent]
    before = sum(len(records) for records in table.records[agent][: change.first])
    pairs = zip(
        _records(book, agent, code, change.first), _records(book, agent, change.code, change.first), count(before)
    )
    first = next(((n, one is other) for one, other, n in pairs if one != other or one is None), (-1, False))
    return -1 if first[1] else first[0]  # both at their end: it shows nowhere


def _records(book: SiteBook, agent: int, code: tuple[Operation, ...], start: int) -> Iterator[Record | None]:
    """What the agent records from ``start`` on, then None indefinitely."""
    book.begin(agent, start)
    waits = (op for op in reversed(code[:start]) if op[0] in BY_PARITY)
    for op in islice(waits, 1):
        book.records(op)  # the stage on which it works
    for op in code[start:]:
        if op[0] in RECORDED:
            yield from book.records(op)
    while True:
        yield None


_SCHEDULES = 32  #: tried to see how the explaining protocol can end


def examine(program: Program, trace: Trace, found: Conformance) -> Examination | None:
    """All about a trace that leaves its protocol, has an injected fault or held wrong data; None for any other."""
    if found.divergence is None and not trace.meta.fault and not trace.meta.wrong_tiles:
        return None
    trace = as_clusters(program, trace)
    diagnosis = diagnose(program, trace, found)
    outcome = None if trace.meta.status == Ending.UNKNOWN else outcome_of(trace)
    possible: set[LaunchOutcome] = set()
    if diagnosis is not None and diagnosis.explanations:
        possible = set(outcomes(apply_edit(program, diagnosis.explanations[0].edit), _SCHEDULES))
        possible |= {outcome} if outcome else set()
    ways = tuple(each for each in LaunchOutcome if each in possible)
    explained = diagnosis.explanations[0].edit if diagnosis is not None and diagnosis.explanations else None
    really = program
    if isinstance(explained, CodeEdit):
        really = in_place(program, explained)
    elif explained is not None:
        really = program = apply_edit(program, explained)  # its records are those of the operations that are left
    return Examination(outcome, diagnosis, ways, _autopsy_of_failure(really, program, trace, found))


def _autopsy_of_failure(program: Program, meant: Program, trace: Trace, found: Conformance) -> Autopsy | None:
    """The autopsy of the CTA where it shows: the one that diverges, or the first in which an agent waits.

    ``program``: what the kernel does, as far as is known; ``meant``: its protocol.
    """
    if trace.meta.status in (Ending.FINISHED, Ending.UNKNOWN):
        return None
    first = [found.divergence.cta] if found.divergence else []
    opened = [autopsy(trace, cta, program, meant) for cta in dict.fromkeys([*first, *recorded_ctas(trace)])]
    present = [a for a in opened if a is not None]
    return next((a for a in present if a.waiting or a.trap), next(iter(present), None))
