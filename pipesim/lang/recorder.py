"""Recording: what happens between a role's call of an operation and the operation in its agent's list.

A role is a plain function that runs once for each agent, from start to end, and only records operations. While it
runs, one :class:`Recorder` is current; barriers, pipelines and the warp object write to it. What operations refer to by
number is entered in :class:`Tables` as roles first use it: accesses, source lines, named barriers, loops.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import index
from types import CodeType, FrameType
from typing import Protocol

from pipesim.bounds import MAX_AGENT_OPERATIONS
from pipesim.errors import ProtocolError, TooManyOperationsError
from pipesim.lang.author import IS_INSIDE, Place, UnansweredError, author_error, author_line, getframe, line_of
from pipesim.lang.global_words import WordAccess
from pipesim.model.groups import (
    BLOCKING_WAITS,
    ENGINE_ACCESSES,
    READS_REGISTER,
    RETURNS_LATE,
    TAKES_REGISTERS,
    WRITES_REGISTER,
)
from pipesim.model.ops import OPERANDS, Op, Operation, Space

Amounts = tuple[tuple[str, int], ...]
Bytes = tuple[Space, int, int, int]  #: the fields of an ``Access``; a plain tuple is made and found much sooner


@dataclass
class Tables:
    """The side tables that the recordings of all agents share while a protocol is flattened."""

    ctas: int = 1  #: that are recorded: those of the cluster, or of a grid in which each is a cluster of its own
    alone: bool = False  #: of such a grid
    accesses: dict[Bytes, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    named_barriers: dict[tuple[int, int], int] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    words: dict[WordAccess, int] = field(default_factory=dict)
    pipelines: dict[str, None] = field(default_factory=dict)  #: structs that roles have made, in that order
    #: of an instruction its source line; the code is kept, because another would be given its id
    places: dict[tuple[int, int], tuple[int, CodeType]] = field(default_factory=dict)
    #: works, each with the name of a source: that of its line, and what tells it from others of that line
    works: dict[tuple[int, str, Amounts], int] = field(default_factory=dict)

    @property
    def masks(self) -> int:
        """The first number that is not a mask of CTAs of a cluster."""
        return 1 << (0 if self.alone else self.ctas)

    def access(self, space: Space, cta: int, offset: int, nbytes: int) -> int:
        """Index of an access, entered on first sight."""
        return self.accesses.setdefault((space, cta, offset, nbytes), len(self.accesses))

    def source(self, line: str) -> int:
        """Index of a source line, entered on first sight."""
        return self.sources.setdefault(line, len(self.sources))

    def work_line(self, source: int, name: str, amounts: Amounts) -> int:
        """Index of a source line whose operations do this work, entered on first sight."""
        known = self.works.get((source, name, amounts))
        if known is None:
            line = self.lines()[source]
            known = self.works[source, name, amounts] = self.source(f"{line}\0{len(self.works)}")
        return known

    def lines(self) -> list[str]:
        """The source lines by their index; a line that does several works is there for each of them."""
        return [line.split("\0")[0] for line in self.sources]

    def source_here(self, depth: int) -> int:
        """Index of the author's line, at least this many calls up.

        Found again by the instruction: by the id of its code, because the hash of code is computed every time.
        """
        frame: FrameType = getframe(depth)
        while IS_INSIDE[frame.f_globals.get("__name__", "")] and (caller := frame.f_back) is not None:
            frame = caller
        code = frame.f_code
        place = id(code), frame.f_lasti
        try:
            return self.places[place][0]
        except KeyError:
            source = self.source(line_of(code, frame.f_lasti))
            self.places[place] = source, code
            return source

    def named_barrier(self, cta: int, number: int) -> int:
        """Index of a named barrier of a CTA, entered on first sight."""
        return self.named_barriers.setdefault((cta, number), len(self.named_barriers))

    def loop(self, trip: str) -> int:
        """Index of a loop's iteration parameter, entered on first sight."""
        return self.loops.setdefault(trip, len(self.loops))


_current: "ContextVar[Recorder | None]" = ContextVar("pipesim_recorder", default=None)
current_recorder = _current.get  #: that of the role that runs now, None outside a role


class LiveHandle(Protocol):
    """What a recorder needs of a handle that its role holds, which is ``pipesim.pipelines.common.linear.Linear``."""

    held: tuple[str, int] | None  #: of a stage of a ring: its side, and the barrier of that side

    @property
    def description(self) -> tuple[str, str, str]:
        """What it is, which role holds it, and the line where it was acquired."""

    def require_consumed(self) -> None:
        """Raise HandleError if the role ended while the handle was live."""


class Recorder:
    """The operations of one agent, while its role runs. ``located``: this many have their line from an earlier run.

    ``most``: how many it may record, None for as many as any agent.
    """

    def __init__(
        self,
        tables: Tables,
        who: str,
        cta: int,
        lanes: int,
        located: int = 0,
        most: int | None = None,
        follows: int | None = None,
    ) -> None:
        self.most = MAX_AGENT_OPERATIONS if most is None else min(most, MAX_AGENT_OPERATIONS)
        self.tables = tables
        self.who = who
        self.cta = cta
        self.lanes = lanes  #: bit mask of the lanes executing now
        self.all_lanes = lanes
        self.follows = lanes if follows is None else follows  #: bit mask of the lanes whose operations are recorded
        self.located = located
        self.code: list[Operation] = []
        self.lines: list[int] = []  #: of the operations from ``located`` on
        self.narrowed: list[tuple[int, int]] = []  #: first and end of the operations that only some lanes execute
        self.meets: list[int] = []  #: the places of ``bar.warp.sync``, which adds nothing where lanes are together
        self.live: dict[LiveHandle, None] = {}  #: in the order in which they were acquired
        self.registers = 0
        self.uncommitted = 0  #: bit mask of the lanes with tcgen05 operations that they have not committed
        self.open_loops: list[Place] = []  #: of the loops that have not finished
        self.agent = 0  #: its number
        self.words: dict[int, WordAccess] = {}  #: what is done to words of global memory, at the places of operations
        self.answers: Mapping[tuple[int, ...], int] = {}  #: of atomics, as ``GridWords.observed`` has them
        self.observed: dict[tuple[int, ...], int | None] = {}  #: of those that the role has asked for
        self._names_pipelines = True
        self._written_registers: set[int] = set()  #: that operations of this agent have written

    @property
    def executing_lanes(self) -> int:
        """How many lanes of the warp execute now."""
        return self.lanes.bit_count()

    @property
    def counted_lanes(self) -> int:
        """How many lanes of this agent execute now: what an arrive counts."""
        return (self.lanes & self.follows).bit_count()

    @property
    def is_part(self) -> bool:
        """True if the agent is only some lanes of its warp, which run independently of the others."""
        return self.follows != self.all_lanes

    def emit(self, op: Op, *operands: int, line: str = "") -> None:
        """Append an operation with the author's line, or this one. ProtocolError if an operand is not a whole
        number.
        """
        try:
            operation = tuple(map(index, (op, *operands)))  # enums become plain integers here
        except TypeError:
            raise self._no_number(op, operands) from None
        self.append(operation, self.tables.source(line) if line else -1)

    def operation(self, op: int, *operands: int) -> Operation:
        """The operation in plain integers. ProtocolError if an operand is not a whole number."""
        try:
            return tuple(map(index, (op, *operands)))
        except TypeError:
            raise self._no_number(Op(op), operands) from None

    def append(self, operation: Operation, source: int = -1) -> None:
        """Append an operation of plain integers, with this source line, or that of the author's code if -1."""
        code = self.code
        code.append(operation)
        if len(code) > self.located:
            if len(code) > self.most:
                raise self._too_many()
            self.lines.append(source if source >= 0 else self.tables.source_here(3))

    def append_item(self, head: Operation, item: int) -> None:
        """:meth:`append` the operation that begins with ``head`` and ends with ``item``."""
        self.append((*head, item) if type(item) is int else self.operation(*head, item))

    def extend(self, block: list[Operation]) -> None:
        """:meth:`append` the operations of one instruction of the author's: its line is found once."""
        before = len(self.code)
        self.code += block
        unlocated = len(self.code) - max(before, self.located)
        if unlocated > 0:
            if len(self.code) > self.most:
                raise self._too_many()
            self.lines += [self.tables.source_here(3)] * unlocated

    def works(self, name: str, amounts: Amounts) -> bool:
        """Enter the work of the last operation. False if there is none that it could be the work of."""
        at = len(self.code) - 1
        while at >= 0 and self.code[at][0] in ENGINE_ACCESSES:  # the operands of a multiplication come after its work
            at -= 1
        if at < 0 or self.code[at][0] != Op.ENGINE_WORK:
            at = len(self.code) - 1
        if at < 0 or self.code[at][0] in RETURNS_LATE - BLOCKING_WAITS - TAKES_REGISTERS:
            return False
        if at >= self.located:
            line = at - len(self.code)
            self.lines[line] = self.tables.work_line(self.lines[line], name, amounts)
        return True

    def _too_many(self) -> TooManyOperationsError:
        return TooManyOperationsError(
            f"{self.who} records more than {self.most:,} operations",
            place=author_line(),
            cause="a loop in the role that does not end, or more iterations than can be recorded",
            correction="make it end, for example: for i in range(tiles)",
        )

    def _no_number(self, op: Op, operands: tuple[object, ...]) -> ProtocolError:
        name, value = next(
            (name, value) for name, value in zip(OPERANDS[op], operands, strict=True) if not hasattr(value, "__index__")
        )
        return author_error(
            f"{self.who}: {name} of {op.name} is of type {type(value).__name__}, not a whole number",
            correction="divide with //, which keeps whole numbers whole" if isinstance(value, float) else "",
        )

    def require_rank(self, rank: int, what: str) -> None:
        """ProtocolError if the CTA of this rank is not of the same cluster."""
        tables = self.tables
        if not 0 <= rank < tables.ctas or (tables.alone and rank != self.cta):
            raise author_error(
                f"{self.who}: {what} of CTA {rank}", cause=f"the cluster has {1 if tables.alone else tables.ctas} CTAs"
            )

    def answer_of(self, atomic: tuple[int, ...]) -> int:
        """What an atomic returns. Where that is not known yet, the recording ends here."""
        self.require_whole("an atomic whose answer is used")
        answer = self.observed[atomic] = self.answers.get(atomic)
        if answer is None:
            raise UnansweredError
        return answer

    def require_whole(self, instruction: str) -> None:
        """ProtocolError if the agent is only some lanes of its warp: the instruction is executed by all together."""

    @contextmanager
    def name_pipeline(self, pipeline: str) -> Iterator[None]:
        """Enter the name of the pipeline struct that is made inside, "" for none; those that it contains are not
        entered.
        """
        names = self._names_pipelines
        if names and pipeline:
            self.tables.pipelines[pipeline] = None
        self._names_pipelines = False
        try:
            yield
        finally:
            self._names_pipelines = names

    def new_register(self) -> int:
        """A register that no other result of this agent uses."""
        self.registers += 1
        return self.registers - 1

    def narrow_to(self, lanes: int) -> "NarrowedLanes":
        """Only these of the executing lanes execute inside."""
        return NarrowedLanes(self, lanes)


class AtomicAnswer:
    """What an atomic returns, in a register of the thread that made it."""

    def __init__(self, rec: Recorder, pc: int) -> None:
        self._recorder, self._pc = rec, pc

    @property
    def old(self) -> int:
        """The value that the word had. What its role does next may depend on it: it is recorded for each order of
        the atomics on the word. ProtocolError in another role, or where the lanes of the role run independently.
        """
        if current_recorder() is not self._recorder:
            raise author_error(
                f"the answer of an atomic of {self._recorder.who} is in its registers",
                correction="ask with w.answer(word) in other warps of its CTA",
            )
        return self._recorder.answer_of((self._recorder.agent, self._pc))


class NarrowedLanes:
    """The context of :meth:`Recorder.narrow_to`. A class: it is entered for every copy; a generator takes longer."""

    __slots__ = ("_begin", "_lanes", "_outer", "_recorder")

    def __init__(self, rec: Recorder, lanes: int) -> None:
        self._recorder = rec
        self._lanes = lanes
        self._outer: list[int] = []
        self._begin = 0

    def __enter__(self) -> None:
        rec = self._recorder
        outer = rec.lanes
        if not outer & self._lanes:
            raise author_error(f"{rec.who}: no lane remains to execute")
        rec.lanes = outer & self._lanes
        self._outer.append(outer)
        if outer == rec.all_lanes:
            self._begin = len(rec.code)

    def __exit__(self, *_: object) -> None:
        rec, outer = self._recorder, self._outer.pop()
        if outer == rec.all_lanes != rec.lanes and len(rec.code) > self._begin:
            rec.narrowed.append((self._begin, len(rec.code)))
        rec.lanes = outer


def recorder() -> Recorder:
    """The recorder of the role that runs now; ProtocolError outside a role."""
    current = _current.get()
    if current is None:
        raise author_error(
            "an operation was called outside a role",
            correction="call it inside a function marked @protocol.role(...) or @protocol.init",
        )
    return current


@contextmanager
def recording(into: Recorder) -> Iterator[None]:
    """Make ``into`` the current recorder; at the end every handle must be given back and every loop at its end."""
    mark = _current.set(into)
    try:
        yield
        for handle in into.live:
            handle.require_consumed()
        if into.open_loops:
            raise ProtocolError(
                f"{into.who}: a loop was left before its last iteration",
                place=line_of(*into.open_loops[-1]),
                cause="the loop's marks give its trip count for any value of its parameter",
                correction="compute the trip count before the loop, or use range() for a loop without marks",
            )
    finally:
        _current.reset(mark)


class PartRecorder(Recorder):
    """The operations of some lanes of a warp, ``follows``, whose role runs as if for all of them.

    What only other lanes execute is not recorded, so that the role's own state is the same for every part.
    """

    def append(self, operation: Operation, source: int = -1) -> None:
        """Append the operation if a lane of this agent executes it. ProtocolError if it uses a register that only
        other lanes have.
        """
        if self.lanes & self.follows:
            self._require_registers(operation)
            super().append(operation, source)

    def extend(self, block: list[Operation]) -> None:
        """Append the operations if a lane of this agent executes them."""
        if self.lanes & self.follows:
            super().extend(block)

    def narrow_to(self, lanes: int) -> NarrowedLanes:
        """Only these of the executing lanes execute inside: the first alone, or all. ProtocolError for other sets of
        lanes, which have no agents of their own.
        """
        if self.lanes & lanes not in (0, 1, self.all_lanes):
            raise author_error(
                f"{self.who}: {(self.lanes & lanes).bit_count()} lanes execute, in a role whose lanes are apart",
                cause="only the elected lane is an agent apart from the others of its warp",
                correction="use `with w.elect_one():`, all lanes, or a role without lanes_apart=True",
            )
        return super().narrow_to(lanes)

    def require_whole(self, instruction: str) -> None:
        """ProtocolError: the lanes of this role run independently."""
        raise author_error(
            f"{self.who}: {instruction} in a role whose lanes are apart",
            cause="the lanes of a warp execute it together, but those of this role run independently",
            correction="move it to a role without lanes_apart=True",
        )

    def _require_registers(self, operation: Operation) -> None:
        op = operation[0]
        written = self._written_registers
        for name, value in zip(OPERANDS[Op(op)], operation[1:], strict=True):
            reads = name == "state_register" or (name == "register" and op in READS_REGISTER)
            if reads and value >= 0 and value not in written:
                raise author_error(
                    f"{self.who}: a result is used by lanes that do not have it",
                    cause="it was made where only other lanes of the warp execute, and is in their registers",
                    correction="test or arrive where the lanes that use the result execute, too",
                )
        if op in WRITES_REGISTER:
            written.update(v for n, v in zip(OPERANDS[Op(op)], operation[1:], strict=True) if n == "register")
