"""The rules that every trace keeps, checked when a file is written and again when one is read.

They are about the trace itself: vocabulary, indices into tables, ranges, and the counts its headers promise. Whether
the *recorded program* behaved (clocks that run backwards, phases out of order) is for conformance to report.
Numbers and texts are listed with their fields and ranges, so that an error names the field at fault.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from reprlib import repr as brief
from typing import Any, get_args

from pipesim import bounds
from pipesim.inputs import quoted_name, wrong_identifier, wrong_name, wrong_text
from pipesim.model.ending import Ending
from pipesim.model.tables import NAMED_BARRIERS
from pipesim.trace.arrays import np, npt
from pipesim.trace.metadata import hints, refuse
from pipesim.trace.schema import (
    COLUMNS,
    FAULTS,
    ON_GROUPS,
    ON_NAMED_BARRIER,
    SCHEMA_VERSION,
    AgentInfo,
    Anchor,
    BarrierGroup,
    Column,
    CtaInfo,
    Device,
    Events,
    PackedEvents,
    Run,
    Site,
    Trace,
    TraceMeta,
)
from pipesim.trace.sites import ENGINE_NAMES

_VOCABULARY = {
    "source": ("hardware", "simulation"),
    "clock": ("clock", "globaltimer", "both"),
    "status": tuple(Ending),
    "memory": ("", "shared", "device", "host"),
}

#: Named barriers: those of the hardware, then those of bar.warp.sync.
_NAMED = frozenset(map(str, range(NAMED_BARRIERS + bounds.MAX_WARP + 1)))
_LARGEST_WORD = (1 << 64) - 1
#: The least and the largest value of each column but the indices, which :func:`_check_indices` compares with tables.
_RANGES = {
    "stage": (-1, bounds.MAX_BARRIERS - 1),
    "parity": (-1, 1),
    "iteration": (0, bounds.MAX_TRACE_VALUE),
    "value": (0, bounds.MAX_TRACE_VALUE),
    "error_ps": (0, bounds.MAX_TRACE_TIME),
    "cycle": (-bounds.MAX_TRACE_CYCLE, bounds.MAX_TRACE_CYCLE),
    "time_ps": (-bounds.MAX_TRACE_TIME, bounds.MAX_TRACE_TIME),
    "globaltimer_ns": (-bounds.MAX_TRACE_TIME, bounds.MAX_TRACE_TIME),
}


_AT_ONCE = 1 << 18  #: rows that are looked at together


def check_trace(trace: Trace, place: str) -> None:
    """Raise TraceFormatError at the first rule of the schema that this trace breaks; ``place`` is its file."""
    check_meta(trace.meta, place)
    _check_shape(trace, place)
    count, lanes = len(trace.events), Counter[int]()
    for first in range(0, count, _AT_ONCE):
        part = trace.events if count <= _AT_ONCE else trace.events.select(slice(first, first + _AT_ONCE))
        _check_indices(trace.meta, part, first, place)
        _check_ranges(trace.meta, part, first, place)
        numbers, rows = np.unique(part.cta * len(trace.meta.agents) + part.agent, return_counts=True)
        lanes.update(dict(zip(numbers.tolist(), rows.tolist(), strict=True)))
    _check_counts(trace.meta, lanes, place)


def check_meta(meta: TraceMeta, place: str) -> None:
    """Raise TraceFormatError if the description breaks a rule by itself, whatever the events are."""
    if meta.schema != SCHEMA_VERSION:
        refuse(f"the trace says schema version {meta.schema}, its fields are those of {SCHEMA_VERSION}", place)
    for name, words in _VOCABULARY.items():
        if getattr(meta, name) not in words:
            refuse(f"{name} is {brief(getattr(meta, name))}, which is none of {', '.join(words)}", place)
    if meta.grid < 1:
        refuse(f"the launch has {meta.grid} CTAs", place)
    if meta.window and not (len(meta.window) == 2 and 0 <= meta.window[0] < meta.window[1]):
        refuse(f"the window is {brief(meta.window)}, not the first and the end of some iterations", place)
    _check_fault(meta.fault, place)
    wrong = out_of_range(meta)
    if wrong:
        refuse(wrong, place)
    _check_sites(meta, place)
    _check_headers(meta, place)
    for i, run in enumerate(meta.runs):
        if len(run.cycles) != len(run.period_millicycles):
            cycles, periods = len(run.cycles), len(run.period_millicycles)
            refuse(f"runs[{i}] has the cycles of {cycles} CTAs and the periods of {periods}", place)


def _check_fault(fault: str, place: str) -> None:
    kind, _, iteration = fault.partition("@")
    if fault and not (kind in FAULTS and iteration.isascii() and iteration.isdecimal()):
        kinds = ", ".join(FAULTS)
        refuse(f"field fault of the trace's metadata is {brief(fault)}, which is not KIND@ITERATION of {kinds}", place)


def _check_sites(meta: TraceMeta, place: str) -> None:
    groups = [group.name for group in meta.barriers]
    roles = {agent.role for agent in meta.agents}
    if len(set(groups)) != len(groups):
        refuse("two barrier groups have one name", place)
    for site in meta.sites:
        if site.group and site.group not in groups:
            refuse(f"site {site.name} touches barrier group {site.barrier!r}, which is not in the table", place)
        if site.kind in ON_NAMED_BARRIER and site.barrier not in _NAMED:
            refuse(f"site {site.name} is on named barrier {site.barrier!r}; they are numbered 0 to 15", place)
        if site.kind in ON_GROUPS and site.barrier not in ENGINE_NAMES.values():
            refuse(f"site {site.name} is on groups of the engine {site.barrier!r}, which does not exist", place)
        if site.role not in roles:
            refuse(f"site {site.name} belongs to role {site.role!r}, which no agent has", place)


def _check_headers(meta: TraceMeta, place: str) -> None:
    seen: set[int] = set()
    for number, header in enumerate(meta.ctas):
        if not 0 <= header.cta < meta.grid or header.cta in seen:
            refuse(f"there is a header of CTA {header.cta}, twice or outside a launch of {meta.grid} CTAs", place)
        seen.add(header.cta)
        for name, counts in (("written", header.written), ("dropped", header.dropped), ("passes", header.passes)):
            if len(counts) not in {0, len(meta.agents)}:
                refuse(f"CTA {header.cta} has {len(counts)} counts in `{name}` for {len(meta.agents)} agents", place)
        barriers = sum(group.stages for group in meta.barriers)
        field = f"field ctas[{number}].barrier_words"
        if len(header.barrier_words) not in {0, barriers}:
            count = len(header.barrier_words)
            refuse(f"{field} of the trace's metadata has {count} words for {barriers} barriers", place)
        for i, word in enumerate(header.barrier_words):
            if not 0 <= word <= _LARGEST_WORD:
                refuse(f"{field}[{i}] of the trace's metadata is {word}, which is not a 64-bit word", place)


def _check_shape(trace: Trace, place: str) -> None:
    for name in () if isinstance(trace.events, PackedEvents) else COLUMNS:
        column = getattr(trace.events, name)
        if column.dtype != np.int64 or column.shape != (len(trace.events),):
            refuse(f"column {name} is {column.dtype} of shape {column.shape}, not int64 ({len(trace.events)},)", place)


def _check_indices(meta: TraceMeta, events: Events, first: int, place: str) -> None:
    """Of a part of the table that begins with row ``first``."""
    for name, size in (("agent", len(meta.agents)), ("site", len(meta.sites))):
        column: Column = getattr(events, name)
        row = _first((column < 0) | (column >= size))
        if row is not None:
            refuse(f"row {first + row}: {name} {column[row]} is outside the table of {size} {name}s", place)
    row = _first((events.cta < 0) | (events.cta >= meta.grid))
    if row is not None:
        refuse(f"row {first + row}: CTA {events.cta[row]} is outside the launch of {meta.grid} CTAs", place)
    if meta.ctas:
        row = _first(~np.isin(events.cta, np.array([header.cta for header in meta.ctas], dtype=np.int64)))
        if row is not None:
            refuse(f"row {first + row}: CTA {events.cta[row]} has no header", place)
    names = sorted({agent.role for agent in meta.agents})  # every site's role is among them
    agent_roles = np.array([names.index(agent.role) for agent in meta.agents])
    site_roles = np.array([names.index(site.role) for site in meta.sites])
    row = _first(agent_roles[events.agent] != site_roles[events.site])
    if row is not None:
        agent, site = meta.agent_name(int(events.agent[row])), meta.sites[int(events.site[row])]
        refuse(f"row {first + row}: agent {agent} recorded at site {site.name} of role {site.role}", place)


def _check_ranges(meta: TraceMeta, events: Events, first: int, place: str) -> None:
    """The same."""
    for name, (low, high) in _RANGES.items():
        column: Column = getattr(events, name)
        row = _first((column < low) | (column > high))
        if row is not None and column[row] < low:
            refuse(f"row {first + row}: {name} is {column[row]}; the minimum is {low}", place)
        if row is not None:
            refuse(f"row {first + row}: {name} is {column[row]}; the maximum is {high}", place)
    stages = {group.name: group.stages for group in meta.barriers}
    for number, site in enumerate(meta.sites):
        if site.group:
            here = events.site == number
            row = _first(here & ((events.stage < 0) | (events.stage >= stages[site.group])))
            if row is not None:
                fact = f"row {first + row}: stage {events.stage[row]} of barrier group {site.group}, which has "
                refuse(f"{fact}{stages[site.group]} stages", place)


def _check_counts(meta: TraceMeta, rows: Counter[int], place: str) -> None:
    """Compare the rows of each (CTA, agent) with what its header says it wrote."""
    width = len(meta.agents)
    missing, surplus, first = 0, 0, ""
    for header in meta.ctas:
        for agent, written in enumerate(header.written):
            found = rows[header.cta * width + agent]
            missing += max(written - found, 0)
            surplus += max(found - written, 0)
            if found != written and not first:
                first = f"CTA {header.cta}, agent {meta.agent_name(agent)}: {written} written, {found} in the file"
    promised = sum(sum(header.written) for header in meta.ctas)
    if missing:
        also = f" and {surplus} were never written" if surplus else ""
        refuse(f"{missing} of {promised} records are missing{also} ({first})", place, cause="the file was cut short")
    if surplus:
        refuse(f"there are {surplus} records more than were written ({first})", place)


def _first(rows: "npt.NDArray[np.bool_]") -> int | None:
    return int(np.argmax(rows)) if rows.any() else None


#: The least and the largest value of a number, or what says what is wrong with a text.
_Rule = tuple[int, int] | Callable[[str], str]
#: The largest record of a recorder has 16 bytes; a step of the global timer is a microsecond.
_MAX_RECORD, _MAX_STEP_NS = 1 << 10, 10**9
_COUNT = (0, bounds.MAX_TRACE_VALUE)
#: The least and the largest value of each number of a description, by class and field.
_NUMBERS: dict[tuple[type, str], _Rule] = {
    (TraceMeta, "grid"): (1, bounds.MAX_GRID),
    (TraceMeta, "wrong_tiles"): _COUNT,
    (TraceMeta, "record_bytes"): (0, _MAX_RECORD),
    (TraceMeta, "window"): _COUNT,
    (Device, "sms"): (0, bounds.MAX_SMS),
    (Device, "sm_khz"): (0, bounds.MAX_KHZ),
    (Device, "globaltimer_step_ns"): (0, _MAX_STEP_NS),
    (AgentInfo, "index"): (0, bounds.MAX_TRACE_AGENTS),
    (AgentInfo, "warp"): (0, bounds.MAX_WARP),
    (BarrierGroup, "stages"): (1, bounds.MAX_BARRIERS),
    (BarrierGroup, "count"): (-bounds.MAX_COUNT_OPERAND, bounds.MAX_COUNT_OPERAND),
    (CtaInfo, "sm"): (0, bounds.MAX_SMS),
    **{(CtaInfo, name): _COUNT for name in ("written", "dropped", "passes")},
    (Anchor, "globaltimer_ns"): (-bounds.MAX_TRACE_TIME, bounds.MAX_TRACE_TIME),
    (Anchor, "cycle"): (-bounds.MAX_TRACE_CYCLE, bounds.MAX_TRACE_CYCLE),
    (Anchor, "error_ps"): (0, bounds.MAX_TRACE_TIME),
    (Run, "repetition"): _COUNT,
    (Run, "cycles"): (0, bounds.MAX_TRACE_CYCLE),
    (Run, "period_millicycles"): (0, bounds.MAX_TRACE_TIME),
}
#: The rule of each text, which says what is wrong with it.
_TEXTS: dict[tuple[type, str], _Rule] = {
    **dict.fromkeys([(TraceMeta, "protocol"), (AgentInfo, "role"), (BarrierGroup, "name"), (Site, "name")], wrong_name),
    **{(Device, name): wrong_text for name in ("name", "capability", "driver", "nvrtc")},
    **{(TraceMeta, name): wrong_text for name in ("kernel_hash", "recorded_at", "fault", "options")},
}


def out_of_range(meta: TraceMeta) -> str:
    """The first thing in a description that is out of range, "" if nothing is."""
    return _wrong_table(meta) or _wrong_member(meta) or _wrong_extra(meta.extra)


def _wrong_table(meta: TraceMeta) -> str:
    stages = sum(group.stages for group in meta.barriers)
    for name, size, most in (
        ("agents", len(meta.agents), bounds.MAX_TRACE_AGENTS),
        ("barrier groups", len(meta.barriers), bounds.MAX_BARRIERS),
        ("barriers", stages, bounds.MAX_BARRIERS),
        ("sites", len(meta.sites), bounds.MAX_SITES),
        ("parameters", len(meta.params), bounds.MAX_TABLE),
        ("headers of CTAs", len(meta.ctas), bounds.MAX_TABLE),
        ("launches", len(meta.runs), bounds.MAX_TABLE),
    ):
        if size > most:
            return f"the trace has {size:,} {name}; at most {most:,} are possible"
    agents = [(agent.role, agent.index) for agent in meta.agents]
    for role, index in agents:
        if len(agents) > len(set(agents)) and agents.count((role, index)) > 1:
            return f"two agents of the trace are number {index} of role {role}"
    return ""


def _wrong_member(meta: TraceMeta) -> str:
    for rule, path, value in _ruled_members(meta):
        if isinstance(rule, tuple):
            low, high = rule
            if not low <= value <= high:
                return f"field {path} of the trace's metadata is {value:,}; {low:,} to {high:,} are possible"
        elif wrong := rule(value):
            return f"field {path} of the trace's metadata is {quoted_name(value)}: {wrong}"
    return ""


def _ruled_members(meta: TraceMeta) -> Iterator[tuple[_Rule, str, Any]]:
    """Each number and text of a description with what rules it, and its path."""
    yield from _members(meta, "")
    for name, number in meta.params.items():
        yield wrong_identifier, "params", name
        yield (-bounds.MAX_PARAMETER, bounds.MAX_PARAMETER), f"params.{name}", number
    for names in ("outputs", "wrong_outputs"):
        given = meta.extra.get(names)
        yield from ((wrong_name, f"extra.{names}.{brief(n)}", n) for n in (given if isinstance(given, dict) else ()))


def _members(part: Any, path: str) -> Iterator[tuple[_Rule, str, Any]]:
    """What rules each member of a dataclass and of those in it, its path and its value, one by one in a list."""
    kind: Any = type(part)
    for name, rule in _rules(kind):
        value = getattr(part, name)
        several = isinstance(value, tuple | list)
        for at, each in enumerate(value) if several else ((0, value),):
            here = f"{path}{name}[{at}]" if several else f"{path}{name}"
            if rule is None:
                yield from _members(each, f"{here}.")
            else:
                yield rule, here, each


@cache
def _rules(kind: type) -> tuple[tuple[str, _Rule | None], ...]:
    """The fields of a class that have a rule, and those with None whose own fields may have one."""
    found = ((name, hint, _NUMBERS.get((kind, name)) or _TEXTS.get((kind, name))) for name, hint in hints(kind).items())
    return tuple((name, rule) for name, hint, rule in found if rule or any(map(is_dataclass, (hint, *get_args(hint)))))


# extra: free, but for what reports and comparisons read


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= bounds.MAX_TRACE_VALUE


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_count, value))


def _are_hashes(value: object) -> bool:
    """Digests of an output, one or more."""
    return isinstance(value, list) and bool(value) and all(isinstance(h, str) and not wrong_name(h) for h in value)


_EXTRA: dict[str, tuple[str, Callable[[object], bool]]] = {
    "order_error_cycles": ("a number of cycles", _is_count),
    "recording": ("true or false", lambda value: isinstance(value, bool)),
    "launch_ns": ("an object of lists of nanoseconds", lambda value: _all_of(value, _are_counts)),
    "outputs": ("an object of lists of digests", lambda value: _all_of(value, _are_hashes)),
    "wrong_outputs": ("an object of numbers of elements", lambda value: _all_of(value, _is_count)),
    "cost_millicycles_per_record": ("an object of numbers", lambda value: _all_of(value, _is_small)),
}


def _is_small(value: object) -> bool:
    return type(value) in (int, float) and abs(value) <= bounds.MAX_TRACE_VALUE  # type: ignore[arg-type]  # it is a number


def _all_of(value: object, rule: Callable[[object], bool]) -> bool:
    return isinstance(value, dict) and all(map(rule, value.values()))


def _wrong_extra(extra: Mapping[str, object]) -> str:
    for name, (words, rule) in _EXTRA.items():
        if name in extra and not rule(extra[name]):
            return f"field extra.{name} of the trace's metadata is {brief(extra[name])}, not {words}"
    return ""
