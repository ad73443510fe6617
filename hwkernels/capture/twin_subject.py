"""A twin as the subject of a capture: its builds, its checks and what it requires of memory. Needs no GPU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from hwkernels.capture.request import Builds, CaptureRequest, Needs, Outcome, require_between
from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.device.launch import Shape
from hwkernels.records.encodings import Encoding
from hwkernels.source_recorder.counts import buffer_records, least_capacity
from hwkernels.source_recorder.decode import DecodeContext
from hwkernels.source_recorder.description import Stream, can_skip_waits_only, is_static, most_words, streams
from hwkernels.source_recorder.layout import MAX_BARRIERS, MAX_REPORTED_AGENTS, mark
from hwkernels.source_recorder.measure import busiest_role, cost_of_record, overhead
from hwkernels.source_recorder.record_format import CLOCKS, MEMORIES
from hwkernels.source_recorder.table import Table
from hwkernels.twins import REGISTRY, find_twin
from hwkernels.twins.buffers import Argument
from hwkernels.twins.fault import parse_fault
from hwkernels.twins.twin import NEVER, Loop, Twin
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.model.program import Program
from pipesim.model.steady import PeriodMarks, period_marks
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.schema import TraceMeta
from pipesim.trace.sites import site_table

_DEADLINE_MS = 2000  # the kernel counts nanoseconds in 31 bits
_PATIENCE = 4  #: nanoseconds of a deadline for each cycle of work: a cycle takes about half of one
_DESCRIBED_RECORDS = 1 << 17  # of an agent: a program of more takes long to build
_DESCRIBED_BYTES = 1 << 30  # in device memory
_OVERTIME_S = 5.0  # above the kernel's own deadline, after which it is taken for hung in spite of its bounds


@dataclass(frozen=True)
class TwinSubject:
    """A kernel of the registry. ``grid``: its CTAs, or clusters where the protocol has them."""

    name: str
    grid: int = 1

    bounded = True

    @property
    def twin(self) -> Twin:
        """Its description. UsageError if there is none."""
        return find_twin(self.name)

    @property
    def protocol(self) -> str:
        """The protocol of the same name."""
        return self.name

    def shape(self, params: Mapping[str, int]) -> Shape:
        """The launch, without room for records."""
        return self.twin.shape(params, self.grid)

    def check(self, request: CaptureRequest) -> None:
        """Raise ParameterError for a value that the kernel cannot run with, UsageError for what it does not have."""
        twin = self.twin
        require_between(("grid", self.grid, 1, 65535), ("deadline_ms", request.deadline_ms, 1, _DEADLINE_MS))
        twin.check(request.params, self.grid)
        cycles = twin.work(request.params)
        if request.deadline_ms * 1_000_000 < _PATIENCE * cycles:
            raise ParameterError(
                f"a deadline of {request.deadline_ms} ms is too short for {cycles:,} cycles of work a tile",
                cause="a slow wait would be reported as a hang",
                correction=f"give at least {-(-_PATIENCE * cycles // 1_000_000)} ms, or less work",
            )
        asked = {
            "--window": bool(request.window),
            "--fault": request.fault is not None,
            "capacity": request.capacity is not None,
        }
        for feature in (name for name, wanted in asked.items() if wanted and name not in twin.features):
            others = [other.name for other in REGISTRY.values() if feature in other.features]
            raise UsageError(
                f"{feature} has no effect for {self.name}",
                cause=f"only the kernel of {' or '.join(others)} has it",
                correction=f"leave {feature} out",
            )
        require_between(("capacity", request.capacity or 0, 0, 1 << 20))
        if request.fault is not None and twin.faults is not None:
            twin.faults.check(request.fault, request.params)
        if request.window and twin.loop is not None:
            _check_window(request, twin.loop.iterations(request.params))

    def needs(self, request: CaptureRequest) -> Needs:
        """Its needs for memory. ConfigurationError if its table is not the protocol's, or does not fit a report."""
        twin = self.twin
        table, shape = twin.table(request.params), self.shape(request.params)
        if len(table.agents) > MAX_REPORTED_AGENTS or sum(b.stages for b in table.barriers) > MAX_BARRIERS:
            raise ConfigurationError(
                f"{len(table.agents)} warps and {sum(b.stages for b in table.barriers)} barriers do not fit the report",
                cause=f"it has room for {MAX_REPORTED_AGENTS} and {MAX_BARRIERS}",
                correction="use fewer stages or warps",
            )
        common = Needs(table, shape, 0, 0, twin.room, twin.alignment, twin.alone)
        encoding = self.encoding(request)
        if twin.loop is not None and encoding is not Encoding.POSITIONAL:
            return replace(self._needs_of_loop(request, twin.loop, common), encoding=encoding)
        described = self._record_shape(request)
        most = most_words(described.streams) if encoding is Encoding.POSITIONAL else described.most_records
        wanted = max(least_capacity(twin.room), most + twin.room + 2)
        return replace(common, wanted=wanted, least=wanted, passes=twin.loop is not None, encoding=encoding)

    def encoding(self, request: CaptureRequest) -> Encoding:
        """What its records are: the cheapest that this request can have, or what it asks for.

        A kernel whose records must describe themselves, because it does something else than its program, or ends before
        it, has tagged ones; so has one of which only a part is kept. UsageError for an encoding that is not available.
        """
        can = self._encodings(request)
        if not request.encoding:
            return can[0]
        wanted = Encoding[request.encoding.upper()]
        if wanted not in can:
            raise UsageError(
                f"{self.name} cannot be recorded with the {request.encoding} encoding here",
                cause="it takes records of one clock, of all iterations of a kernel without a fault, not in host "
                "memory; the positional one also an order that depends on no data",
                correction="use " + " or ".join(f"--encoding {encoding.name.lower()}" for encoding in can),
            )
        return wanted

    def _encodings(self, request: CaptureRequest) -> tuple[Encoding, ...]:
        """Those that this request can have, the cheapest first."""
        twin = self.twin
        part = bool(request.fault or request.window or request.capacity is not None)
        long = twin.loop is not None and twin.loop.iterations(request.params) * twin.room > _DESCRIBED_RECORDS
        if part or long or request.clock != "clock" or request.memory == "host":
            return (Encoding.TAGGED,)
        described = self._record_shape(request)
        if described.static and (twin.loop is None or self._all_fit(request, most_words(described.streams))):
            return (Encoding.POSITIONAL, Encoding.FULL, Encoding.TAGGED)
        return (Encoding.FULL, Encoding.TAGGED) if described.skips_waits_only else (Encoding.TAGGED,)

    def _record_shape(self, request: CaptureRequest) -> "_RecordShape":
        return _record_shape(self.name, self.twin.table(request.params), tuple(request.params.items()), request.ctas)

    def _all_fit(self, request: CaptureRequest, words: int) -> bool:
        """Whether the memory that is asked for has room for this many words of each agent."""
        of_cta = 4 * (words + self.twin.room + 2) * len(self.twin.table(request.params).agents)
        if request.memory == "shared":
            return self.shape(request.params).smem_bytes + of_cta <= MAX_SMEM
        return of_cta * request.ctas <= _DESCRIBED_BYTES

    @staticmethod
    def _needs_of_loop(request: CaptureRequest, loop: Loop, common: Needs) -> Needs:
        """Iterations are kept whole, as many of the window as there is room for."""
        iterations = loop.iterations(request.params)
        first, end = request.window or (0, iterations)
        span = min(end, iterations) - first
        kept = span if request.capacity is None else request.capacity // common.room
        wanted, least = buffer_records(kept, common.room), least_capacity(common.room)
        return replace(common, wanted=wanted, least=least, window=(first, span), passes=True)

    def compile(self, request: CaptureRequest, memory: str) -> Builds:
        """The builds whose records go to this memory; of a kernel with a fault, traced ones, also without it."""
        if request.fault is not None:
            right = replace(request, fault=None)
            return {"right": self.build(right, memory), "traced": self.build(request, memory)}
        traced = {"traced": self.build(request, memory)}
        return traced if memory == "host" else {"plain": self.build(request), **traced}

    def build(self, request: CaptureRequest, memory: str = "") -> CompiledKernel:
        """The kernel with its recorder, which writes to ``memory``, or without it."""
        return compile_cubin(self.twin.source, self.defines(request, memory))

    def defines(self, request: CaptureRequest, memory: str = "") -> dict[str, int]:
        """The macros of such a build."""
        twin = self.twin
        defines = {**twin.defines(request.params), "PIPESIM_TRACE": int(bool(memory))}
        if request.fault is not None:
            defines["PIPESIM_FAULT"] = request.fault.number
        if memory:
            defines |= {"PIPESIM_CLOCK": CLOCKS[request.clock], "PIPESIM_MEMORY": MEMORIES[memory]}
            defines["PIPESIM_ENCODING"] = int(self.encoding(request) if memory != "host" else Encoding.TAGGED)
        if memory and twin.loop is None:  # the program counts them
            defines |= {"PIPESIM_CHECKED": 0, "PIPESIM_COUNTED": 1, "PIPESIM_ROOM": twin.room}
        if memory == "host":
            defines["PIPESIM_EAGER"] = 1
        return defines

    def kernel_arguments(self, request: CaptureRequest) -> tuple[Argument, ...]:
        """The kernel's, in order; PIPESIM_RUN_PARAMS follow if they are not among them."""
        return self.twin.arguments(request.params, self.grid, request.seed)

    def check_kernel(self, sizes: Callable[[], Sequence[int]], *, traced: bool) -> None:
        """Its arguments are its own: there is nothing to check."""

    def limit_s(self, request: CaptureRequest) -> float:
        """When the host gives up a launch: well after its own waits."""
        return _OVERTIME_S + request.deadline_ms / 1000

    def decode_context(self, request: CaptureRequest, khz: int) -> DecodeContext:
        """What its records do not say themselves."""
        twin, fault = self.twin, request.fault
        nbytes = twin.nbytes(request.params)
        if fault is not None and twin.faults is not None:
            nbytes += twin.faults.nbytes(fault, request.params)
        counted = twin.loop is not None and fault is None
        first = request.window[0] if request.window else 0
        encoding = self.encoding(request)
        said: tuple[tuple[Stream, ...], ...] = ()
        if encoding is not Encoding.TAGGED:
            said = self._record_shape(request).streams
        return DecodeContext(
            request.clock, nbytes, first, counted=counted, khz=khz, stray_ns=twin.stray_ns, encoding=encoding,
            streams=said,
        )  # fmt: skip

    def marks(self, params: Mapping[str, int]) -> tuple[int, int]:
        """The iterations between which it takes its period, of a kernel that marks waits those from the first to it."""
        loop = self.twin.loop
        if loop is not None:
            return loop.marks(params)
        found = self._period_marks(params)
        return (0, found.iterations) if found is not None else (NEVER, NEVER)

    def marked_waits(self, request: CaptureRequest) -> tuple[int, int]:
        """Those that end the first and the last iteration of the steady state, of the last agent that waits."""
        found = self._period_marks(request.params) if self.twin.loop is None else None
        return (mark(found.agent, found.first), mark(found.agent, found.last)) if found is not None else (0, 0)

    def _period_marks(self, params: Mapping[str, int]) -> PeriodMarks | None:
        return period_marks(find(self.name).build(dict(params), grid=prod(self.shape(params).grid)))

    def metadata(self, request: CaptureRequest, outcome: Outcome) -> dict[str, Any]:
        """What recording costs, where it lay in memory, where it gave up, and how far off its outputs were."""
        twin = self.twin
        per_tile = overhead(outcome.runs, twin.units(request.params))
        found: dict[str, Any] = {"overhead_millicycles_per_tile": per_tile, "smem_bytes": outcome.smem_bytes}
        if twin.loop is not None:
            busiest = busiest_role(outcome.events, outcome.table)
            found["cost_millicycles_per_record"] = cost_of_record(per_tile, busiest)
        gave_up = [run.describe_end(outcome.table) for run in outcome.launched if run.gave_up]
        if gave_up:
            found["gave_up"] = gave_up[0]
        if checked := _worst_outputs(outcome):
            found["checked"] = checked
        return found | dict(twin.metadata(request.params, self.grid))


def recorded_request(meta: TraceMeta) -> CaptureRequest:
    """What is asked for to make a recording of a twin again."""
    subject = TwinSubject(meta.protocol)
    return CaptureRequest(
        replace(subject, grid=meta.grid // prod(subject.shape(meta.params).grid)),
        meta.params,
        clock=meta.clock,
        memory="" if meta.memory == "host" else meta.memory,  # where records go of a launch that does not end
        window=meta.window,
        fault=parse_fault(meta.fault) if meta.fault else None,
    )


def _check_window(request: CaptureRequest, iterations: int) -> None:
    window = request.window
    if len(window) != 2 or not 0 <= window[0] < window[1]:
        raise ParameterError(f"the window {window} is not the first and the end of some iterations")
    if window[0] >= iterations:
        raise ParameterError(
            f"the window starts at iteration {window[0]}, after the last of {iterations} tiles",
            correction="start it earlier",
        )
    if request.fault is not None:
        raise ParameterError(
            "a run with a fault is recorded completely",
            cause="the cause and the consequences of a fault may lie outside of a window",
            correction="leave the window out",
        )


@dataclass(frozen=True)
class _RecordShape:
    """What the program says about a kernel's records: of each agent, the most of one, and what its order depends on."""

    streams: tuple[tuple[Stream, ...], ...]
    most_records: int
    static: bool
    skips_waits_only: bool


@lru_cache(maxsize=4)
def _record_shape(name: str, table: Table, params: tuple[tuple[str, int], ...], ctas: int) -> _RecordShape:
    """ConfigurationError unless table and protocol agree."""
    program = find(name).build(dict(params), grid=ctas, twice=False)  # one of ours: tests record its roles twice
    _require_agreement(find_twin(name), table, program)
    found = streams(program, table)
    most = max((len(stream.records) for agents in found for stream in agents), default=0)
    return _RecordShape(found, most, is_static(program), can_skip_waits_only(program))


def _require_agreement(twin: Twin, table: Table, program: Program) -> None:
    """ConfigurationError unless table and protocol agree."""
    known = site_table(program)
    sites = {s.key for s in known.sites}
    strange = [s.name for s in table.sites if s.key not in sites]
    missing = sites - {s.key for s in table.sites}
    for what, mine, theirs in (
        ("agents", table.agents, known.agents),
        ("barriers", table.barriers, known.barriers),
        ("sites", missing, set()),
    ):
        if mine != theirs:
            raise ConfigurationError(
                f"the {what} of {twin.table_file.name} are not those of the protocol",
                cause=f"kernel: {mine}; protocol: {theirs}; sites of the kernel alone: {strange}",
            )


def _worst_outputs(outcome: Outcome) -> dict[str, Any]:
    """For each output the worst of all launches."""
    found: dict[str, Any] = {}
    for name in sorted({name for run in outcome.launched for name in run.outputs}):
        each = [run.outputs[name] for run in outcome.launched if name in run.outputs]
        found[name] = {
            "elements": each[0].elements,
            "wrong": max(c.wrong for c in each),
            "largest_error": max(c.largest_error for c in each),
            "first_wrong": next((c.first_wrong for c in each if c.first_wrong), ""),
        }
    return found
