"""Changes of single instructions of a kernel's PTX, each what a slip there would have changed, the likeliest first.

From the instructions at which a finding shows it goes back to what computes their operands, guards and branches. A
number is one of its neighbours or one that the same instruction has elsewhere, a register one that is computed beside
it, a barrier's address that of another barrier, a comparison its neighbour. Nothing is offered before it is proved.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from pipesim.model.groups import ACCESSES, ASKS, ENGINE_ACCESSES, ON_BARRIER, ON_NAMED_BARRIER, TOUCHES_MEMORY
from pipesim.model.ops import Op, operand
from pipesim.prove.refutation import Refutation
from pipesim.ptx.emulation import Kernel
from pipesim.ptx.kernel import KernelReading
from pipesim.ptx.text.instruction import Instruction, Register

_LINE = re.compile(r"(\s*)(@!?%?[\w$]+\s+)?([\w.:]+)(\s+)(.*?)(;.*)", re.DOTALL)
_TOKEN = re.compile(r"%[\w$]+(?![\w.])|(?<![\w.%$])-?(?:0x[0-9a-fA-F]+|\d+)(?![\w.$])")
_NEIGHBOUR = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq",
    "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi",
}  # fmt: skip
_DEEPEST = 6
_SIBLINGS = 4  #: numbers of other instructions that are tried for one
_RELATIVES = 6  #: registers that are tried for one
_STEP = 0.1  #: what each step back from an instruction costs
_ELSEWHERE = 1.0  #: what it costs that the finding does not show at an instruction's barriers
_LANES = (31, 127)  #: what masks the threads of a warp, and of a warpgroup


@dataclass(frozen=True, order=True)
class Slip:
    """Lines written otherwise; ``cost``: how unlikely it is."""

    cost: float
    position: int
    lines: tuple[tuple[int, str], ...]


class Slips:
    """The slips that a kernel could have, for one finding of it."""

    def __init__(self, kernel: Kernel, reading: KernelReading, refuted: Refutation, text: list[str]) -> None:
        self._body, self._text = kernel.function.body, text
        self._graph, self._uses = kernel.code.regions.graph, kernel.code.regions.uses
        self._kept = kernel.code.kept
        self._reading, self._refuted = reading, refuted
        self._writers: defaultdict[str, list[int]] = defaultdict(list)
        self._readers: defaultdict[str, list[int]] = defaultdict(list)
        for at in sorted(self._kept):
            for name in self._uses.writes[at]:
                self._writers[name].append(at)
            for name in self._uses.reads[at]:
                self._readers[name].append(at)
        self._numbers: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._addresses: defaultdict[str, set[int]] = defaultdict(set)  # the offsets of barriers that are meant by each
        self._on: defaultdict[int, set[int]] = defaultdict(set)
        program = reading.program
        for code, stream in zip(program.code, reading.streams, strict=True):
            for op, at in zip(code, stream.positions, strict=False):
                if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
                    self._on[at].add(reading.offsets[operand(op, "barrier")])
        self._focus: set[int] = set()  # offsets of barriers at which the finding shows
        self._guards: Counter[str] = Counter()
        self._synchronising = {at for stream in reading.streams for at in stream.positions}
        for at in self._kept:
            found = self._parsed(self._body[at])
            if found is not None:
                self._numbers[self._body[at].opcode].update(int(t, 0) for _, t in _tokens(found[5]) if not t.startswith("%"))
            if at in self._synchronising and self._body[at].guard is not None and found is not None and found[2]:
                self._guards[found[2].strip()] += 1
            if at in self._on and found is not None:
                for inner in re.findall(r"\[([^\]]*)\]", found[5]):
                    self._addresses[inner] |= self._on[at]

    def ranked(self) -> list[Slip]:
        """All of them, the likeliest first; a line is changed to one text once."""
        best: dict[tuple[tuple[int, str], ...], Slip] = {}
        for at, (cost, address) in self._suspects().items():
            for more, new in self._variants(at, address):
                slip = Slip(cost + more, at, ((self._body[at].line, new),))
                if slip.lines not in best or slip < best[slip.lines]:
                    best[slip.lines] = slip
        return sorted(best.values())

    # where

    def _suspects(self) -> dict[int, tuple[float, bool]]:
        """Positions with what it costs to come there, and whether it computes the address of an mbarrier."""
        found: dict[int, tuple[float, bool]] = {}
        waiting = [(cost, at, False, 0) for at, cost in self._shown().items()]
        heapify(waiting)
        while waiting:
            cost, at, address, depth = heappop(waiting)
            if at in found:
                continue
            found[at] = cost, address
            if depth >= _DEEPEST:
                continue
            here = depth == 0
            on_barrier = here and self._on_barrier(self._body[at])
            back = [
                (w, address or (on_barrier and n == 0))
                for n, name in enumerate(self._uses.needs[at] if here else self._uses.reads[at])
                for w in self._writers[name]
            ]
            guard = self._body[at].guard
            if guard is not None:
                back += [(w, False) for w in self._writers[guard.register]]
            if here:
                back += [(branch, False) for branch in self._deciding(at)]
            for w, is_address in back:
                heappush(waiting, (cost + _STEP, w, is_address, depth + 1))
        return found

    def _deciding(self, at: int) -> Iterator[int]:
        """The branches that end the blocks which dominate an instruction's, and those that leave its loops."""
        block = self._graph.block_of[at]
        leaving = {
            b
            for loop in self._graph.loops
            if block in loop.blocks
            for b in loop.blocks
            if any(after not in loop.blocks for after in self._graph.blocks[b].successors)
        }
        above: list[int] = []
        up = self._graph.dominators[block]
        while up is not None and len(above) < 3:
            above.append(up)
            up = self._graph.dominators[up]
        for each in dict.fromkeys((*sorted(leaving), *above)):
            last = self._graph.blocks[each].end - 1
            if self._body[last].guard is not None and last in self._kept:
                yield last

    def _shown(self) -> dict[int, float]:
        """The instructions that synchronise; those at which the finding shows cost nothing."""
        program, streams = self._reading.program, self._reading.streams
        groups: set[str] = set()
        near: set[int] = set()
        hang, fault = self._refuted.deadlock, self._refuted.fault
        if hang is not None:
            groups |= {b.barrier.rpartition("[")[0] or b.barrier for b in hang.blocked}
        for agent, pc in _sides(self._refuted) if fault is not None else ():
            code = program.code[agent]
            if agent >= len(streams) or pc >= len(code):
                continue
            near.add(streams[agent].positions[pc])
            near |= {at for op, at in zip(code, streams[agent].positions, strict=False) if op[0] == Op.WAIT_GROUP}
            for way in (range(pc, -1, -1), range(pc + 1, len(code))):
                signals = [at for at in way if code[at][0] in ON_BARRIER | ON_NAMED_BARRIER][:2]
                near |= {streams[agent].positions[at] for at in signals}
                groups |= {
                    program.barriers[operand(code[at], "barrier")].name
                    for at in signals
                    if code[at][0] in ON_BARRIER and operand(code[at], "barrier") >= 0
                }
        if fault is not None and fault.barrier >= 0:
            groups.add(program.barriers[fault.barrier].name)
        pairs = zip(program.barriers, self._reading.offsets, strict=True)
        self._focus |= {offset for barrier, offset in pairs if barrier.name in groups}
        found: dict[int, float] = {}
        for agent, stream in enumerate(streams):
            for op, at in zip(program.code[agent], stream.positions, strict=False):
                on = ""
                if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
                    on = program.barriers[operand(op, "barrier")].name
                elif op[0] in ON_NAMED_BARRIER:
                    on = f"named barrier {program.named_barrier(op)}"
                cost = 0.0 if at in near or on in groups else _ELSEWHERE
                found[at] = min(cost, found.get(at, cost))
        return found

    # what

    def _parsed(self, each: Instruction) -> tuple[str, ...] | None:
        found = _LINE.fullmatch(self._text[each.line - 1])
        return ("", *(part or "" for part in found.groups())) if found is not None else None

    def _variants(self, at: int, address: bool) -> Iterator[tuple[float, str]]:
        """The line of an instruction otherwise, and what that costs."""
        each = self._body[at]
        found = self._parsed(each)
        if found is None:
            return
        _, indent, guard, opcode, space, operands, end = found

        def line(guard: str = guard, opcode: str = opcode, operands: str = operands) -> str:
            return f"{indent}{guard}{opcode}{space}{operands}{end}"

        words = opcode.split(".")
        if words[0] == "setp":
            for n, word in enumerate(words):
                if word in _NEIGHBOUR:
                    cost = 0.5 if word not in ("eq", "ne") else 1.5
                    yield cost, line(opcode=".".join([*words[:n], _NEIGHBOUR[word], *words[n + 1 :]]))
        if words[0] in ("bar", "barrier") and "cluster" not in words:
            new = [{"sync": "arrive", "arrive": "sync"}.get(word, word) for word in words]
            yield 1.0, line(opcode=".".join(new))
        if "pred" in words and words[0] in ("and", "or"):
            yield 2.0, line(opcode=".".join([{"and": "or", "or": "and"}[words[0]], *words[1:]]))
        if words[0] == "selp":
            parts = [part.strip() for part in operands.split(",")]
            if len(parts) == 4:
                yield 1.0, line(operands=f"{parts[0]}, {parts[2]}, {parts[1]}, {parts[3]}")
        if at in self._synchronising:
            if guard:
                yield 0.5, line(guard="")
            flipped = guard.replace("@!", "@") if "@!" in guard else guard.replace("@", "@!")
            if guard:
                yield 2.0, line(guard=flipped)
            others = [g for g, _ in self._guards.most_common(_RELATIVES) if g != guard.strip()]
            yield from ((1.5, line(guard=f"{other} ")) for other in others)
        yield from self._with_operands(each, opcode, operands, address, line)

    def _with_operands(
        self, each: Instruction, opcode: str, operands: str, address: bool, line: Callable[..., str]
    ) -> Iterator[tuple[float, str]]:
        written = bool(self._uses.writes[each.position])
        comma = operands.find(",") if written else -1
        on_barrier = self._on_barrier(each)
        for start, token in _tokens(operands):
            if written and (comma < 0 or start < comma):
                continue
            rest = operands[start + len(token) :]

            def put(new: object, start: int = start, rest: str = rest) -> str:
                return line(operands=f"{operands[:start]}{new}{rest}")

            inside = operands.rfind("[", 0, start) > operands.rfind("]", 0, start)
            if token.startswith("%"):
                if not (inside and on_barrier):
                    yield from ((cost, put(name)) for cost, name in self._relatives(each, token))
                elif rest.startswith("]"):
                    yield from ((1.0, put(f"{token}+{by}")) for by in self._moves(each.position))
            else:
                for cost, new in self._values(each, opcode, inside, int(token, 0), address):
                    if new != int(token, 0):
                        yield cost, put(new)
        if on_barrier:
            for inner in re.findall(r"\[([^\]]*)\]", operands):
                here = self._addresses.get(inner, set())
                for other, there in self._addresses.items() if here else ():
                    if other != inner and (here | there) & self._focus:
                        yield 1.0, line(operands=operands.replace(f"[{inner}]", f"[{other}]"))

    def _on_barrier(self, each: Instruction) -> bool:
        words = each.modifiers
        return each.opcode == "mbarrier" or "mbarrier::complete_tx::bytes" in words or "commit" in words

    def _values(
        self, each: Instruction, opcode: str, inside: bool, value: int, address: bool
    ) -> Iterator[tuple[float, int]]:
        """Numbers that may be meant instead of one."""
        alike = [n for n, _ in self._numbers[each.opcode].most_common(_SIBLINGS + 1) if n != value][:_SIBLINGS]
        if each.opcode == "and":
            alike = list(dict.fromkeys((*(n for n in _LANES if n != value), *alike)))
        if inside and self._on_barrier(each):
            yield from ((1.0, value + by) for by in self._moves(each.position))
            return
        if address and opcode.startswith(("add", "mov")) and abs(value) > 1:
            yield from ((1.0, value + by) for by in self._distances())
        match each.opcode:
            case "xor" | "mov" | "selp" if value in (0, 1):
                yield 0.2, 1 - value
                yield 1.0, value + 1
                yield 1.5, value - 1
            case "setp":
                yield from ((0.5, value + by) for by in (1, -1))
                yield from ((1.5, n) for n in alike)
            case "cp" if "wait_group" in each.modifiers:
                yield from ((0.2, n) for n in range(value - 1, -1, -1))
            case "wgmma":
                yield from ((0.2, n) for n in range(value - 1, -1, -1))
            case "bar" | "barrier" | "mbarrier" | "and":
                yield from ((0.7, n) for n in alike)
                yield from ((1.5, value + by) for by in (1, -1, value, -(value // 2), 32, -32) if value + by >= 0)
            case _:
                small = abs(value) < 64
                yield from ((0.8 if small else 2.0, value + by) for by in (1, -1))
                yield from ((1.0, n) for n in alike)
                yield from ((1.5, n) for n in (2 * value, value // 2, 0) if not small)

    def _moves(self, at: int) -> Iterator[int]:
        """The distances from the barriers that an instruction is on to others: from or to those of the finding."""
        here, known = self._on[at], set(self._reading.offsets)
        for by in dict.fromkeys(b - a for a in sorted(here)[:1] for b in sorted(known) if a != b):
            there = {a + by for a in here}
            if there <= known and (there | here) & self._focus:
                yield by

    def _distances(self) -> list[int]:
        """The distances of the barriers of two groups, and of the next one in a group."""
        offsets: defaultdict[str, list[int]] = defaultdict(list)
        for barrier, offset in zip(self._reading.program.barriers, self._reading.offsets, strict=True):
            if not barrier.cta:
                offsets[barrier.name].append(offset)
        firsts = sorted(min(each) for each in offsets.values())
        found = Counter(b - a for a in firsts for b in firsts if a != b)
        near = [by for by, _ in found.most_common(8)]
        return list(dict.fromkeys([*near, 8, -8]))

    def _relatives(self, each: Instruction, token: str) -> Iterator[tuple[float, str]]:
        """Registers of the same sort that are computed from this one, or beside it, or from which it is."""
        reads, writes = self._uses.reads, self._uses.writes
        name = next((read for read in reads[each.position] if _plain(read) == _plain(token)), "")
        near: dict[str, None] = {}
        sources = [name]
        for _ in range(3):
            sources = [s for one in sources for w in self._writers[one] for s in reads[w] if s not in near]
            near |= dict.fromkeys(sources)
        near |= dict.fromkeys(w for r in self._readers[name] for w in writes[r])
        near |= dict.fromkeys(w for s in tuple(near)[:_RELATIVES] for r in self._readers[s] for w in writes[r])
        alike = [at for at in self._kept if self._body[at].opcode == each.opcode]
        alike.sort(key=lambda at: abs(at - each.position))
        near |= dict.fromkeys(read for at in alike[:_RELATIVES] for read in reads[at])
        but = {name, *writes[each.position]}
        some = [other for other in near if other not in but and _sort(other) == _sort(name)][:_RELATIVES]
        yield from ((1.5 + 0.05 * n, f"%{_plain(other)}") for n, other in enumerate(some) if name)


def _sort(register: str) -> str:
    """The letters with which the names of one type of register begin."""
    return _plain(register).rstrip("0123456789")


def _tokens(operands: str) -> list[tuple[int, str]]:
    return [(found.start(), found[0]) for found in _TOKEN.finditer(operands)]


def _plain(name: str) -> str:
    return name.lstrip("%").partition("$")[0]


def _sides(refuted: Refutation) -> list[tuple[int, int]]:
    fault = refuted.fault
    assert fault is not None
    pairs = ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc), (fault.cause_agent, fault.cause_pc))
    return [(agent, pc) for agent, pc in pairs if agent >= 0 and pc >= 0]
