"""Any flat program as the subject of a capture: the interpreter runs it, no CUDA of its own is needed. Needs no GPU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from hwkernels.capture.request import Builds, CaptureRequest, Needs, Outcome, require_between
from hwkernels.device.launch import Shape
from hwkernels.interpreter.able import unable
from hwkernels.interpreter.chip import FINISHED, compile_interpreter
from hwkernels.interpreter.job import NONE, Packed, Packing, Run
from hwkernels.records.encodings import Encoding
from hwkernels.source_recorder.counts import least_capacity
from hwkernels.source_recorder.decode import DecodeContext
from hwkernels.source_recorder.description import can_skip_waits_only, streams
from hwkernels.source_recorder.layout import MAX_BARRIERS, MAX_REPORTED_AGENTS
from hwkernels.source_recorder.table import Table
from hwkernels.twins.buffers import BEFORE, Argument, Bytes, Input, Output
from hwkernels.twins.twin import NEVER
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.model.groups import CLUSTER
from pipesim.model.program import Program
from pipesim.model.program_json import loads
from pipesim.trace.schema import INTERPRETED
from pipesim.trace.sites import site_table

_ROOM = 16  #: PIPESIM_ROOM
_DEADLINE_MS = 2000  #: the kernel counts nanoseconds in 31 bits
_OVERTIME_S = 5.0


@dataclass(frozen=True)
class ProgramSubject:
    """A flat program, as its JSON document: the subject goes to other processes."""

    name: str
    document: str

    bounded = True

    @property
    def protocol(self) -> str:
        """The name of the program."""
        return self.program.name

    @property
    def program(self) -> Program:
        """The program itself. ProgramFormatError if the document is none."""
        return _program(self.document)

    def shape(self, _params: Mapping[str, int]) -> Shape:
        """The launch: a watchdog besides the warps of each CTA."""
        packed = _packed(self.document)
        ctas = self.program.ctas
        return Shape((ctas * self.program.grid,), (32 * (packed.warps + 1),), packed.smem_bytes, ctas)

    def check(self, request: CaptureRequest) -> None:
        """Raise a UsageError of some kind unless the interpreter can run and record the program."""
        require_between(("deadline_ms", request.deadline_ms, 1, _DEADLINE_MS))
        asked = {
            "--window": bool(request.window),
            "--fault": request.fault is not None,
            "--encoding": bool(request.encoding),
            "--memory": request.memory not in {"", "device"},
        }
        for option in (name for name, given in asked.items() if given):
            raise UsageError(f"{option} has no effect where a program is interpreted", correction=f"leave {option} out")
        if request.clock != "clock":
            raise ParameterError(
                "an interpreted program is recorded with the SM's clock", correction="use --clock clock"
            )
        reason = unable(self.program) or _unrecorded(self.program)
        if reason:
            raise ConfigurationError(
                f"{self.name} cannot be run by the interpreter",
                cause=reason,
                correction="write its kernel, and record that: docs/own-kernel.md",
            )

    def needs(self, request: CaptureRequest) -> Needs:
        """What it requires of memory."""
        table = _table(self.program)
        if len(table.agents) > MAX_REPORTED_AGENTS or sum(b.stages for b in table.barriers) > MAX_BARRIERS:
            raise ConfigurationError(
                f"a report has room for {MAX_REPORTED_AGENTS} warps and {MAX_BARRIERS} barriers",
                cause=f"{self.name} has {len(table.agents)} and {sum(b.stages for b in table.barriers)}",
                correction="use fewer stages or warps",
            )
        most = max(len(stream.records) for agents in streams(self.program, table) for stream in agents)
        wanted = max(least_capacity(_ROOM), most + _ROOM + 2)
        return Needs(table, self.shape(request.params), wanted, wanted, _ROOM, encoding=Encoding.FULL)

    def compile(self, _request: CaptureRequest, _memory: str) -> Builds:
        """The interpreter without its recorder and with it."""
        return {"plain": compile_interpreter(), "traced": compile_interpreter(records=True)}

    def kernel_arguments(self, _request: CaptureRequest) -> tuple[Argument, ...]:
        """The interpreter's: its buffers, and where each agent must end."""
        packed = _packed(self.document)
        return (
            Input("jobs", packed.jobs),
            Input("words", packed.words),
            Input("items", packed.items),
            Bytes("global memory", packed.global_bytes),
            Bytes("bulk stores", packed.store_bytes),
            Output("agents", _ends(self.program, packed.warps), "<u4"),
            np.uint32(self.program.ctas),
        )

    def check_kernel(self, sizes: Callable[[], Sequence[int]], *, traced: bool) -> None:
        """Its arguments are the interpreter's: there is nothing to check."""

    def limit_s(self, request: CaptureRequest) -> float:
        """When the host gives up a launch: well after the watchdog."""
        return _OVERTIME_S + 10 * request.deadline_ms / 1000

    def decode_context(self, request: CaptureRequest, khz: int) -> DecodeContext:
        """What its records do not say themselves: all but their clock."""
        said = streams(self.program, _table(self.program))
        return DecodeContext(request.clock, (), khz=khz, encoding=Encoding.FULL, streams=said)

    def marks(self, _params: Mapping[str, int]) -> tuple[int, int]:
        """It takes no period."""
        return NEVER, NEVER

    def marked_waits(self, _request: CaptureRequest) -> tuple[int, int]:
        """It marks none."""
        return 0, 0

    def metadata(self, _request: CaptureRequest, outcome: Outcome) -> dict[str, Any]:
        """That it was interpreted, and where it gave up."""
        gave_up = [run.describe_end(outcome.table) for run in outcome.launched if run.gave_up]
        return {INTERPRETED: True} | ({"gave_up": gave_up[0]} if gave_up else {})


@lru_cache(maxsize=4)
def _program(document: str) -> Program:
    return loads(document)


@lru_cache(maxsize=4)
def _packed(document: str) -> Packed:
    """The buffers of a launch of all clusters of the program's grid, which records."""
    program = _program(document)
    records = site_table(program).records
    packing = Packing(program.ctas, max(agent.warp for agent in program.agents) + 1, records)
    for _ in range(program.grid):
        packing.add(Run(program))
    return packing.done()


def _table(program: Program) -> Table:
    """The roles, barriers and sites of a program, as a kernel has them."""
    known = site_table(program)
    roles = tuple((role, len(list(agents))) for role, agents in groupby(agent.role for agent in known.agents))
    return Table(roles, known.barriers, known.sites)


def _unrecorded(program: Program) -> str:
    """Why its records could not be read, as :func:`~hwkernels.interpreter.able.unable` says it."""
    table = _table(program)
    names = [(agent.role, agent.index) for agent in table.agents]
    for agents in program.agents_of_cta:
        if [(program.agents[a].role, program.agents[a].index) for a in agents] != names:
            return "its CTAs have different roles, or the warps of a role do not follow each other"
    if not can_skip_waits_only(program):
        return "it decides by the result of a try, so that its records do not follow from the program"
    if program.ctas == 1 and any(op[0] in CLUSTER for op in program.operations):
        return "one CTA waits at the barrier of a cluster"
    return ""


def _ends(program: Program, warps: int) -> Any:
    """(CTAs of the launch times warps, 4): what each agent reports if it ends with the data that it expects."""
    unwritten = int.from_bytes(bytes([BEFORE]) * 4, "little")
    found = np.full((program.grid, program.ctas, warps, 4), unwritten, dtype=np.int64)
    for agent, code in zip(program.agents, program.code, strict=True):
        found[:, agent.cta, agent.warp] = (len(code), FINISHED, 0, NONE)
    return found.reshape(-1, 4)
