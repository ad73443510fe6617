"""Recording: what happens between a role's call of an operation and the operation in its agent's list.

A role is a plain function that runs once for each agent, from start to end, and only records operations. While it
runs, one :class:`Recorder` is current; barriers, pipelines and the warp object write to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from types import TracebackType
from typing import Protocol

from pipesim.bounds import MAX_AGENT_OPERATIONS
from pipesim.errors import ProtocolError, TooManyOperationsError
from pipesim.lang.author_line import Place, author_line, line_of
from pipesim.lang.side_tables import Amounts, Tables
from pipesim.model.groups import BLOCKING_WAITS, ENGINE_ACCESSES, RETURNS_LATE, TAKES_REGISTERS
from pipesim.model.ops import OPERANDS, Op, Operation

_current: ContextVar[Recorder | None] = ContextVar("pipesim_recorder", default=None)
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
        self.live: dict[LiveHandle, None] = {}  #: in the order in which they were acquired
        self.registers = 0
        self.uncommitted = 0  #: bit mask of the lanes with tcgen05 operations that they have not committed
        self.open_loops: list[Place] = []  #: of the loops that have not finished
        self._names_pipelines = True

    @property
    def executing(self) -> int:
        """How many lanes of the warp execute now."""
        return self.lanes.bit_count()

    @property
    def counted(self) -> int:
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
        """:meth:`append` what one instruction of the author's comes to: its line is found once."""
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
            self.lines[line] = self.tables.working(self.lines[line], name, amounts)
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
        return ProtocolError(
            f"{self.who}: {name} of {op.name} is of type {type(value).__name__}, not a whole number",
            place=author_line(),
            correction="divide with //, which keeps whole numbers whole" if isinstance(value, float) else "",
        )

    def require_whole(self, instruction: str) -> None:
        """ProtocolError if the agent is only some lanes of its warp: the instruction is executed by all together."""

    @contextmanager
    def naming(self, pipeline: str) -> Iterator[None]:
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

    def narrowed(self, lanes: int) -> Narrowed:
        """Only these of the executing lanes execute inside."""
        return Narrowed(self, lanes)


class Narrowed:
    """The context of :meth:`Recorder.narrowed`. A class: it is entered for every copy, and a generator takes longer."""

    __slots__ = ("_lanes", "_outer", "_recorder")

    def __init__(self, rec: Recorder, lanes: int) -> None:
        self._recorder = rec
        self._lanes = lanes
        self._outer: list[int] = []

    def __enter__(self) -> None:
        rec = self._recorder
        outer = rec.lanes
        if not outer & self._lanes:
            raise ProtocolError(f"{rec.who}: no lane remains to execute", place=author_line())
        rec.lanes = outer & self._lanes
        self._outer.append(outer)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.lanes = self._outer.pop()


def recorder() -> Recorder:
    """The recorder of the role that runs now; ProtocolError outside a role."""
    current = _current.get()
    if current is None:
        raise ProtocolError(
            "an operation was called outside a role",
            place=author_line(),
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
