"""A kernel that hangs while it is read, as far as it went: its operations by the lines of its PTX file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipesim.model.groups import BRINGS_BYTES, DELAYED_ARRIVALS, ON_NAMED_BARRIER, PARITY_WAITS, SIGNALS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.repair.kinds import Repair
from pipesim.ptx.kernel import EditableKernel, KernelReading

_LANES = 32
_SIGNAL = SIGNALS | BRINGS_BYTES | DELAYED_ARRIVALS


@dataclass(frozen=True)
class LineChange:
    """Lines of the file that are written otherwise, and the change as a repair and in words."""

    lines: Mapping[int, str]
    repair: Repair
    said: str


class HungKernel:
    """The file, and its program as far as it was followed."""

    def __init__(self, kernel: EditableKernel, placed: KernelReading) -> None:
        self.program: Program = placed.program
        self._kernel = kernel
        self._where = placed.lines
        self._offsets = placed.offsets

    def text(self, line: int) -> str:
        """The text of a line."""
        return self._kernel.line(line)

    def places(self, lines: Collection[int]) -> str:
        """``kernel.ptx, lines 101 and 108``."""
        *others, last = sorted(lines)
        said = f"{', '.join(map(str, others))} and " if others else ""
        return f"{self._kernel.ptx.name}, line{'s' if others else ''} {said}{last}"

    def lines_of(self, ops: Collection[int], on: Collection[int]) -> list[int]:
        """The lines of such operations on these barriers, or of operations on named barriers on these."""
        return sorted(
            {
                line
                for code, lines in zip(self.program.code, self._where, strict=True)
                for op, line in zip(code, lines, strict=True)
                if op[0] in ops and operand(op, "named_barrier" if op[0] in ON_NAMED_BARRIER else "barrier") in on
            }
        )

    # barriers

    def groups(self) -> list[tuple[int, ...]]:
        """The barriers of one CTA that have a name and a count in common, each group in the order of its addresses."""
        counts = {
            operand(op, "barrier"): operand(op, "count")
            for code in self.program.code
            for op in code
            if op[0] == Op.INIT
        }
        found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for n, barrier in enumerate(self.program.barriers):
            if not barrier.cta:
                found[barrier.name, counts.get(n, 0)].append(n)
        return [tuple(sorted(group, key=self._offsets.__getitem__)) for group in found.values()]

    def barrier_name(self, barrier: int) -> str:
        """As findings name it."""
        return self.program.barrier_name(barrier)

    def name(self, group: Collection[int]) -> str:
        """The name of a group."""
        return self.program.barriers[min(group)].name

    def is_signalled(self, group: Collection[int]) -> bool:
        """True if any agent has arrived on one of the barriers, or copied with it."""
        return any(op[0] in _SIGNAL and operand(op, "barrier") in group for code in self.program.code for op in code)

    def distance(self, barrier: int, group: tuple[int, ...] | Collection[int]) -> int | None:
        """Bytes from a barrier to that of the same stage in a group, None where it differs between stages."""
        other = next((each for each in self.groups() if barrier in each), ())
        there = tuple(group)
        if len(other) != len(there):
            return None
        apart = {self._offsets[b] - self._offsets[a] for a, b in zip(other, there, strict=True)}
        return apart.pop() if len(apart) == 1 else None

    # agents

    def roles(self) -> dict[str, list[int]]:
        """The agents of the first CTA by role."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for n, agent in enumerate(self.program.agents):
            if not agent.cta:
                found[agent.role].append(n)
        return found

    def agents_at(self, line: int) -> list[int]:
        """The agents of the first CTA that came to a line."""
        return [n for n, agent in enumerate(self.program.agents) if not agent.cta and line in self._where[n]]

    def who(self, line: int) -> str:
        """The roles that came to a line."""
        return " and ".join(dict.fromkeys(self.program.agents[n].role for n in self.agents_at(line)))

    def counted(self, group: Collection[int], agents: list[int]) -> tuple[str, str]:
        """Who of these agents arrives by the count of a group, in words, and the PTX of a predicate ("" for all)."""
        inits = (
            op for code in self.program.code for op in code if op[0] == Op.INIT and operand(op, "barrier") in group
        )
        count = next((operand(op, "count") for op in inits), 1)
        role = " and ".join(dict.fromkeys(self.program.agents[n].role for n in agents))
        if count == _LANES * len(agents):
            return f"every thread of {role}", ""
        if count == len(agents) > 1:
            return (
                f"one lane of each warp of {role}",
                "mov.u32 %pipesim_t, %laneid; setp.eq.u32 %pipesim_p, %pipesim_t, 0;",
            )
        thread = _LANES * min(self.program.agents[n].warp for n in agents)
        return f"one thread of {role}", f"mov.u32 %pipesim_t, %tid.x; setp.eq.u32 %pipesim_p, %pipesim_t, {thread};"

    def guarded(self, instruction: str, predicate: str) -> str:
        """The instruction by the threads of a predicate."""
        guard = "@%pipesim_p " if predicate else ""
        return f"{{ .reg .pred %pipesim_p; .reg .b32 %pipesim_t; {predicate} {guard}{instruction.strip()} }}"

    def after_waits(self, agent: int, group: Collection[int]) -> dict[int, tuple[int, list[int]]]:
        """For each line at which the agent waits for a barrier that is not of the group that barrier, and the lines
        until it waits there again, the last first.
        """
        found: dict[int, tuple[int, list[int]]] = {}
        code, lines = self.program.code[agent], self._where[agent]
        for pc, op in enumerate(code):
            if op[0] not in PARITY_WAITS or operand(op, "barrier") in group or lines[pc] in found:
                continue
            end = next((n for n in range(pc + 1, len(code)) if lines[n] == lines[pc]), len(code))
            after = dict.fromkeys(reversed([n for n in lines[pc + 1 : end] if n != lines[pc]]))
            found[lines[pc]] = operand(op, "barrier"), list(after)
        return found


def _equal(register: str, value: int) -> str:
    return f"mov.u32 %pipesim_t, {register}; setp.eq.u32 %pipesim_p, %pipesim_t, {value};"
