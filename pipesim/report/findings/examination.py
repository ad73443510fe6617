"""What failed, in words: the edits that explain a trace, and the barriers of a kernel that did not finish."""

from collections.abc import Sequence

from rich.cells import cell_len

from pipesim.conform.diagnose.examination import (
    Autopsy,
    Diagnosis,
    Examination,
    Explanation,
    LaunchOutcome,
    RebuiltBarrier,
)
from pipesim.conform.replay.divergence import word_words
from pipesim.model.barrier import BarrierWord
from pipesim.model.ending import TRAPPED, Ending
from pipesim.model.finding import Deadlock
from pipesim.report.findings.finding import deadlock_lines, fault_lines, headline
from pipesim.report.text.console import BAD, GOOD, UNSURE
from pipesim.report.text.layout import columns, pad, wrap, wrap_parts
from pipesim.report.text.words import NONE, count, microseconds, number, place

MOST_EXPLANATIONS = 6
MOST_HAZARDS = 2
MOST_BARRIERS = 16
LEAST_AGENTS = 20  #: cells for the names of agents beside a table
_ENDED = {Ending.DEADLINE: "timed out", Ending.DEADLOCK: "no agent can proceed"}


def examination_lines(found: Examination, shown: Deadlock | None, width: int) -> list[str]:
    """The diagnosis, how the run can end, and the autopsy; ``shown`` is a deadlock that is already shown above."""
    lines: list[str] = []
    if found.diagnosis is not None:
        lines += ["", *diagnosis_lines(found.diagnosis, width)]
        lines += _outcome(found, width)
    if found.autopsy is not None:
        lines += ["", *autopsy_lines(found.autopsy, shown, width)]
    return lines


def diagnosis_lines(diagnosis: Diagnosis, width: int) -> list[str]:
    """Which single edit of the protocol explains the trace, if any, and whether an injected fault was found."""
    if not diagnosis.manifest:
        claim = f"the fault {diagnosis.made} did not manifest in this run: the kernel did what the protocol says"
        return wrap(claim, width, f"{UNSURE} ")
    told = diagnosis.explanations
    if not told and not diagnosis.tried:
        lines = wrap("the protocol itself ends in this deadlock: no edit is needed to explain it", width, "  ")
    elif not told:
        lines = wrap(f"no single edit explains it: {count(diagnosis.tried, 'edit')} tried", width, f"{UNSURE} ")
    elif len(told) == 1:
        lines = wrap(f"one edit makes the whole trace conform: {_claim(told[0])}", width, "  ", "      ")
        lines += _consequences(told[0], width)
    else:
        head = (
            f"{count(len(told), 'edit')} make the whole trace conform, each alone; the records do not distinguish them"
        )
        lines = wrap(head, width, "  ")
        for explanation in told[:MOST_EXPLANATIONS]:
            lines += wrap(_claim(explanation), width, "    ", "      ")
        if len(told) > MOST_EXPLANATIONS:
            lines.append(f"    and {count(len(told) - MOST_EXPLANATIONS, 'more edit')}")
    if diagnosis.made:
        lines += _injected_fault(diagnosis, width)
    return lines


def autopsy_lines(autopsy: Autopsy, shown: Deadlock | None, width: int) -> list[str]:
    """How far the CTA came, its barriers, whether their words agree, and who waits for what."""
    ended = "trapped" if autopsy.status in TRAPPED else _ENDED.get(autopsy.status, autopsy.status)
    after = f"{microseconds(autopsy.picoseconds)} after its first record"
    progress = f"last progress at cycle {number(autopsy.cycle)}, {after}" if autopsy.cycle >= 0 else "no event recorded"
    lines = wrap_parts([f"autopsy of CTA {autopsy.cta}", ended, progress], width, "  ")
    if autopsy.contradiction:
        does = (
            "do not fit what the protocol does without leaving records" if autopsy.supplied else "contradict each other"
        )
        lines += wrap(f"the records {does}: {autopsy.contradiction}", width, f"{UNSURE} ")
    lines += ["", *barrier_lines(autopsy.barriers, width), *_words(autopsy, width)]
    if autopsy.trap is not None:
        lines += ["", *fault_lines([autopsy.trap], width)]
    elif autopsy.status in TRAPPED:
        lines += ["", *wrap("no recorded operation traps: the one that trapped left no record", width, f"{UNSURE} ")]
    if autopsy.deadlock is not None and autopsy.deadlock == shown:
        return [*lines, *wrap("who waits for what is the same as above", width, "  ")]
    if autopsy.deadlock is not None:
        lines += ["", *headline(autopsy.deadlock, width), "", *deadlock_lines(autopsy.deadlock, width)]
    elif autopsy.waiting:
        lines += ["", *deadlock_lines(Deadlock(autopsy.waiting, ()), width)]
    if autopsy.stopped:
        where = "was somewhere between two records" if len(autopsy.stopped) == 1 else "were between two records"
        lines += wrap(f"{', '.join(autopsy.stopped)} {where}", width, "  ")
    return lines


def _claim(explanation: Explanation) -> str:
    where = f" ({place(explanation.line)})" if explanation.line else ""
    return f"{explanation.claim}{where}"


def _consequences(explanation: Explanation, width: int) -> list[str]:
    """Which rules the edited protocol breaks on the way, and where it traps."""
    lines: list[str] = []
    for fault in explanation.hazards[:MOST_HAZARDS]:
        lines += wrap(f"with it {fault.claim}", width, "    ", "      ")
    if len(explanation.hazards) > MOST_HAZARDS:
        lines.append(
            f"    and {count(len(explanation.hazards) - MOST_HAZARDS, 'more fault')} not detected by the hardware"
        )
    if explanation.trap is not None:
        lines += wrap(f"then {explanation.trap.claim}: the hardware traps here", width, "    ", "      ")
    elif explanation.stuck is not None:
        waiting = ", ".join(f"{b.agent} for {b.barrier}" for b in explanation.stuck.blocked)
        lines += wrap(f"then the protocol also waits indefinitely: {waiting}", width, "    ", "      ")
    return lines


def _injected_fault(diagnosis: Diagnosis, width: int) -> list[str]:
    """Whether the injected fault was found."""
    if diagnosis.named:
        found = "it is the edit found" if len(diagnosis.explanations) == 1 else "it is one of these edits"
        return wrap(f"{diagnosis.made} was injected into the kernel: {found}", width, f"{GOOD} ")
    return wrap(f"{diagnosis.made} was injected into the kernel: it is not found", width, f"{BAD} ")


def _outcome(found: Examination, width: int) -> list[str]:
    """How the run ended, and how such a run can end in the model."""
    if found.outcome is None or not (found.possible or (found.diagnosis and found.diagnosis.made)):
        return []
    ended = {
        LaunchOutcome.RIGHT: "it finished with correct data in every tile: only the records show the fault",
        LaunchOutcome.WRONG_DATA: "it finished with wrong data",
        LaunchOutcome.HANG: "it hung",
        LaunchOutcome.TRAP: "it trapped",
    }[found.outcome]
    if found.diagnosis is not None and not found.diagnosis.manifest:
        return []
    parts = [ended]
    if found.possible:
        *most, last = (outcome.value for outcome in found.possible)
        ends = f"{', '.join(most)} or {last}" if most else last
        parts.append(f"in the model a kernel with this edit {ends}")
    return wrap_parts(parts, width, "  ")


def barrier_lines(barriers: Sequence[RebuiltBarrier], width: int, phase: str = "phase") -> list[str]:
    """Barriers with a waiting agent, in mid-phase, or read differently from rebuilt; the others are counted.

    ``phase``: what heads the column of the phases.
    """
    telling = [b for b in barriers if b.waiting or b.pending != b.count or b.tx or b.agrees is False]
    rows: list[tuple[str, ...]] = [("barrier", phase, "arrivals", "bytes missing")]
    agents = ["waiting for it"]
    for b in telling[:MOST_BARRIERS]:
        rows.append((b.name, number(b.phase), f"{number(b.count - b.pending)} of {number(b.count)}", _in_flight(b)))
        agents.append(", ".join(b.waiting) or NONE)
    lines = _event_table(rows, agents, width) if telling else []
    rest = len(barriers) - len(telling[:MOST_BARRIERS])
    if rest:
        noun = "barrier is" if rest == 1 else "barriers are"
        others = "" if not telling else " other"
        lines += wrap(f"{number(rest)}{others} {noun} between two phases, with no agent waiting", width, "  ")
    return lines


def _event_table(rows: list[tuple[str, ...]], agents: list[str], width: int) -> list[str]:
    """``rows`` as a table with names of agents as its last column, which take as many lines as they need.

    Where there is no room beside the table they are below it, with the name of their row.
    """
    table = columns(rows, 1, width)
    wide = max(map(cell_len, table)) + 2
    if len(table) > len(rows) or width - wide < LEAST_AGENTS:
        below = (wrap(f"{row[0]}: {who}", width, "    ", "      ") for row, who in zip(rows, agents, strict=True))
        return [*table, *(line for lines in below for line in lines)]
    pairs = zip(table, agents, strict=True)
    return [line for row, who in pairs for line in wrap(who, width, pad(row, wide), " " * wide)]


def _in_flight(b: RebuiltBarrier) -> str:
    """``16,384``, or ``16,384 in flight`` of a copy still in flight when a trap ended the launch."""
    if not b.tx:
        return NONE
    if not b.in_flight:
        return number(b.tx)
    flying = "in flight" if b.in_flight == b.tx else f"({number(b.in_flight)} in flight)"
    return f"{number(b.tx)} {flying}"


def _words(autopsy: Autopsy, width: int) -> list[str]:
    """Whether the words read after ``mbarrier.inval`` say the same."""
    if autopsy.agree is None:
        return []
    if autopsy.agree:
        return wrap("the barrier words read afterwards agree", width, f"{GOOD} ")
    wrong = [b for b in autopsy.barriers if b.agrees is False]
    lines = wrap(f"the barrier words read afterwards differ for {count(len(wrong), 'barrier')}", width, f"{BAD} ")
    for b in wrong[:MOST_BARRIERS]:
        lines += wrap(_difference(b), width, "    ", "      ")
    return lines


def _difference(b: RebuiltBarrier) -> str:
    assert b.read is not None
    rebuilt = BarrierWord(b.count, b.pending, b.tx, b.phase & 1)
    return f"{b.name}: rebuilt {word_words(rebuilt)}; read {word_words(b.read)}"
