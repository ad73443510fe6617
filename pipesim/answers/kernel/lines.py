"""A kernel's PTX file beside what its warps did: which lines became which operations, and changes of lines."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from pipesim.model.finding import Fault
from pipesim.model.groups import ON_NAMED_BARRIER, PARITY_WAITS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.correctable import in_rows
from pipesim.prove.repair.kinds import Repair
from pipesim.prove.repair.sites import members, stages_of
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.emit.record import FirstParities
from pipesim.ptx.flow.graph import ENDS, RETURNS
from pipesim.ptx.flow.opcodes import synchronises
from pipesim.ptx.flow.uses import computing_lines
from pipesim.ptx.kernel import EditableKernel, KernelReading
from pipesim.ptx.source_files import path_of
from pipesim.ptx.text.instruction import Frame, Immediate, Instruction, Register, Special

GUARD = re.compile(r"@!?%\w+\s+")
LAST_OPERAND = re.compile(r"[%\w]+(?=\s*;)")

_MOST_LINES = 4  #: that a sentence names
_MOST_BRANCHES = 2  #: around a line


@dataclass(frozen=True)
class LineChange:
    """Lines of the file that are written otherwise, and the change as a repair and in words."""

    lines: Mapping[int, str]
    repair: Repair
    said: str
    source: str = ""  #: the author's line that all of it maps to, where operations do not say so


class KernelLines:
    """The file, and its program as far as it was followed. ``in_rows``: with other arrays of barriers
    (:func:`~pipesim.prove.repair.correctable.in_rows`).
    """

    def __init__(self, kernel: EditableKernel, placed: KernelReading, *, in_rows: bool = False) -> None:
        self._placed, self._in_rows = placed.program, in_rows
        self._kernel = kernel
        self.where = placed.lines
        self._offsets = placed.offsets
        self._function = placed.function

    @cached_property
    def program(self) -> Program:
        """The program."""
        return in_rows(self._placed, self._offsets) if self._in_rows else self._placed

    @property
    def several_a_line(self) -> bool:
        """Whether some line of the source is several statements, as of functions that it calls, of one kind about the
        same.
        """
        instructions = zip(self.program.instructions, self.statements, strict=True)
        pairs = {pair for each, where in instructions for pair in zip(each, where, strict=True)}
        return len(pairs) > len({site for site, _ in pairs})

    @cached_property
    def statements(self) -> tuple[tuple[int, ...], ...]:
        """For each operation the first line of the PTX with an instruction of the same statement of the source, which a
        compiler repeats where it unrolls a loop or peels an iteration off it.
        """
        return tuple(tuple(self._statement[line] for line in lines) for lines in self.where)

    @cached_property
    def _statement(self) -> dict[int, int]:
        """For each line the first one of its statement.

        Of an instruction in a function that is called from several places, whose call the file does not say surely,
        the likely place is taken if all places with calls that are about the same have as many, as the iterations have
        of a loop that is unrolled.
        """
        about: defaultdict[int, set[tuple[int, str]]] = defaultdict(set)
        for lines, sites in zip(self.where, self.program.instructions, strict=True):
            for line, site in zip(lines, sites, strict=True):
                about[line].add((site.op, site.about))
        calls: defaultdict[object, Counter[tuple[Frame, ...]]] = defaultdict(Counter)
        for each in self._function.body:
            if each.source is not None:
                for what in about[each.line]:
                    calls[each.source.frames[-1], what][each.source.frames] += 1
        first: dict[object, int] = {}
        of_line: dict[int, int] = {}
        for each in self._function.body:
            source = each.source
            if source is not None and source.line:
                numbers = [set(calls[source.frames[-1], what].values()) for what in about[each.line]]
                known = source.sure or any(len(each) == 1 for each in numbers)
                key: object = source.frames if known else each.line
            else:
                key = each.line
            of_line[each.line] = first.setdefault(key, each.line)
        return of_line

    def is_copy(self, line: int, others: Collection[int]) -> bool:
        """True of a line of the same statement as one of the others."""
        return self._statement[line] in {self._statement[other] for other in others}

    def text(self, line: int) -> str:
        """The text of a line."""
        return self._kernel.line(line)

    def places(self, lines: Collection[int]) -> str:
        """``kernel.ptx, lines 101 and 108``; of many the first ones."""
        first, more = sorted(lines)[:_MOST_LINES], len(lines) - _MOST_LINES
        *others, last = [*first, f"{more} more"] if more > 0 else first
        said = f"{', '.join(map(str, others))} and " if others else ""
        return f"{self._kernel.ptx.name}, line{'s' if others else ''} {said}{last}"

    def wait_of(self, fault: Fault) -> tuple[int, int] | None:
        """The line and the mbarrier of a stale wait, or of the last wait for bytes before a read; None without one."""
        code, lines = self.program.code[fault.agent], self.where[fault.agent]
        counting = {operand(op, "barrier") for each in self.program.code for op in each if op[0] == Op.TMA_LOAD}
        for pc in range(min(fault.pc, len(code) - 1), -1, -1):  # of a program with more accesses it is further on
            if code[pc][0] in PARITY_WAITS and (pc == fault.pc or operand(code[pc], "barrier") in counting):
                return lines[pc], operand(code[pc], "barrier")
        return None

    def source_of(self, lines: Collection[int]) -> str:
        """The author's line of all operations of these lines, in the function that is called, "" if it is not one."""
        found = {self._inside[line] for line in lines if line in self._inside}
        if len(found) == 1 or not lines:
            return found.pop() if found else ""
        at = self._frames
        own = [[(f.file, f.line) for f in at.get(line, ()) if f.file == at[line][0].file] for line in lines]
        every = [each for each in own[0] if all(each in other for other in own)]  # the last: in a function called twice
        return f"{short_file(every[-1][0])}:{every[-1][1]}" if every else ""

    def call_of(self, lines: Collection[int], source: str) -> str:
        """The place that calls the function of which ``source`` is a line, "" if these lines are not of one call."""
        every = {tuple(f"{short_file(f.file)}:{f.line}" for f in self._frames.get(line, ())) for line in lines}
        found = {each[each.index(source) - 1] if source in each[1:] else "" for each in every}
        return found.pop() if len(found) == 1 else ""

    def place_of(self, lines: Collection[int], source: str = "") -> str:
        """The author's line of these lines (or ``source``) where it can be read, else the first of them."""
        source = source or self.source_of(lines)
        file = source.rpartition(":")[0]
        return source if path_of(file) != file else f"{self._kernel.ptx}:{min(lines)}"

    def line_at(self, agent: int, pc: int) -> str:
        """The author's line of an operation, in the function that is called."""
        where = self.where[agent]
        return self._inside[where[pc]] if pc < len(where) else ""

    @cached_property
    def _frames(self) -> dict[int, tuple[Frame, ...]]:
        """The places of each line of the PTX, of the kernel first, then of the functions that are called."""
        return {each.line: each.source.frames for each in self._function.body if each.source is not None}

    @cached_property
    def _inside(self) -> dict[int, str]:
        """The author's line of each line of the PTX that became an operation."""
        where = enumerate(self.where)
        return {line: self.program.line(agent, pc) for agent, lines in where for pc, line in enumerate(lines)}

    def line_in_function(self, agent: int, pc: int, other: int) -> str:
        """The line of an operation in the innermost function in which the other one is as well, "" if there is none."""
        where = self.where[agent]
        if not (0 <= pc < len(where) and other < len(where)):
            return ""
        if other < 0:
            return self.line_at(agent, pc)
        frames, others = self._frames.get(where[pc], ()), self._frames.get(where[other], ())
        same = next(
            (n for n, (a, b) in enumerate(zip(frames, others, strict=False)) if a != b), min(len(frames), len(others))
        )
        inside = same < min(len(frames), len(others)) and frames[same].function == others[same].function
        frame = frames[same if inside else same - 1] if same or inside else None
        return f"{short_file(frame.file)}:{frame.line}" if frame is not None else ""

    def instruction(self, position: int) -> Instruction:
        """By its position in the body."""
        return self._function.body[position]

    def computing(self, line: int) -> tuple[int, ...]:
        """The lines that compute the stage and parity of the wait at a line."""
        return computing_lines(self._function, line)

    def early_ends(self) -> list[int]:
        """The lines of branches by which threads end that reach no barrier which is further on in the file."""
        body = self._function.body
        last = max((n for n, each in enumerate(body) if each.opcode in ("bar", "barrier")), default=0)
        graph = self._kernel.prepared().code.regions.graph
        ends = {n for n, each in enumerate(graph.blocks) if body[each.first].opcode in RETURNS}
        found = [b for b in graph.blocks if b.end <= last and body[b.end - 1].guard and ends.intersection(b.successors)]
        return [body[each.end - 1].line for each in found][:_MOST_BRANCHES]

    def branches_around(self, line: int) -> list[tuple[int, int]]:
        """The lines of the branches that may lead past a line, the nearest first, each with the line where all meet."""
        graph, body = self._kernel.prepared().code.regions.graph, self._function.body
        block = graph.block_of[next(at for at, each in enumerate(body) if each.line == line)]
        found: list[tuple[int, int]] = []
        up = graph.dominators[block]
        while up is not None and len(found) < _MOST_BRANCHES:
            join, last = graph.post_dominators[up], body[graph.blocks[up].end - 1]
            if last.guard is not None and join not in (graph.exit, block):
                found.append((last.line, body[graph.blocks[join].first].line))
            up = graph.dominators[up]
        return found

    def lines_of(self, ops: Collection[int], on: Collection[int]) -> list[int]:
        """The lines of such operations on these barriers, or of operations on named barriers on these."""
        return sorted(
            {
                line
                for code, lines in zip(self.program.code, self.where, strict=True)
                for op, line in zip(code, lines, strict=True)
                if op[0] in ops and operand(op, "named_barrier" if op[0] in ON_NAMED_BARRIER else "barrier") in on
            }
        )

    def lines_at(
        self, program: Program, role: str, wanted: Callable[[Operation, SourceInstruction], bool]
    ) -> list[int]:
        """The lines of the operations of a role (or several) that are asked for; ``program`` as there."""
        return sorted(
            {
                self.where[agent][pc]
                for agent in members(program, role)
                for pc, op in enumerate(program.code[agent])
                if wanted(op, program.instructions[agent][pc])
            }
        )

    def always_before(self, lines: Collection[int], program: Program, role: str) -> list[int]:
        """The lines right after whose operations a role is always at one of these lines."""
        after: defaultdict[int, set[int]] = defaultdict(set)
        for agent in members(program, role):
            for line, following in pairwise((*self.where[agent], 0)):
                after[line].add(following)
        return sorted(line for line in after if after[line] <= set(lines))

    def first_parities(self, program: Program, repair: Repair) -> FirstParities:
        """The parities with which a role begins to wait for the barriers of a group of this program, which is as its
        own one but for names.
        """
        return {
            (agent, (program.barriers[barrier].cta, self._offsets[barrier])): repair.value
            for agent in members(program, repair.role)
            for barrier in stages_of(program, agent, repair.group).values()
        }

    def without_wait(self, access: str) -> dict[int, int]:
        """The last lines of loads of tensor memory (``ld``), or stores (``st``), that are not waited for before the
        next instruction that synchronises, or the end of their block, each with the line of that.
        """
        found, open_ = {}, 0
        for each in self._function.body:
            if each.opcode == "tcgen05" and each.has(access):
                open_ = each.line
            elif each.opcode == "tcgen05" and each.has(f"wait::{access}"):
                open_ = 0
            elif open_ and (each.opcode in ENDS or synchronises(each)):
                found[open_] = each.line
                open_ = 0
        return found

    def groups(self) -> list[tuple[int, ...]]:
        """The barriers of one CTA that have a name and a count in common, each group in the order of its addresses."""
        counts = {operand(op, "barrier"): operand(op, "count") for op in self.program.operations if op[0] == Op.INIT}
        found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for n, barrier in enumerate(self.program.barriers):
            if not barrier.cta:
                found[barrier.name, counts.get(n, 0)].append(n)
        return [tuple(sorted(group, key=self._offsets.__getitem__)) for group in found.values()]

    def count_of(self, group: Collection[int]) -> int:
        """The count with which the barriers of a group are initialised, 0 of none."""
        inits = (op for op in self.program.operations if op[0] == Op.INIT)
        return next((operand(op, "count") for op in inits if operand(op, "barrier") in group), 0)

    def agents_at(self, line: int) -> list[int]:
        """The agents of the first CTA that reached a line."""
        return [n for n, agent in enumerate(self._placed.agents) if not agent.cta and line in self.where[n]]

    def who(self, line: int) -> str:
        """The roles that reached a line; ``compute`` for that and ``compute_2``."""
        roles = dict.fromkeys(self.program.agents[n].role for n in self.agents_at(line))
        return " and ".join(role for role in roles if role.rpartition("_")[0] not in roles)

    def constant_of(self, lines: Collection[int], value: int) -> int | None:
        """The one line that moves a constant to a register which is the last operand of all these lines, if there is
        one: also instructions that no warp reached may have that operand.
        """
        named = {found[0].lstrip("%") for line in lines if (found := LAST_OPERAND.search(self.text(line))) is not None}
        moves = [each for each in self._function.body if _written(each) in named]
        if len(named) != 1 or len(moves) != 1 or moves[0].opcode != "mov":
            return None
        return moves[0].line if moves[0].operands[1] == Immediate(value) else None

    def rank_in(self, register: str) -> str:
        """The special register that alone is moved to a register, "" of another."""
        moves = [each for each in self._function.body if _written(each) == register.lstrip("%")]
        last = moves[0].operands[-1] if len(moves) == 1 else None
        return last.name if isinstance(last, Special) else ""


def _written(each: Instruction) -> str:
    """The register that is the first operand, "" if that is none."""
    first = each.operands[0] if each.operands else None
    return first.name.lstrip("%") if isinstance(first, Register) else ""
