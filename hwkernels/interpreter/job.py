"""A flat program as the words that ``interpreter.cu`` reads: operations, tables and turns. Needs no GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.interpreter.able import MAX_REGISTERS, barrier_base, remote_inits, scale, smem_bytes, unable
from hwkernels.interpreter.turns import Turns
from pipesim.errors import ConfigurationError
from pipesim.model.groups import ACCESSES, ASYNC_ACCESSES, ON_BARRIER, TOUCHES_MEMORY
from pipesim.model.ops import OPERANDS, Engine, Fence, Op, OperandName, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.trace.sites import Record

NONE = 0xFFFFFFFF
SYNC_WORDS = 4
#: ``Job`` of the kernel.
JOB: np.dtype[Any] = np.dtype(
    [
        (name, "<u4")
        for name in (
            "agents", "code", "turns", "sync", "seed", "delay", "last_turn", "item_bytes", "smem_bytes", "barriers",
            "barrier_count", "global", "stores", "inits", "init_count", "reserved",
        )
    ]
)  # fmt: skip
_NO_RECORDS: tuple[tuple[tuple[Record, ...], ...], ...] = ()
_MOST_BYTES = 1 << 30  #: of one buffer


@dataclass(frozen=True)
class Run:
    """One run of a program: pauses of up to ``delay`` cycles before operations, drawn with ``seed``; turns, if any."""

    program: Program
    seed: int = 0
    delay: int = 0
    turns: Turns | None = None


@dataclass(frozen=True)
class Store:
    """A bulk store: where it goes in the buffer of all stores, its bytes, and the word that it must leave, if known."""

    place: int
    nbytes: int
    word: int | None


@dataclass(frozen=True)
class Packed:
    """The buffers of a launch of several runs, all of programs with ``ctas`` CTAs; ``stores``: by run."""

    jobs: npt.NDArray[Any]
    words: npt.NDArray[np.uint32]
    items: npt.NDArray[np.uint32]
    global_bytes: int
    store_bytes: int
    ctas: int
    warps: int
    smem_bytes: int
    stores: tuple[tuple[Store, ...], ...]


class Packing:
    """Runs put into buffers, one after the other. ConfigurationError for a program that the kernel cannot run.

    ``records``: of each agent and operation what it records, where the launch records.
    """

    def __init__(self, ctas: int, warps: int, records: Sequence[Sequence[Sequence[Record]]] = _NO_RECORDS) -> None:
        self._ctas, self._warps, self._records = ctas, warps, records
        self._words: list[npt.NDArray[np.uint32]] = []
        self._length = self._global = self._stored = self._smem = self._rows = self._row = 0
        self._jobs: list[tuple[object, ...]] = []
        self._stores: list[tuple[Store, ...]] = []
        self._packed: dict[int, tuple[Program, _Lists]] = {}

    def add(self, run: Run) -> None:
        """One more cluster."""
        known = self._packed.get(id(run.program))
        lists = known[1] if known is not None else self._pack(run.program)
        turns = self._put([n for mine in run.turns.numbers for n in mine]) if run.turns is not None else 0
        sync = self._put([0] * SYNC_WORDS)
        last = run.turns.last if run.turns is not None else 0
        self._jobs.append(
            (lists.agents, lists.code, turns, sync, run.seed & NONE, run.delay, last, 0, lists.smem_bytes,
             lists.barriers, lists.barrier_count, self._global, self._stored, lists.inits, lists.init_count, 0)
        )  # fmt: skip
        self._stores.append(tuple(replace(each, place=each.place + self._stored) for each in lists.stores))
        self._global += lists.global_bytes
        self._stored += lists.store_bytes

    def done(self) -> Packed:
        """The buffers. ConfigurationError if one would be too large."""
        for what, nbytes in (
            ("copies", self._rows * self._row),
            ("stores", self._stored),
            ("global memory", self._global),
        ):
            if nbytes > _MOST_BYTES:
                raise ConfigurationError(
                    f"{what} of these runs take {nbytes:,} bytes of device memory",
                    cause=f"the interpreter has {_MOST_BYTES:,}",
                    correction="use fewer tiles or smaller ones",
                )
        jobs = np.array(self._jobs, dtype=JOB)
        jobs["item_bytes"] = self._row
        items = np.repeat(np.arange(self._rows, dtype=np.uint32), self._row // 4)
        words = np.concatenate(self._words)
        return Packed(
            jobs, words, items, self._global, self._stored, self._ctas, self._warps, self._smem, tuple(self._stores)
        )

    def _put(self, words: Sequence[int] | npt.NDArray[np.uint32]) -> int:
        """Where words lie from now on: at a multiple of four, as they are read."""
        array = np.asarray(words, dtype=np.uint32).reshape(-1)
        padded = np.zeros(-(-len(array) // 4) * 4, dtype=np.uint32)
        padded[: len(array)] = array
        place, self._length = self._length, self._length + len(padded)
        self._words.append(padded)
        return place

    def _pack(self, program: Program) -> "_Lists":
        reason = unable(program)
        if reason or program.ctas > self._ctas or max(a.warp for a in program.agents) >= self._warps:
            raise ConfigurationError(
                f"the interpreter cannot run {program.name}",
                cause=reason or "its cluster or its CTAs have another size than those of the launch",
                correction="",
            )
        writer = _Writer(program)
        agents = np.zeros((self._ctas, self._warps, 4), dtype=np.uint32)
        agents[:, :, 2] = NONE
        code: list[list[int]] = []
        for number, (agent, mine) in enumerate(zip(program.agents, program.code, strict=True)):
            in_cta = program.agents_of_cta[agent.cta]
            agents[agent.cta, agent.warp] = (len(code), len(mine), in_cta.index(number), len(in_cta))
            records = self._records[number] if self._records else [()] * len(mine)
            code += [writer.words(number, op, says) for op, says in zip(mine, records, strict=True)]
        inits = [n for each in remote_inits(program) for n in writer.init(each)]
        barriers = [writer.barriers[(b.name, b.stage)] for b in program.barriers if b.cta == 0]
        lists = _Lists(
            self._put(agents.reshape(-1)), self._put(np.array(code, dtype=np.uint32).reshape(-1)), self._put(barriers),
            len(barriers), self._put(inits), len(inits) // 4, smem_bytes(program), writer.global_bytes, writer.stored,
            tuple(writer.stores),
        )  # fmt: skip
        self._smem, self._rows = max(self._smem, lists.smem_bytes), max(self._rows, len(writer.items) + 1)
        self._row = max(self._row, writer.longest)
        self._packed[id(program)] = program, lists  # the program is kept, or another one could have its number
        return lists


@dataclass(frozen=True)
class _Lists:
    """Where the lists of one program lie, and what a run of it needs."""

    agents: int
    code: int
    barriers: int
    barrier_count: int
    inits: int
    init_count: int
    smem_bytes: int
    global_bytes: int
    store_bytes: int
    stores: tuple[Store, ...]


class _Writer:
    """The words of one program's operations."""

    def __init__(self, program: Program) -> None:
        self._program, self._scale = program, scale(program)
        names = dict.fromkeys((b.name, b.stage) for b in program.barriers)
        self.barriers: Mapping[tuple[str, int], int] = {
            name: barrier_base(program) + 8 * n for n, name in enumerate(names)
        }
        used = {operand(op, "item") for op in program.operations if op[0] in TOUCHES_MEMORY}
        self.items = {item: n for n, item in enumerate(sorted(used - {-1}), start=1)}
        ends = (a.offset + a.nbytes for a in program.accesses if a.space == Space.GLOBAL)
        self.global_bytes = -(-max(ends, default=0) * self._scale // 16) * 16
        self.longest = 16
        self.stored = 0
        self.stores: list[Store] = []
        self._written_globally = {
            operand(op, "item")
            for op in program.operations
            if op[0] == Op.WRITE and program.accesses[operand(op, "access")].space == Space.GLOBAL
        }

    def words(self, agent: int, op: Operation, records: Sequence[Record]) -> list[int]:
        """The eight words of an operation: ``Operation`` of the kernel."""
        fields = dict.fromkeys("abcdef", 0) | self._fields(agent, op)
        code = Op.WAIT if op[0] == Op.WAIT_UNLESS and operand(op, "register") < 0 else op[0]
        if op[0] in ACCESSES and self._program.accesses[operand(op, "access")].space == Space.REGISTERS:
            code = Op.LOOP_NEXT  # a result of wgmma lies where its threads keep it
        if op[0] == Op.INIT and self._program.barriers[operand(op, "barrier")].cta != self._program.agents[agent].cta:
            code = Op.LOOP_NEXT  # made before the program begins
        sites = (records[0].site + 1 if records else 0) | (records[1].site + 1 << 16 if len(records) > 1 else 0)
        parity = max(records[0].parity, 0) << 8 if records else 0
        return [code | parity, *(value & NONE for value in fields.values()), sites]

    def init(self, op: Operation) -> tuple[int, int, int, int]:
        """An init that the kernel makes before the program begins: CTA, offset and count."""
        barrier = self._program.barriers[operand(op, "barrier")]
        return barrier.cta, self.barriers[barrier.name, barrier.stage], operand(op, "count"), 0

    def _fields(self, agent: int, op: Operation) -> dict[str, int]:
        found: dict[str, int] = {}
        if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
            barrier = self._program.barriers[operand(op, "barrier")]
            mine = self._program.agents[agent].cta
            found = {
                "a": self.barriers[barrier.name, barrier.stage],
                "b": 0 if barrier.cta == mine else barrier.cta + 1,
            }
        match op[0]:
            case Op.TEST_STATE | Op.PENDING_COUNT:
                found |= {"e": operand(op, "state_register"), "d": self._result(op)}
            case Op.ARRIVE | Op.ARRIVE_DROP:
                found |= {"d": self._scale * operand(op, "expect"), "e": operand(op, "register")}
            case Op.ARRIVE_NO_COMPLETE | Op.WAIT_STATE:
                found |= {"e": operand(op, "register")}
            case Op.WAIT_UNLESS | Op.TRY_WAIT | Op.TEST_WAIT:
                found |= {"e": self._result(op)}
            case Op.EXPECT_TX | Op.COMPLETE_TX:
                found |= {"c": self._scale * operand(op, "bytes")}
            case Op.BAR_SYNC | Op.BAR_ARRIVE:
                found |= {"a": self._program.named_barrier(op), "c": operand(op, "threads")}
            case Op.JUMP_IF:
                found |= {"e": operand(op, "register"), "c": operand(op, "value"), "d": operand(op, "skip")}
            case _ if op[0] in TOUCHES_MEMORY:
                found |= self._of_memory(agent, op)
        for name, field in _PLACES.items():
            if name in OPERANDS[Op(op[0])] and field not in found:
                found[field] = operand(op, name)
        return found

    @staticmethod
    def _result(op: Operation) -> int:
        """Where a result goes: one that is not used goes to a register of its own."""
        register = operand(op, "register")
        return register if register >= 0 else MAX_REGISTERS

    def _of_memory(self, agent: int, op: Operation) -> dict[str, int]:
        access, mine = self._program.accesses[operand(op, "access")], self._program.agents[agent].cta
        item = operand(op, "item")
        nbytes, word = access.nbytes * self._scale, self.items.get(item, 0)
        found = {"c": access.offset * self._scale, "d": nbytes, "e": word}
        if op[0] in ASYNC_ACCESSES:
            self.longest = max(self.longest, -(-nbytes // 16) * 16)
        match op[0]:
            case Op.TMA_LOAD:
                found["f"] = operand(op, "cta_mask") | access.cta << 16
            case Op.TRANSFER_READ if operand(op, "engine") == Engine.BULK:
                self.stores.append(Store(self.stored, nbytes, word or None))
                found["f"] = self.stored // 16
                self.stored += -(-nbytes // 16) * 16
            case Op.READ | Op.WRITE:
                found["a"] = int(access.space == Space.GLOBAL)
                found["b"] = 0 if access.cta == mine else access.cta + 1
                if found["a"] and op[0] == Op.READ and item not in self._written_globally:
                    found["e"] = 0  # what was there before the launch
        return found


#: Where the other operands stand.
_PLACES: Mapping[OperandName, str] = {
    "count": "c", "parity": "c", "lanes": "c", "noinc": "d", "fence": "a", "engine": "a", "groups": "c",
    "cycles": "c",
}  # fmt: skip


def defines() -> dict[str, int]:
    """The numbers of operations, engines and fences, as the kernel names them."""
    pairs = (
        [(f"OP_{op.name}", op) for op in Op],
        [(f"ENGINE_{e.name}", e) for e in Engine],
        [(f"FENCE_{f.name}", f) for f in Fence],
    )
    return {name: int(value) for group in pairs for name, value in group}
