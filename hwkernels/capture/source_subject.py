"""A user's source file as the subject of a capture: its builds, its checks and its memory. Needs no GPU."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from hwkernels.capture.arguments import (
    MAP,
    NUMBERS,
    Argument,
    as_bytes,
    contents,
    number,
    parse_argument,
    read_npy,
    require_parameters,
    size_of,
)
from hwkernels.capture.kernel_names import asked_for, defaults, lacking_parameters, own_text, undefined_names
from hwkernels.capture.map_argument import parse_map, tensor_map
from hwkernels.capture.request import Builds, CaptureRequest, Needs, Outcome
from hwkernels.device.compile import CompiledKernel, compile_source
from hwkernels.device.launch import Shape
from hwkernels.source_recorder.counts import least_capacity
from hwkernels.source_recorder.decode import DecodeContext
from hwkernels.source_recorder.layout import MAX_AGENTS
from hwkernels.source_recorder.record_format import CLOCKS, MAX_STAGES
from hwkernels.source_recorder.table import Table, names_in, read_table
from hwkernels.twins import buffers
from hwkernels.twins.twin import NEVER
from pipesim.errors import CompileError, ParameterError, UsageError
from pipesim.model.ending import Ending
from pipesim.trace.schema import EventKind

ROOM = 16  #: PIPESIM_ROOM where the kernel does not say otherwise
USUAL_CAPACITY = 1 << 14
_MAX_THREADS = 1024
_MAX_CLUSTER = 16
_WITH_BYTES = (EventKind.EXPECT, EventKind.COPY)


@dataclass(frozen=True)
class SourceSubject:
    """A user's kernel.

    ``source``, ``table``: files. ``protocol``: what the trace says it is of. ``grid``, ``block``: up to three numbers
    each. ``arguments``: as a command line spells them. ``entry``: the kernel's name in C++, "" if the source has one.
    ``defines``: -D of all builds. ``options``: further ones of NVRTC. ``cluster``: CTAs of one. ``smem_bytes``: dynamic
    shared memory of a CTA. ``expected``: the .npy file that an output must equal, by its name. ``nbytes``: bytes of an
    EXPECT or COPY, by the value in its record. ``timeout_s``: when a launch is given up. ``marks_at``: the two
    iterations between which it takes its period without the recorder, () for none.
    """

    source: str
    table: str
    protocol: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...] = ()
    entry: str = ""
    defines: Mapping[str, str] | None = None
    options: tuple[str, ...] = ()
    cluster: int = 1
    smem_bytes: int = 0
    expected: Mapping[str, str] | None = None
    nbytes: tuple[int, ...] = ()
    timeout_s: int = 10
    marks_at: tuple[int, ...] = ()

    bounded = False

    @property
    def name(self) -> str:
        """Its file's."""
        return Path(self.source).name

    @property
    def room(self) -> int:
        """PIPESIM_ROOM: what the compiler is given, else what ``recorder.cuh`` says. ParameterError if it is none."""
        text = (self.defines or {}).get("PIPESIM_ROOM", str(ROOM))
        if not text.isdecimal() or not 1 <= int(text) <= 1 << 16:
            raise ParameterError(f"-D PIPESIM_ROOM={text} is not a number of records", correction="use 1 to 65,536")
        return int(text)

    def shape(self, _params: Mapping[str, int]) -> Shape:
        """The launch."""
        return Shape(self.grid, self.block, self.smem_bytes, self.cluster)

    def table_of(self, params: Mapping[str, int]) -> Table:
        """The kernel's table with these parameters. Raises UsageError."""
        return read_table(Path(self.table), self._table_values(params))

    def _table_values(self, params: Mapping[str, int]) -> dict[str, int]:
        text = own_text(Path(self.source))
        return table_values(Path(self.table), self.defines or {}, params, defaults(text))

    def check(self, request: CaptureRequest) -> None:
        """Raise a UsageError of some kind unless all of the request can be carried out as far as is known here."""
        if not Path(self.source).is_file():
            raise UsageError(f"there is no kernel {self.source}", correction="check the path after --kernel")
        for name, value, low, high in self._ranges(request):
            if not low <= value <= high:
                raise ParameterError(f"{name}: {value:,} is out of range", correction=f"use {low:,} to {high:,}")
        if self.grid[0] % self.cluster:
            raise ParameterError(
                f"--cluster {self.cluster} does not divide the {self.grid[0]} CTAs of --grid",
                correction=f"use a grid of {self.cluster}, {2 * self.cluster}, ...",
            )
        self._check_table(request.params)
        self._check_outputs()

    def _ranges(self, request: CaptureRequest) -> Iterator[tuple[str, int, int, int]]:
        """What a command line calls a value, the value, and between which two it must be."""
        for flag, numbers, most in (("--grid", self.grid, (1 << 31) - 1), ("--block", self.block, _MAX_THREADS)):
            shown = ",".join(map(str, numbers))
            yield from ((f"a number of {flag} {shown}", n, 1, most) for n in numbers)
        yield "--block, all threads", prod(self.block), 1, _MAX_THREADS
        yield "--cluster", self.cluster, 1, _MAX_CLUSTER
        yield "--smem", self.smem_bytes, 0, 232448
        yield "--capacity", _capacity(request), least_capacity(self.room), 1 << 24
        yield "--timeout-s", self.timeout_s, 1, 3600
        yield from (("--bytes", n, 1, (1 << 20) - 1) for n in self.nbytes)
        if self.marks_at:
            first, last = (*self.marks_at, 0)[:2]
            yield "--marks, the first", first, 1, (1 << 31) - 1
            yield "--marks, the last", last, first + 1, (1 << 31) - 1

    def _check_table(self, params: Mapping[str, int]) -> None:
        table, threads = self.table_of(params), prod(self.block)
        agents = len(table.agents)
        if agents > MAX_AGENTS or not agents:
            raise UsageError(f"the table has {agents} warps", place=self.table, correction=f"use 1 to {MAX_AGENTS}")
        if 32 * agents > threads:
            raise UsageError(
                f"the table has {agents} warps, a block of {threads} threads has {-(-threads // 32)}",
                place=self.table,
                correction=f"give --block {32 * agents} or more, or a table of fewer warps",
            )
        deep = next((group for group in table.barriers if group.stages > MAX_STAGES), None)
        if deep is not None:
            raise UsageError(
                f"barrier group {deep.name} has {deep.stages} stages; a record can name {MAX_STAGES}", place=self.table
            )
        moving = [site.name for site in table.sites if site.kind in _WITH_BYTES]
        if moving and not self.nbytes:
            raise UsageError(
                f"the records of {moving[0]} do not give the number of bytes that it moves",
                place=self.table,
                correction="give --bytes N, or N0,N1,...: the bytes of records whose value is 0, 1, ...",
            )

    def _check_outputs(self) -> None:
        outputs = {a.name: a for a in self.arguments if a.kind == "out"}
        if len(outputs) < sum(a.kind == "out" for a in self.arguments):
            raise ParameterError("two outputs have the same name", correction="name each: out:BYTES:NAME")
        for position, argument in enumerate(self.arguments):
            parse_argument(str(argument), position)
            if argument.kind == "npy":
                read_npy(argument.text)
            if argument.kind == MAP:
                self._map(argument, position)
        for name, path in (self.expected or {}).items():
            if name not in outputs:
                raise ParameterError(
                    f"--expect {name}={path} does not name an output",
                    correction=f"they are {', '.join(outputs) or 'none'}",
                )
            size, wanted = size_of(outputs[name]), as_bytes(read_npy(path)).nbytes
            if size != wanted:
                raise ParameterError(f"{path} has {wanted:,} bytes, the output {name} has {size:,}")

    def needs(self, request: CaptureRequest) -> Needs:
        """What it requires of memory: records never go to shared memory."""
        table = self.table_of(request.params)
        return Needs(
            table,
            self.shape(request.params),
            _capacity(request),
            least_capacity(self.room),
            self.room,
            words=True,
            marks=self.marks_at,
        )

    def compile(self, request: CaptureRequest, memory: str) -> Builds:
        """The builds whose records go to this memory; every one with the values that the table needs."""
        recording = {"PIPESIM_TRACE": "1", "PIPESIM_CLOCK": str(CLOCKS[request.clock]), "PIPESIM_MEMORY": "1"}
        if memory == "host":
            builds = {"traced": {**recording, "PIPESIM_EAGER": "1"}}
        else:
            builds = {"plain": {"PIPESIM_TRACE": "0"}, "traced": recording}
            if self.marks_at:
                builds["marked"] = {"PIPESIM_TRACE": "0", "PIPESIM_MARKS": "1"}
        values = {name: str(value) for name, value in self._table_values(request.params).items()}
        defines = asked_for(own_text(Path(self.source)), request.params) | values | dict(self.defines or {})
        return {name: self._compile(defines | switches, request.params) for name, switches in builds.items()}

    def _compile(self, defines: Mapping[str, str], params: Mapping[str, int]) -> CompiledKernel:
        """One build; a name that only the kernel uses gets the value of the protocol's parameter."""
        source = Path(self.source)
        try:
            return compile_source(source, defines, self.options, self.entry)
        except CompileError as error:
            more = lacking_parameters(error, params)
            if more:
                return compile_source(source, dict(defines) | more, self.options, self.entry)
            names = undefined_names(error)
            if names:
                error.correction = error.correction or (
                    f"define {' and '.join(names)} in the kernel, or give a value: -D {names[0]}=4; a parameter "
                    f"{names[0].lower()} of the protocol would be used, too"
                )
            raise

    def kernel_arguments(self, request: CaptureRequest) -> tuple[buffers.Argument, ...]:
        """The arguments of the kernel, in order."""
        pairs = enumerate(self.arguments)
        return tuple(each for position, a in pairs for each in self._arguments(a, request.seed, position))

    def _arguments(self, argument: Argument, seed: int, position: int) -> tuple[buffers.Argument, ...]:
        """The argument, after the buffer that only it knows if it is the map of a file's array."""
        if argument.kind != MAP:
            return (self._argument(argument, seed, position),)
        described = self._map(argument, position)
        spelled = parse_map(argument.text)
        if not spelled.is_file:
            return (described,)
        return buffers.Input(described.of, as_bytes(read_npy(spelled.base)), given=False), described

    def _map(self, argument: Argument, position: int) -> buffers.MapOf:
        """The tensor map that an argument spells. ParameterError if it cannot be."""
        spelled = parse_map(argument.text)
        if spelled.is_file:
            array = read_npy(spelled.base)
            return tensor_map(spelled, f"argument {position}", array, array.nbytes)
        outputs = {a.name: a for a in self.arguments if a.kind == "out"}
        if spelled.base not in outputs:
            raise ParameterError(
                f"--arg {argument}: there is no output {spelled.base}",
                correction=f"name a .npy file, or one of {', '.join(outputs) or 'no output'}",
            )
        return tensor_map(spelled, spelled.base, None, size_of(outputs[spelled.base]))

    def _argument(self, argument: Argument, seed: int, position: int) -> buffers.Argument:
        if argument.kind in NUMBERS:
            return number(argument)
        data = contents(argument, seed, position)
        if argument.kind != "out":
            return buffers.Input(f"argument {position}", data)
        path = (self.expected or {}).get(argument.name)
        return buffers.Bytes(argument.name, data.nbytes, None if path is None else read_npy(path))

    def check_kernel(self, sizes: Callable[[], Sequence[int]], *, traced: bool) -> None:
        """Raise ParameterError unless a loaded kernel with parameters of these sizes takes the arguments."""
        require_parameters(sizes(), self.arguments, traced=traced)

    def limit_s(self, _request: CaptureRequest) -> float:
        """When the host gives up a launch."""
        return self.timeout_s

    def decode_context(self, request: CaptureRequest, khz: int) -> DecodeContext:
        """What its records do not say themselves."""
        return DecodeContext(request.clock, self.nbytes, counted=False, khz=khz)

    def marks(self, _params: Mapping[str, int]) -> tuple[int, int]:
        """Where the build that marks reads the clock."""
        first, last = self.marks_at or (NEVER, NEVER)
        return first, last

    def marked_waits(self, _request: CaptureRequest) -> tuple[int, int]:
        """It marks none."""
        return 0, 0

    def metadata(self, _request: CaptureRequest, outcome: Outcome) -> dict[str, Any]:
        """What was launched, and what the launches left, or that the recorded one did not end."""
        found: dict[str, Any] = {"kernel": self.name, "entry": outcome.entry, "launch": self._launch()}
        recorded = outcome.recorded
        if recorded.gave_up:
            ended = {"traced": True, "timeout_s": self.timeout_s, "trap": recorded.status == Ending.TRAP}
            return found | {"gave_up": ended}
        launched = [run for run in outcome.launched if not len(run.marks)]  # a marked launch is not looked at
        wrong = {name: max(run.outputs[name].wrong for run in launched) for name in recorded.outputs}
        return found | {
            "outputs": {name: sorted({run.outputs[name].digest for run in launched}) for name in recorded.outputs},
            "wrong_outputs": {name: count for name, count in wrong.items() if count},
        }

    def _launch(self) -> dict[str, Any]:
        """The size of the launch and what the kernel was given."""
        return {
            "grid": list(self.grid),
            "block": list(self.block),
            "cluster": self.cluster,
            "smem_bytes": self.smem_bytes,
            "arguments": [str(argument) for argument in self.arguments],
        }


def _capacity(request: CaptureRequest) -> int:
    return USUAL_CAPACITY if request.capacity is None else request.capacity


def table_values(
    table: Path, defines: Mapping[str, str], params: Mapping[str, int], own: Mapping[str, int] | None = None
) -> dict[str, int]:
    """A value for every name in the table: from -D, the protocol's parameter of that name in lower case, or ``own``.

    ``own``: what the kernel defines itself. The kernel is compiled with the same values, so that kernel, table and
    protocol cannot disagree. UsageError for a table that is not there, or a name without a value.
    """
    if not table.is_file():
        raise UsageError(
            f"there is no table {table}",
            cause="it lists the roles, barriers and recording sites of the kernel",
            correction="write one beside the kernel, or name it with --table",
        )
    values: dict[str, int] = {}
    for name in sorted(names_in(table)):
        given = defines.get(name, params.get(name.lower(), params.get(name, (own or {}).get(name))))
        try:
            values[name] = int(str(given), 0)
        except ValueError:
            raise UsageError(
                f"the table's {name} has no value" if given is None else f"{name}={given} is not a whole number",
                place=str(table),
                correction=f"give -D {name}=4, a protocol with a parameter {name.lower()}, or define it in the kernel",
            ) from None
    return values
