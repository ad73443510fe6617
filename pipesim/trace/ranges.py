"""The ranges of what a trace's description says: numbers, names, tables, and what ``extra`` is read for.

One rule each: numbers and texts are listed with their fields, so that an error names the field at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from reprlib import repr as brief

from pipesim.bounds import (
    MAX_BARRIERS,
    MAX_COUNT_OPERAND,
    MAX_GRID,
    MAX_KHZ,
    MAX_PARAMETER,
    MAX_SITES,
    MAX_SMS,
    MAX_TABLE,
    MAX_TRACE_AGENTS,
    MAX_TRACE_CYCLE,
    MAX_TRACE_TIME,
    MAX_TRACE_VALUE,
    MAX_WARP,
)
from pipesim.names import shown, wrong_identifier, wrong_name, wrong_text
from pipesim.trace.schema import CtaInfo, Run, TraceMeta

Ranged = tuple[str, int, int, int]  #: field, value, least and largest value

#: The largest record of a recorder has 16 bytes; a step of the global timer is a microsecond.
_MAX_RECORD, _MAX_STEP_NS = 1 << 10, 10**9


def out_of_range(meta: TraceMeta) -> str:
    """The first thing in a description that is out of range, "" if nothing is."""
    return _wrong_table(meta) or _wrong_text(meta) or _wrong_number(meta) or _wrong_extra(meta.extra)


def _wrong_table(meta: TraceMeta) -> str:
    stages = sum(group.stages for group in meta.barriers)
    for name, size, most in (
        ("agents", len(meta.agents), MAX_TRACE_AGENTS),
        ("barrier groups", len(meta.barriers), MAX_BARRIERS),
        ("barriers", stages, MAX_BARRIERS),
        ("sites", len(meta.sites), MAX_SITES),
        ("parameters", len(meta.params), MAX_TABLE),
        ("headers of CTAs", len(meta.ctas), MAX_TABLE),
        ("launches", len(meta.runs), MAX_TABLE),
    ):
        if size > most:
            return f"the trace has {size:,} {name}; at most {most:,} are possible"
    agents = [(agent.role, agent.index) for agent in meta.agents]
    for role, index in agents:
        if len(agents) > len(set(agents)) and agents.count((role, index)) > 1:
            return f"two agents of the trace are number {index} of role {role}"
    return ""


def _wrong_text(meta: TraceMeta) -> str:
    for rule, texts in ((wrong_name, _names(meta)), (wrong_identifier, _identifiers(meta)), (wrong_text, _texts(meta))):
        for field, text in texts:
            wrong = rule(text)
            if wrong:
                return f"field {field} of the trace's metadata is {shown(text)}: {wrong}"
    return ""


def _names(meta: TraceMeta) -> Iterator[tuple[str, str]]:
    yield "protocol", meta.protocol
    yield from ((f"agents[{i}].role", agent.role) for i, agent in enumerate(meta.agents))
    yield from ((f"barriers[{i}].name", group.name) for i, group in enumerate(meta.barriers))
    yield from ((f"sites[{i}].name", site.name) for i, site in enumerate(meta.sites))
    yield from ((f"extra.outputs.{brief(name)}", name) for name in _mapping(meta.extra.get("outputs")))
    yield from ((f"extra.wrong_outputs.{brief(name)}", name) for name in _mapping(meta.extra.get("wrong_outputs")))


def _identifiers(meta: TraceMeta) -> Iterator[tuple[str, str]]:
    yield from (("params", name) for name in meta.params)


def _texts(meta: TraceMeta) -> Iterator[tuple[str, str]]:
    device = meta.device
    for field in ("name", "capability", "driver", "nvrtc"):
        yield f"device.{field}", getattr(device, field)
    for field in ("kernel_hash", "recorded_at", "fault"):
        yield field, getattr(meta, field)
    yield from ((f"options[{i}]", option) for i, option in enumerate(meta.options))


def _wrong_number(meta: TraceMeta) -> str:
    for field, value, low, high in _numbers(meta):
        if not low <= value <= high:
            return f"field {field} of the trace's metadata is {value:,}; {low:,} to {high:,} are possible"
    return ""


def _numbers(meta: TraceMeta) -> Iterator[Ranged]:
    yield "grid", meta.grid, 1, MAX_GRID
    yield "wrong_tiles", meta.wrong_tiles, 0, MAX_TRACE_VALUE
    yield "record_bytes", meta.record_bytes, 0, _MAX_RECORD
    yield "device.sms", meta.device.sms, 0, MAX_SMS
    yield "device.sm_khz", meta.device.sm_khz, 0, MAX_KHZ
    yield "device.globaltimer_step_ns", meta.device.globaltimer_step_ns, 0, _MAX_STEP_NS
    yield from ((f"params.{name}", value, -MAX_PARAMETER, MAX_PARAMETER) for name, value in meta.params.items())
    yield from ((f"window[{i}]", value, 0, MAX_TRACE_VALUE) for i, value in enumerate(meta.window))
    for i, agent in enumerate(meta.agents):
        yield f"agents[{i}].index", agent.index, 0, MAX_TRACE_AGENTS
        yield f"agents[{i}].warp", agent.warp, 0, MAX_WARP
    for i, group in enumerate(meta.barriers):
        yield f"barriers[{i}].stages", group.stages, 1, MAX_BARRIERS
        yield f"barriers[{i}].count", group.count, -MAX_COUNT_OPERAND, MAX_COUNT_OPERAND
    for i, header in enumerate(meta.ctas):
        yield from _of_cta(f"ctas[{i}]", header)
    for i, run in enumerate(meta.runs):
        yield from _of_run(f"runs[{i}]", run)


def _of_cta(field: str, header: CtaInfo) -> Iterator[Ranged]:
    yield f"{field}.sm", header.sm, 0, MAX_SMS
    for name in ("written", "dropped", "passes"):
        yield from ((f"{field}.{name}[{i}]", n, 0, MAX_TRACE_VALUE) for i, n in enumerate(getattr(header, name)))
    for i, anchor in enumerate(header.anchors):
        yield f"{field}.anchors[{i}].globaltimer_ns", anchor.globaltimer_ns, -MAX_TRACE_TIME, MAX_TRACE_TIME
        yield f"{field}.anchors[{i}].cycle", anchor.cycle, -MAX_TRACE_CYCLE, MAX_TRACE_CYCLE
        yield f"{field}.anchors[{i}].error_ps", anchor.error_ps, 0, MAX_TRACE_TIME


def _of_run(field: str, run: Run) -> Iterator[Ranged]:
    yield f"{field}.repetition", run.repetition, 0, MAX_TRACE_VALUE
    yield from ((f"{field}.cycles[{i}]", n, 0, MAX_TRACE_CYCLE) for i, n in enumerate(run.cycles))
    periods = enumerate(run.period_millicycles)
    yield from ((f"{field}.period_millicycles[{i}]", n, 0, MAX_TRACE_TIME) for i, n in periods)


# extra: free, but for what reports and comparisons read


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_TRACE_VALUE


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
    return type(value) in (int, float) and abs(value) <= MAX_TRACE_VALUE  # type: ignore[arg-type]  # it is a number


def _all_of(value: object, rule: Callable[[object], bool]) -> bool:
    return isinstance(value, dict) and all(map(rule, value.values()))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _wrong_extra(extra: Mapping[str, object]) -> str:
    for name, (words, rule) in _EXTRA.items():
        if name in extra and not rule(extra[name]):
            return f"field extra.{name} of the trace's metadata is {brief(extra[name])}, not {words}"
    return ""
