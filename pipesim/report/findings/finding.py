"""Findings in words: who waits for what and who could have sent it, faults, and a budget that ran out."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pipesim.explain.blocked_agents import REGISTERS
from pipesim.model.finding import Advisory, BlockedAgent, Deadlock, FaultReport, Finding, LedPast, OneSided, Supplier
from pipesim.process.limits import Limit
from pipesim.report.text.console import BAD, UNSURE
from pipesim.report.text.layout import field, wrap, wrap_parts
from pipesim.report.text.source import with_source
from pipesim.report.text.words import count, listed, number, ordinal, place

MOST_BLOCKED = 8
MOST_SUPPLIERS = 4
MOST_FAULTS = 8
MOST_NOTES = 3  #: of one kind
DEFAULT_WIDTH = 80
_SAME = re.compile(r"(\S+) == \1")  # what is written otherwise in the source, with the value of a constant


_T = TypeVar("_T")


def finding_lines(findings: Sequence[Finding], width: int = DEFAULT_WIDTH, sure: Sequence[str] = ()) -> list[str]:
    """Each deadlock under its headline, then all faults together. ``sure``: how sure they are, in a few words."""
    lines: list[str] = []
    for finding in findings:
        if isinstance(finding, Deadlock):
            lines += [*([""] if lines else []), *headline(finding, width), "", *deadlock_lines(finding, width)]
    faults = [f for f in findings if isinstance(f, FaultReport)]
    if faults:
        lines += [*([""] if lines else []), *fault_lines(faults, width)]
    return [*lines, "", *_explain_commands(findings, width, sure)] if lines else ["✓ no finding"]


def _explain_commands(findings: Sequence[Finding], width: int, sure: Sequence[str]) -> list[str]:
    """Where to read what these kinds of findings are: ``certain · see: pipesim explain race``."""
    kinds = dict.fromkeys(f.kind if isinstance(f, Deadlock) else f.kind.name.lower() for f in findings)
    return wrap_parts([*sure, f"see: {', '.join(f'pipesim explain {kind}' for kind in kinds)}"], width, "  ")


def headline(deadlock: Deadlock, width: int = DEFAULT_WIDTH) -> list[str]:
    """``✗ deadlock · 2 of 3 agents wait indefinitely · finished: load``."""
    return wrap_parts(["deadlock", *who_waits(deadlock)], width, f"{BAD} ")


def who_waits(deadlock: Deadlock) -> list[str]:
    """``2 of 3 agents wait indefinitely`` and ``finished: load``, to be joined by dots."""
    waiting, done = len(deadlock.blocked), len(deadlock.finished)
    wait = "waits" if waiting == 1 else "wait"
    return [
        f"{waiting} of {count(waiting + done, 'agent')} {wait} indefinitely",
        f"finished: {_names(deadlock.finished)}",
    ]


def deadlock_lines(deadlock: Deadlock, width: int = DEFAULT_WIDTH) -> list[str]:
    """Each blocked agent with what it misses and who could send it, then the ring in which they wait.

    Agents of a role that wait for the same thing share an entry. The most informative come first: agents that ask for a
    phase that is past, then those whose missing arrival no operation can send.
    """
    lines: list[str] = []
    alike = together((b, b.agent, _blocked_key(b)) for b in sorted(deadlock.blocked, key=_rank))
    for some in alike[:MOST_BLOCKED]:
        names = names_of([b.agent for b in some])
        lines += with_source(_waits(some[0], names, len(some)), some[0].line, width, "  ", "      ")
        lines += _causes(some[0], width)
        lines += _suppliers(some[0], width, cut=deadlock.cut)
    rest = sum(map(len, alike[MOST_BLOCKED:]))
    if rest > 0:
        lines.append(f"  and {count(rest, 'more agent')}")
    for each in deadlock.one_sided:
        lines += ["", *with_source(_one_sided(each), each.line, width, "  ", "    ")]
    for past in deadlock.led_past:
        lines += ["", *with_source(led_past_words(past), past.line, width, "  ", "    ")]
    if deadlock.cycle:
        ring = " → ".join((*deadlock.cycle, deadlock.cycle[0]))
        lines += ["", *wrap(f"circular wait: {ring}", width, "  ", "    ")]
    if deadlock.correction:
        lines += ["", *wrap(f"likely correction: {deadlock.correction}", width, "  ", "    ")]
    return lines


def claim_of(finding: Finding) -> str:
    """What is wrong in one sentence: of a deadlock the wait that says most, and why what it misses does not come."""
    if isinstance(finding, FaultReport):
        return finding.claim
    first = together((b, b.agent, _blocked_key(b)) for b in sorted(finding.blocked, key=_rank))[:1]
    for some in first:
        said = _waits(some[0], names_of([b.agent for b in some]), len(some))
        past = next((led_past_words(each) for each in finding.led_past if each.barrier == some[0].barrier), "")
        why = past or _cause(some[0]) or next(iter(_supplier_words(some[0], cut=finding.cut)), "")
        return f"{said}; {why}" if why else said
    return f"deadlock: {who_waits(finding)[0]}"


def fault_lines(faults: Sequence[FaultReport], width: int = DEFAULT_WIDTH) -> list[str]:
    """Every broken rule: the rule, whether the hardware detects it, the agent and its operation, where, the claim."""
    lines = [f"{BAD} {count(len(faults), 'fault')}"]
    alike = together((f, f.agent, (f.kind, f.line or f.operation)) for f in faults)
    for fault, *others in alike[:MOST_FAULTS]:
        chip = "the hardware traps here" if fault.kind.traps else "not detected by the hardware"
        lines += ["", *wrap_parts([fault.kind.value, chip], width, "  ")]
        lines += with_source(f"{fault.agent}: {fault.operation}", fault.line, width, "    ", "      ")
        claim = fault.claim.removeprefix(f"{fault.agent}: ").removeprefix(fault.kind.value).lstrip(": ")
        if claim:
            lines += wrap(claim, width, "    ", "      ")
        if fault.correction:
            lines += wrap(f"likely correction: {fault.correction}", width, "    ", "      ")
        if others:
            lines.append(f"    and {number(len(others))} more like it")
    rest = sum(map(len, alike[MOST_FAULTS:]))
    if rest:
        lines += ["", f"  and {count(rest, 'more fault')}"]
    return lines


def advisory_lines(advisories: Sequence[Advisory], width: int = DEFAULT_WIDTH) -> list[str]:
    """What another schedule would show, one field each, a few of each kind, and where to read on."""
    lines, kinds = list[str](), Counter[str]()
    for each in advisories:
        kinds[each.kind] += 1
        if not each.kind or kinds[each.kind] <= MOST_NOTES:
            lines += field("note", [each.claim + (f" ({place(each.line)})" if each.line else "")], width)
    more = {kind: n - MOST_NOTES for kind, n in kinds.items() if kind and n > MOST_NOTES}
    lines += [line for kind, n in more.items() for line in field("note", [f"and {n} more: {kind}"], width)]
    kinds.pop("", None)
    return [*lines, *field("see", [f"pipesim explain {kind}" for kind in kinds], width)] if kinds else lines


def budget_lines(steps: int, width: int = DEFAULT_WIDTH, cut: Limit | None = None) -> list[str]:
    """A simulation that ran out of its budget, or was ended by a limit: what would have followed is unknown."""
    claim = f"unknown: the budget of {count(steps, 'step')} ran out before the program ended"
    if cut is not None:
        claim = f"unknown: the {cut.value} was reached after {count(steps, 'step')}, before the program ended"
    return wrap(claim, width, f"{UNSURE} ")


def names_of(agents: Sequence[str]) -> str:
    """Agents of one role as one name: ``mma``, ``mma/0 and mma/1``, ``mma/0 to mma/3 and mma/5``."""
    rows: list[list[str]] = []
    for name in agents:
        if rows and index_of(name) == index_of(rows[-1][-1]) + 1 > 0:
            rows[-1].append(name)
        else:
            rows.append([name])
    said = [part for row in rows for part in (row if len(row) < 3 else [f"{row[0]} to {row[-1]}"])]
    return f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]


def index_of(agent: str) -> int:
    """The number in an agent's name, -1 where its role has one agent only."""
    text = agent.partition("@")[0].rpartition("/")[2]
    return int(text) if text.isdecimal() else -1


def role_of(agent: str) -> tuple[str, str]:
    """The role and the CTA of an agent's name: ``mma/1@0`` is of (mma, 0)."""
    name, _, cta = agent.partition("@")
    role, slash, index = name.rpartition("/")
    return (role if slash and index.isdecimal() else name), cta


def together(named: Iterable[tuple[_T, str, Hashable]]) -> list[list[_T]]:
    """Things of agents, those of one role (of one CTA) with an equal key together; in order of the first of each."""
    found: dict[Hashable, list[_T]] = {}
    for thing, agent, key in named:
        found.setdefault((role_of(agent), key), []).append(thing)
    return list(found.values())


def _rank(blocked: BlockedAgent) -> int:
    """0: asks for a phase that is past; 1: no operation can help, or the count is never reached; 2: the others."""
    if blocked.lapped_by or blocked.missed >= 0:
        return 0
    if blocked.given >= 0:
        return 1
    return 2 if any(s.next_line for s in blocked.suppliers) or blocked.bytes_in_flight else 1


def _blocked_key(blocked: BlockedAgent) -> Hashable:
    """Equal for agents that share an entry; one that would supply itself has its own."""
    return blocked.agent if any(s.agent == blocked.agent for s in blocked.suppliers) else replace(blocked, agent="")


def _causes(blocked: BlockedAgent, width: int) -> list[str]:
    said = _cause(blocked)
    counts = (
        blocked.given >= 0 and blocked.count_line != blocked.line and not (blocked.lapped_by and not blocked.counted)
    )
    return with_source(said, blocked.count_line if counts else "", width, "    ", "      ") if said else []


def _cause(blocked: BlockedAgent) -> str:
    """Why what is missing never comes, "" where that is not known."""
    if blocked.lapped_by and not blocked.counted:
        role = role_of(blocked.agent)[0]
        return f"no other agent waits for {role}: in its loop it arrives on nothing that they wait for"
    if blocked.given < 0:
        lapped = blocked.counted and (blocked.lapped_by or blocked.missed >= 0)
        took = f"{names_of(blocked.rivals)} took that phase: step past it; or " if blocked.rivals else ""
        return f"{took}there is one arrival too many, or the arriving agent did not wait for it" if lapped else ""
    if _unit(blocked) == "thread":
        return f"only {count(blocked.given, 'thread')} ever come there, but {number(blocked.count)} are expected"
    made = count(blocked.given, "arrival")
    return f"the program makes {made} per phase, but the count is {number(blocked.count)}"


def _one_sided(each: OneSided) -> str:
    """``math/0 arrives on empty 9 times, math/1 to math/3 never``."""
    said: list[str] = []
    for times, agents in each.tallies:
        does = "arrives" if len(agents) == 1 else "arrive"
        often = "never" if not times else "once" if times == 1 else f"{number(times)} times"
        said.append(f"{names_of(agents)} {often}" if said else f"{names_of(agents)} {does} on {each.barrier} {often}")
    return f"agents of one role do not all do the same: {', '.join(said)}"


def led_past_words(past: LedPast) -> str:
    """``compute/1 did not arrive on empty[1]: a branch led it past the arrive (k.cu:60), since 512 >= 476``."""
    did = {"arrive": "arrive on", "copy": "copy to", "sync": "reach"}[past.does]
    told = (each for each in past.because.split(" and ") if not _SAME.fullmatch(each))
    because = f", since {said}" if (said := " and ".join(told)) else ""
    if past.condition:
        numbers = f" ({said})" if said else ""
        because = f", since `{past.condition}` was {str(past.outcome).lower()}{numbers}"
    went = f"led it past its {past.does}" if not past.ends else f"ended its way to the {past.does}"
    when = f", the {ordinal(past.nth)} time it came there" if past.nth > 1 else ""
    if past.values:
        when = f" at {listed([f'{name} = {number(value)}' for name, value in past.values])}"
    return f"{past.agent} did not {did} {past.barrier}: this branch {went} ({place(past.past)}){because}{when}"


def _missed_phase(blocked: BlockedAgent, names: str, agents: int) -> str:
    """``b was lapped on b[0]: it asks for phase 0, but a had completed phases 0 and 1 before it looked ...``."""
    low, high = max(blocked.missed, 0), blocked.phase_now - 1
    between = "" if high == low else f" {'and' if high == low + 1 else 'to'} {number(high)}"
    phases = f"phase{'s' if between else ''} {number(low)}{between}"
    asked = f"phase {number(low)}" if blocked.missed >= 0 else "the phase before the first"
    was, it, ask, wait = ("was", "it", "asks", "waits") if agents == 1 else ("were", "they", "ask", "wait")
    done = f"{names_of(blocked.lapped_by)} had completed {phases}" if blocked.lapped_by else f"{phases} were complete"
    return (
        f"{names} {was} lapped on {blocked.barrier}: {it} {ask} for {asked}, but {done} before {it} looked. "
        f"{it.capitalize()} now {wait} for phase {number(blocked.phase_wanted)}"
    )


def _waits(blocked: BlockedAgent, names: str, agents: int) -> str:
    """``mma/1 waits for phase 1 of full[0] (parity 1, now in phase 1): it has 0 of 1 arrivals ...``."""
    wait = "waits" if agents == 1 else "wait"
    if blocked.missed >= 0 or blocked.lapped_by:
        return _missed_phase(blocked, names, agents)
    unit = _unit(blocked)
    if unit == "register":
        free = number(blocked.count - blocked.arrivals_missing)
        return f"{names} {wait} for {number(blocked.count)} {blocked.barrier}: {free} are free"
    if unit:
        arrived = f"{number(blocked.count - blocked.arrivals_missing)} of {count(blocked.count, unit)} arrived"
        return f"{names} {wait} for {blocked.barrier}: {arrived}"
    if is_alone(blocked):
        return f"{names} {wait} for {blocked.barrier}"
    if blocked.phase_now < 0:  # of a kernel that was stopped: its word has the parity alone
        asked = f" to complete its phase of parity {blocked.parity}" if blocked.parity >= 0 else ""
        return f"{names} {wait} for {blocked.barrier}{asked}: {_missing_arrivals(blocked)}"
    parity = f"parity {blocked.parity}, " if blocked.parity >= 0 else ""  # a wait by state names none
    return (
        f"{names} {wait} for phase {number(blocked.phase_wanted)} of {blocked.barrier} "
        f"({parity}now in phase {number(blocked.phase_now)}): {_missing_arrivals(blocked)}"
    )


def is_alone(blocked: BlockedAgent) -> bool:
    """Whether what it waits for is not a barrier, so that nothing counts what is missing."""
    return not blocked.count and blocked.phase_now < 0


def _unit(blocked: BlockedAgent) -> str:
    """What a barrier that is not an mbarrier counts; "" for an mbarrier, which has phases, arrivals and bytes."""
    if blocked.barrier.startswith(("named barrier ", "the lanes of warp ")):
        return "thread"
    if blocked.barrier == REGISTERS:
        return "register"
    return "agent" if blocked.barrier == "the cluster barrier" else ""


def _missing_arrivals(blocked: BlockedAgent) -> str:
    has = f"it has {number(blocked.count - blocked.arrivals_missing)} of {number(blocked.count)} arrivals"
    if blocked.bytes_missing > 0:
        missing, flying = blocked.bytes_missing, blocked.bytes_in_flight
        if flying >= missing:
            return f"{has}; {count(missing, 'byte')} in flight"
        part = f", of which {number(flying)} in flight" if flying else ""
        return f"{has}; {count(missing, 'byte')} missing{part}"
    if blocked.bytes_missing < 0:
        return f"{has}; {count(-blocked.bytes_missing, 'byte')} more landed than expected"
    return has


def _suppliers(blocked: BlockedAgent, width: int, *, cut: bool) -> list[str]:
    return [line for told in _supplier_words(blocked, cut=cut) for line in wrap(told, width, "    ", "      ")]


def _supplier_words(blocked: BlockedAgent, *, cut: bool) -> list[str]:
    """Who could send what is missing, and why it does not; then how many more."""
    if (is_alone(blocked) and not blocked.suppliers) or blocked.missed >= 0 or blocked.lapped_by:
        return []  # what would complete a later phase is not what is wrong
    if not blocked.suppliers and not blocked.arrivals_missing and 0 < blocked.bytes_missing <= blocked.bytes_in_flight:
        return []  # all that is missing is in flight
    if not blocked.suppliers:
        none = "nothing that was read sends what is missing; what warps do after the waits shown here was not read"
        return [none if cut else "no operation of the program could send what is missing"]
    alike = together((s, s.agent, _supplier_key(s, blocked)) for s in blocked.suppliers)
    said = [
        _supplier(some[0], blocked, names_of([s.agent for s in some]), len(some), cut=cut)
        for some in alike[:MOST_SUPPLIERS]
    ]
    rest = sum(map(len, alike[MOST_SUPPLIERS:]))
    return said + [f"and {count(rest, 'more agent')} that could send it"] * (rest > 0)


def _supplier_key(supplier: Supplier, blocked: BlockedAgent) -> Hashable:
    return supplier.agent if supplier.agent == blocked.agent else replace(supplier, agent="")


def _supplier(supplier: Supplier, blocked: BlockedAgent, who: str, agents: int, *, cut: bool) -> str:
    what = supplier.supplies or "arrival"
    if blocked.barrier == REGISTERS:
        return _gives_back(supplier, who, agents)
    if supplier.next_line:
        does = "store it" if what == "store" else f"send the {what}"
        would = f"{who} {'would' if supplier.sure else 'could'} {does} next ({place(supplier.next_line)})"
        if who == blocked.agent:
            return f"{who} itself would send the {what} next ({place(supplier.next_line)}), but only after this wait"
        wait = "waits" if agents == 1 else "wait"
        return f"{would}, but {wait} for {supplier.waits_for}" if supplier.waits_for else would
    if not supplier.last_line:
        return f"{who} never {'sends' if agents == 1 else 'send'} one to this barrier"
    whose = "its" if agents == 1 else "their"
    was = "were" if what == "bytes" else "was"
    where = supplier.last_barrier or blocked.barrier
    which = _which(supplier, blocked) if supplier.last_iteration >= 0 else "earlier"
    last = f"{whose} last {what} on {where} {was} {which} ({place(supplier.last_line)})"
    if cut and supplier.waits_for:
        return f"{who} could send it, but {last}; what follows {whose} wait for {supplier.waits_for} was not read"
    return f"{who} could send it, but {last}; no further one follows"


def _gives_back(supplier: Supplier, who: str, agents: int) -> str:
    """What a warp has given back of its registers, or would."""
    wait = "waits" if agents == 1 else "wait"
    if supplier.next_line:
        would = f"{who} would give some back next ({place(supplier.next_line)})"
        return f"{would}, but {wait} for {supplier.waits_for}" if supplier.waits_for else would
    has = "has" if agents == 1 else "have"
    return f"{who} {has} given some back ({place(supplier.last_line)}), and no more follow"


def _which(supplier: Supplier, blocked: BlockedAgent) -> str:
    """Which of its operations was the last: by the iteration of its loop, or counted on all barriers of the group."""
    if supplier.last_trip >= 0 and not _unit(blocked):
        trip = number(supplier.last_trip)
        loop = supplier.last_loop  # what the author calls the iterations: each of a loop over ``tiles`` is for a tile
        if loop.endswith("s"):
            return f"for {loop[:-1]} {trip}"
        return f"in iteration {trip} of {loop}" if loop else f"in iteration {trip}"
    nth = ordinal(supplier.last_iteration + 1)
    group, stage, _ = blocked.barrier.partition("[")
    alone = supplier.last_barrier == blocked.barrier or _unit(blocked)
    return f"the {nth} on {group}" if stage and not alone else f"the {nth}"


def _names(agents: Sequence[str]) -> str:
    shown = ", ".join(agents[:MOST_BLOCKED]) or "none"
    return shown + (f" and {len(agents) - MOST_BLOCKED} more" if len(agents) > MOST_BLOCKED else "")
