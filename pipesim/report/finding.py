"""Findings in words: who waits for what and who could have sent it, faults, and a budget that ran out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from pipesim.model.finding import Advisory, Blocked, Deadlock, FaultReport, Finding, Supplier
from pipesim.report.console import BAD, UNSURE, paint, width_of
from pipesim.report.layout import field, wrap, wrap_parts
from pipesim.report.words import count, number, place

MOST_BLOCKED = 8
MOST_SUPPLIERS = 4
MOST_FAULTS = 8
DEFAULT_WIDTH = 80


def paint_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Write every finding, deadlocks first; with none, one line that says so."""
    paint(console, finding_lines(findings, width_of(console)))


def finding_lines(findings: Sequence[Finding], width: int = DEFAULT_WIDTH) -> list[str]:
    """Each deadlock under its headline, then all faults together."""
    lines: list[str] = []
    for finding in findings:
        if isinstance(finding, Deadlock):
            lines += [*([""] if lines else []), *headline(finding, width), "", *deadlock_lines(finding, width)]
    faults = [f for f in findings if isinstance(f, FaultReport)]
    if faults:
        lines += [*([""] if lines else []), *fault_lines(faults, width)]
    return lines or ["✓ no finding"]


def headline(deadlock: Deadlock, width: int = DEFAULT_WIDTH) -> list[str]:
    """``✗ deadlock · 2 of 3 agents wait for ever · finished: load``."""
    return wrap_parts(["deadlock", *who_waits(deadlock)], width, f"{BAD} ")


def who_waits(deadlock: Deadlock) -> list[str]:
    """``2 of 3 agents wait for ever`` and ``finished: load``, to be joined by dots."""
    waiting, done = len(deadlock.blocked), len(deadlock.finished)
    wait = "waits" if waiting == 1 else "wait"
    return [f"{waiting} of {count(waiting + done, 'agent')} {wait} for ever", f"finished: {_names(deadlock.finished)}"]


def deadlock_lines(deadlock: Deadlock, width: int = DEFAULT_WIDTH) -> list[str]:
    """Each blocked agent with what it misses and who could send it, then the ring in which they wait."""
    lines: list[str] = []
    for blocked in deadlock.blocked[:MOST_BLOCKED]:
        lines += wrap(_waits(blocked), width, "  ", "      ")
        lines += _suppliers(blocked, width)
    rest = len(deadlock.blocked) - MOST_BLOCKED
    if rest > 0:
        lines.append(f"  and {count(rest, 'more agent')}")
    if deadlock.cycle:
        ring = " → ".join((*deadlock.cycle, deadlock.cycle[0]))
        lines += ["", *wrap(f"they wait in a ring: {ring}", width, "  ", "    ")]
    return lines


def fault_lines(faults: Sequence[FaultReport], width: int = DEFAULT_WIDTH) -> list[str]:
    """Every broken rule: the rule and what the chip does then, who broke it with which operation, where, the claim."""
    lines = [f"{BAD} {count(len(faults), 'fault')}"]
    for fault in faults[:MOST_FAULTS]:
        chip = "the chip stops the launch there" if fault.kind.traps else "the chip goes on"
        lines += ["", *wrap_parts([fault.kind.value, chip], width, "  ")]
        where = f" ({place(fault.line)})" if fault.line else ""
        lines += wrap(f"{fault.agent}: {fault.operation}{where}", width, "    ", "      ")
        if fault.claim and fault.claim != fault.kind.value:
            lines += wrap(fault.claim, width, "    ", "      ")
        if fault.correction:
            lines += wrap(f"likely correction: {fault.correction}", width, "    ", "      ")
    if len(faults) > MOST_FAULTS:
        lines += ["", f"  and {count(len(faults) - MOST_FAULTS, 'more fault')}"]
    return lines


def advisory_lines(advisories: Sequence[Advisory], width: int = DEFAULT_WIDTH) -> list[str]:
    """What another schedule would show, each as a field of its own."""
    return [line for a in advisories for line in field("note", [f"{a.claim} ({place(a.line)})"], width)]


def budget_lines(steps: int, width: int = DEFAULT_WIDTH) -> list[str]:
    """A simulation that was cut off: nothing is known about what would have followed."""
    claim = f"unknown: the budget of {count(steps, 'step')} ran out before the program ended"
    return wrap(claim, width, f"{UNSURE} ")


def _waits(blocked: Blocked) -> str:
    """``mma/1 waits for phase 1 of full[0] (parity 1, now in phase 1): it has 0 of 1 arrivals ...``."""
    where = f" ({place(blocked.line)})" if blocked.line else ""
    unit = _unit(blocked)
    if unit:
        arrived = f"{number(blocked.count - blocked.arrivals_missing)} of {count(blocked.count, unit)} arrived"
        return f"{blocked.agent} waits for {blocked.barrier}: {arrived}{where}"
    parity = f"parity {blocked.parity}, " if blocked.parity >= 0 else ""  # a wait by state names none
    return (
        f"{blocked.agent} waits for phase {number(blocked.phase_wanted)} of {blocked.barrier} "
        f"({parity}now in phase {number(blocked.phase_now)}): {_missing(blocked)}{where}"
    )


def _unit(blocked: Blocked) -> str:
    """What a barrier that is no mbarrier counts; "" for an mbarrier, which has phases, arrivals and bytes."""
    if blocked.barrier.startswith("named barrier "):
        return "thread"
    return "agent" if blocked.barrier == "the cluster barrier" else ""


def _missing(blocked: Blocked) -> str:
    has = f"it has {number(blocked.count - blocked.arrivals_missing)} of {number(blocked.count)} arrivals"
    if blocked.bytes_missing > 0:
        missing, flying = blocked.bytes_missing, blocked.bytes_in_flight
        if flying >= missing:
            return f"{has}, and {count(missing, 'byte')} are in flight"
        part = f", of which {number(flying)} are in flight" if flying else ""
        return f"{has} and misses {count(missing, 'byte')}{part}"
    if blocked.bytes_missing < 0:
        return f"{has}, and {count(-blocked.bytes_missing, 'byte')} more landed than were expected"
    return has


def _suppliers(blocked: Blocked, width: int) -> list[str]:
    if not blocked.suppliers and not blocked.arrivals_missing and 0 < blocked.bytes_missing <= blocked.bytes_in_flight:
        return []  # all that is missing is under way
    if not blocked.suppliers:
        return wrap("no operation of the program could send what is missing", width, "    ", "      ")
    lines: list[str] = []
    for supplier in blocked.suppliers[:MOST_SUPPLIERS]:
        lines += wrap(_supplier(supplier, blocked), width, "    ", "      ")
    rest = len(blocked.suppliers) - MOST_SUPPLIERS
    return lines + [f"    and {count(rest, 'more agent')} that could send it"] * (rest > 0)


def _supplier(supplier: Supplier, blocked: Blocked) -> str:
    who, what = supplier.agent, supplier.supplies or "arrival"
    if supplier.next_line:
        would = f"{who} would send the {what} next ({place(supplier.next_line)})"
        if who == blocked.agent:
            return f"{who} itself would send the {what} next ({place(supplier.next_line)}), but only after this wait"
        return f"{would}, but waits for {supplier.waits_for}" if supplier.waits_for else would
    if not supplier.last_line:
        return f"{who} never sends there"
    which = "its arrival number" if _unit(blocked) else "for tile"
    which = f"{which} {number(supplier.last_iteration + (1 if _unit(blocked) else 0))}"
    last = f"its last on {blocked.barrier} is {which} ({place(supplier.last_line)})"
    return f"the missing {what} would be {who}'s: {last}, none follows"


def _names(agents: Sequence[str]) -> str:
    shown = ", ".join(agents[:MOST_BLOCKED]) or "none"
    return shown + (f" and {len(agents) - MOST_BLOCKED} more" if len(agents) > MOST_BLOCKED else "")
