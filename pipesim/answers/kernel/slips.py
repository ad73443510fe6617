"""Slips at single instructions of a kernel's PTX that a finding could come from, the likeliest first.

From the instructions at which the finding shows it goes back to what computes their operands, guards and branches.
What each of them may have been meant to be is in :mod:`pipesim.answers.kernel.slip_texts`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from pipesim.answers.kernel.slip_texts import LineTexts, on_mbarrier
from pipesim.model.groups import COUNTS_BYTES, ON_BARRIER, ON_NAMED_BARRIER
from pipesim.model.ops import Op, Operation, operand
from pipesim.prove.refutation import Refutation
from pipesim.ptx.branch_decisions import BranchPast
from pipesim.ptx.flow.opcodes import is_synchronisation
from pipesim.ptx.kernel import KernelReading
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.instruction import Instruction

LIKELY = 0.75  #: what the slips cost at most that are tried before all other corrections
_DEEPEST = 6  #: steps back from an instruction that synchronises
_STEP = 0.1  #: what each of them costs
_ELSEWHERE = 1.0  #: what it costs that the finding does not show at an instruction's barriers
_ONE_COPY = 0.2  #: that only one is wrong of several instructions of a line of the source that are alike
_MOST_COPIES = 24  #: of an instruction
_NEVER = 0.2  #: that it is never executed, where a kernel hangs
_BREAKS = -0.2  #: that it breaks a rule of a barrier
_LED_PAST = -0.4  #: that of a branch by which what is missing did not come
_ABOVE = 3  #: branches before an instruction, on every way to it, that may decide about it


@dataclass(frozen=True, order=True)
class Slip:
    """Lines written otherwise; ``cost``: how unlikely it is. ``position`` of the instruction."""

    cost: float
    position: int
    lines: tuple[tuple[int, str], ...]


def _places(each: Instruction) -> list[object]:
    """The place of the source of which an instruction is, and the place alone in the function that was inlined."""
    if each.source is None or not each.source.line:
        return []
    return [(each.opcode, each.modifiers, place) for place in (each.source, each.source.frames[-1])]


def _owed(reading: KernelReading) -> set[tuple[int, int]]:
    """The mbarriers of which one gets more bytes than are expected, and another as many fewer, by their offsets."""
    more: Counter[int] = Counter()
    for op in (op for code in reading.program.code for op in code):
        if op[0] == Op.TMA_LOAD and not operand(op, "cta_mask"):
            more[reading.offsets[operand(op, "barrier")]] += operand(op, "bytes")
        elif op[0] in COUNTS_BYTES and op[0] != Op.TMA_LOAD:
            more[reading.offsets[operand(op, "barrier")]] -= operand(op, "bytes" if op[0] == Op.EXPECT_TX else "expect")
    return {(one, other) for one in more for other in more if more[one] == -more[other] > 0}


class _Suspect(NamedTuple):
    cost: float
    position: int
    address: bool  #: it computes the address of an mbarrier
    depth: int


_Options: TypeAlias = dict[tuple[object, ...], tuple[float, str]]


class Slips:
    """The slips that a kernel could have, for one finding of it."""

    def __init__(
        self,
        kernel: Kernel,
        reading: KernelReading,
        refuted: Refutation,
        text: list[str],
        led_past: Sequence[BranchPast] = (),
    ) -> None:
        self._body, self._kept = kernel.function.body, kernel.code.kept
        self._graph, self._uses = kernel.code.regions.graph, kernel.code.regions.uses
        self._reading, self._refuted = reading, refuted
        self._branches = {past.at for past in led_past}
        self._on: defaultdict[int, set[int]] = defaultdict(set)  # by position the offsets of mbarriers
        for op, at in self._operations():
            if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
                self._on[at].add(reading.offsets[operand(op, "barrier")])
        self._alike: defaultdict[object, list[int]] = defaultdict(list)  # by place of the source, and its innermost
        for at in sorted(self._kept):
            for key in _places(self._body[at]):
                self._alike[key].append(at)
        self._known: dict[tuple[int, bool, bool], _Options] = {}
        self._groups, self._near = self._shown()
        pairs = list(zip(reading.program.barriers, reading.offsets, strict=True))
        focus = {offset for barrier, offset in pairs if barrier.name in self._groups}
        stages = {offset: (barrier.name, barrier.stage) for barrier, offset in pairs}
        hang = refuted.deadlock
        lacks = hang is not None and any(each.arrivals_missing > 0 for each in hang.blocked)
        self._texts = LineTexts(kernel, text, self._on, focus, stages, _owed(reading), lacks=lacks)

    def ranked(self) -> list[Slip]:
        """All of them, the likeliest first; a line is changed to one text once."""
        best: dict[tuple[tuple[int, str], ...], Slip] = {}
        for each in self._suspects():
            mine = self._options(each.position, each)
            everywhere = [self._copies(each.position, key) for key in _places(self._body[each.position])]
            others = {at: self._options(at, each) for copies in everywhere for at in copies}
            for what, (more, new) in mine.items():
                line = self._body[each.position].line
                alone: tuple[tuple[int, str], ...] = ((line, new),)
                costs = {alone: 0.0}
                for copies in everywhere:
                    also = {(self._body[at].line, others[at][what][1]) for at in copies if what in others[at]}
                    if also:
                        costs |= {alone: _ONE_COPY, tuple(sorted(also | {*alone})): 0.0}
                for lines, extra in costs.items():
                    slip = Slip(each.cost + more + extra, each.position, lines)
                    if lines not in best or slip < best[lines]:
                        best[lines] = slip
        return sorted(best.values())

    def _options(self, at: int, each: _Suspect) -> _Options:
        """What the line of an instruction may be, by what is changed, as if it were at the same place as another."""
        key = at, each.address, each.cost >= _ELSEWHERE
        if key not in self._known:
            found: _Options = {}
            for cost, what, new in self._texts.otherwise(at, address=key[1], far=key[2]):
                found[what] = min(found.get(what, (cost, new)), (cost, new))
            self._known[key] = found
        return self._known[key]

    def _copies(self, at: int, key: object) -> list[int]:
        """The others that are alike at a place of the source, as a compiler makes of an unrolled loop, or inlines."""
        found = [other for other in self._alike[key] if other != at]
        return found if len(found) <= _MOST_COPIES else []

    def _operations(self) -> Iterator[tuple[Operation, int]]:
        """The operations of all agents with the positions of their instructions."""
        for code, stream in zip(self._reading.program.code, self._reading.streams, strict=True):
            yield from zip(code, stream.positions, strict=False)

    def _suspects(self) -> Iterator[_Suspect]:
        """Instructions with what it costs to come there, the nearest first."""
        writers = self._texts.writers
        waiting = [_Suspect(cost, at, False, 0) for at, cost in self._synchronising().items()]
        heapify(waiting)
        seen: set[int] = set()
        while waiting:
            each = heappop(waiting)
            cost, at, address, depth = each
            if at in seen:
                continue
            seen.add(at)
            yield each
            if depth >= _DEEPEST:
                continue
            needs = self._uses.reads[at] if depth else self._uses.needs[at]
            on = not depth and on_mbarrier(self._body[at])
            back = [(w, address or (on and not n)) for n, name in enumerate(needs) for w in writers[name]]
            guard = self._body[at].guard
            back += [(w, False) for w in (writers[guard.register] if guard is not None else ())]
            back += [(branch, False) for branch in (() if depth else self._deciding(at))]
            for w, is_address in back:
                heappush(waiting, _Suspect(cost + _STEP, w, is_address, depth + 1))

    def _deciding(self, at: int) -> Iterator[int]:
        """The branches that leave the loops of an instruction, and those before it on every way."""
        graph = self._graph
        block = graph.block_of[at]
        mine = [loop.blocks for loop in graph.loops if block in loop.blocks]
        leaving = {b for blocks in mine for b in blocks if not blocks.issuperset(graph.blocks[b].successors)}
        above: list[int] = []
        up = graph.dominators[block]
        while up is not None and len(above) < _ABOVE:
            above.append(up)
            up = graph.dominators[up]
        for each in dict.fromkeys((*sorted(leaving), *above)):
            last = graph.blocks[each].end - 1
            if self._body[last].guard is not None and last in self._kept:
                yield last

    def _synchronising(self) -> dict[int, float]:
        """The instructions that synchronise; those at which the finding shows cost nothing."""
        never = _NEVER if self._refuted.deadlock is not None else _ELSEWHERE
        found: dict[int, float] = {}
        for op, at in self._operations():
            found[at] = 0.0 if at in self._near or self._name(op) in self._groups else found.get(at, _ELSEWHERE)
        found |= {at: never for at in self._kept if at not in found and is_synchronisation(self._body[at])}
        fault = self._refuted.fault
        if (
            fault is not None
            and fault.barrier >= 0
            and 0 <= fault.pc < len(self._reading.streams[fault.agent].positions)
        ):
            found[self._reading.streams[fault.agent].positions[fault.pc]] = _BREAKS
        return found | dict.fromkeys(self._branches, _LED_PAST)

    def _name(self, op: Operation) -> str:
        """The group of barriers that an operation is on, as a finding names it; "" of others."""
        program = self._reading.program
        if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
            return program.barriers[operand(op, "barrier")].name
        return f"named barrier {program.named_barrier(op)}" if op[0] in ON_NAMED_BARRIER else ""

    def _shown(self) -> tuple[set[str], set[int]]:
        """The groups of barriers that a finding is about, and the positions of its operations and of those beside them.

        Of a fault in memory the nearest two operations on barriers before and after, and what waits for transfers.
        """
        program, streams = self._reading.program, self._reading.streams
        hang, fault = self._refuted.deadlock, self._refuted.fault
        if hang is not None:
            return {b.barrier.rpartition("[")[0] or b.barrier for b in hang.blocked}, set()
        groups, near = set[str](), set[int]()
        if fault is None:
            return groups, near
        pairs = ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc), (fault.cause_agent, fault.cause_pc))
        for agent, pc in pairs:
            if agent < 0 or not 0 <= pc < len(program.code[agent]):
                continue
            code, positions = program.code[agent], streams[agent].positions
            beside = [
                n
                for way in (range(pc, -1, -1), range(pc + 1, len(code)))
                for n in [n for n in way if code[n][0] in ON_BARRIER | ON_NAMED_BARRIER][:2]
            ]
            groups |= {self._name(code[n]) for n in beside}
            waits = (n for n, op in enumerate(code) if op[0] == Op.WAIT_GROUP)
            near |= {positions[n] for n in (pc, *beside, *waits)}
        return groups | ({program.barriers[fault.barrier].name} if fault.barrier >= 0 else set()), near
