"""Whether a program that may be wrong does all that a trace says: a replay that forgives undetected faults."""

from dataclasses import dataclass

from pipesim.conform.replay.align import AgentAlignment, Alignments
from pipesim.conform.replay.conformance import (
    align_cta,
    events_of,
    order_uncertainty,
    recorded_ctas,
    require_same_kernel,
)
from pipesim.conform.replay.divergence import CtaDivergences
from pipesim.conform.replay.follow_records import ReplayResult, Rules, replay
from pipesim.explain.blocked_agents import explain
from pipesim.model.ending import TRAPPED, Ending
from pipesim.model.finding import Deadlock, Fault
from pipesim.model.program import Program
from pipesim.trace.schema import Events, Trace
from pipesim.trace.sites import SiteTable, optional_of, site_table


@dataclass(frozen=True)
class EditExplanation:
    """``program`` does what the trace says: what it breaks on the way, and how it ends.

    ``hazards`` are broken rules that the hardware does not notice, in the one order that the replay took; ``trap`` is
    the one that ended the launch; ``stuck`` the deadlock in which the records of a kernel that was stopped end.
    """

    program: Program
    hazards: tuple[Fault, ...]
    trap: Fault | None
    stuck: Deadlock | None


def explain_with(program: Program, trace: Trace, meant: Program | None = None) -> EditExplanation | None:
    """Whether ``program`` does all that ``trace`` says, and how; None if it does not.

    A trace that finished must be followed to the end of the program, one that timed out into a deadlock, one
    that trapped to a trap. Races, wrong items and unwritten bytes are no obstacle: the hardware does not notice them.
    ``meant``: the program whose operations the records name, each at the place of one of ``program``, where that is not
    ``program`` itself. Raises EvidenceError if the trace is another kernel's.
    """
    table = site_table(meant or program, optional_of(trace.meta))
    require_same_kernel(program, table, trace)
    alignments = Alignments(program, table, trace)
    finished, trapped = trace.meta.status == Ending.FINISHED, trace.meta.status in TRAPPED
    hazards: list[Fault] = []
    traps: list[Fault] = []
    stuck: list[Deadlock] = []
    for cta in recorded_ctas(trace):
        events = events_of(trace, cta)
        aligned, ending = align_cta(program, alignments, trace, events, cta)
        if any(a.mismatch and (finished or not ends) for a, ends in zip(aligned, ending, strict=True)):
            return None
        partial = [a.cut or ends for a, ends in zip(aligned, ending, strict=True)]
        followed = replay_forgiving(program, table, trace, events, cta, aligned, partial)
        if followed.divergence is not None:
            return None
        hazards += followed.hazards
        traps += [followed.trap] if followed.trap else []
        if not finished and any(partial) and followed.trap is None:
            deadlock = explain(program, followed.state)
            if not trapped and (deadlock is None or any(_never_entered(a, followed) for a in aligned)):
                return None  # stopped, the model says, where it could have gone on
            stuck += [deadlock] if deadlock else []
    if not finished and not (traps if trapped else stuck):
        return None
    return EditExplanation(program, tuple(dict.fromkeys(hazards)), next(iter(traps), None), next(iter(stuck), None))


def _never_entered(aligned: AgentAlignment, followed: ReplayResult) -> bool:
    """Whether an agent is before an operation that it would have recorded first: no wait keeps it there."""
    found = aligned.mismatch
    inside = bool(aligned.ran and aligned.rows[-1]) and found is not None and aligned.ran[-1] == found.pc
    return found is not None and not inside and followed.state.pcs[aligned.agent] == found.pc


def replay_forgiving(
    program: Program, table: SiteTable, trace: Trace, events: Events, cta: int, aligned: list[AgentAlignment],
    partial: list[bool],
) -> ReplayResult:  # fmt: skip
    """Follow the records of one CTA on a program that may break rules; ``partial``: agents that did not finish.

    Two orders are tried: executing only what each return needs, and all that surely happened before it. A phase that
    comes and goes while an agent waits shows in one of them.
    """
    divergences = CtaDivergences(program, table, trace, events, cta)
    trapped = trace.meta.status in TRAPPED
    tried = []
    for everything in (False, True):
        rules = Rules(forgiving=True, trapped=trapped, everything=everything)
        tried.append(replay(program, events, aligned, partial, order_uncertainty(trace), divergences, rules))
        if tried[-1].divergence is None and (tried[-1].trap is not None or not trapped):
            return tried[-1]
    return next((way for way in tried if way.divergence is None), tried[-1])
