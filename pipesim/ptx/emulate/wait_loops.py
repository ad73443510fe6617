"""Loops that wait: those that only spin on an mbarrier or a word, and those whose end threads vote on or are handed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipesim.ptx.flow.graph import Graph, reached
from pipesim.ptx.flow.handed_waits import handed_waits
from pipesim.ptx.flow.looks_before import looks_before_loops
from pipesim.ptx.flow.opcodes import ARITHMETIC, PASS_ON, ends_a_spin, is_try, may_touch_shared
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.flow.voted_waits import SharedWait, voted_waits
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Guard, Instruction, Special


def follow_from(position: int, loop: frozenset[int], body: Sequence[Instruction], uses: Uses) -> frozenset[str]:
    """The results of the try at this position, and what is made of them alone; each has one writer in the loop. None
    of a try that is in no loop.
    """
    if position not in loop:
        return frozenset()
    writers: dict[str, int] = {}
    for p in loop:
        for name in uses.writes[p]:
            writers[name] = writers.get(name, 0) + 1
    found = {name for name in uses.writes[position] if writers[name] == 1}
    ahead = True
    while ahead:
        ahead = False
        for p in loop:
            made, read = uses.writes[p], uses.reads[p]
            if body[p].opcode not in PASS_ON or body[p].guard is not None or not read or found.issuperset(made):
                continue
            if found.issuperset(read) and all(writers[name] == 1 for name in made):
                found.update(made)
                ahead = True
    return frozenset(found)


@dataclass(eq=False)
class WaitLoops:
    """The loops of a function that wait, each found when it is first asked for.

    ``kept``: the positions of what is followed; ``step`` is called for each position that is looked at.
    """

    function: Function
    graph: Graph
    uses: Uses
    kept: frozenset[int]
    successors: Callable[[int], tuple[int, ...]]
    step: Callable[[int], None]
    _ends_otherwise: dict[int, bool] = field(default_factory=dict)
    _polls: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def _spins_through(self) -> list[bool]:
        """By position, whether a loop that only waits may have this instruction; the last is the end of the kernel."""
        return [not ends_a_spin(each) for each in self.function.body] + [False]

    @cached_property
    def spins(self) -> dict[int, frozenset[int]]:
        """For each try inside a loop that synchronises nothing else and keeps its operands, the loop's positions."""
        body = self.function.body
        found: dict[int, frozenset[int]] = {}
        for position in sorted(self.kept):
            each = body[position]
            if not is_try(each):
                continue
            loop = self._loop(position, self._kept_operands(position))
            if loop:
                found[position] = loop
        return found

    def _kept_operands(self, position: int) -> frozenset[str]:
        """The registers that must not change for a loop to give an instruction the same operands in each iteration.

        What its block computes before it is computed again in each iteration: from what it needs, or from nothing. An
        atomic needs its values as well: who compares with what the last try has returned waits for another value.
        """
        atomic = self.function.body[position].opcode == "atom"
        names = set((self.uses.reads if atomic else self.uses.needs)[position])
        for p in range(position - 1, self.graph.blocks[self.graph.block_of[position]].first - 1, -1):
            each, made = self.function.body[p], self.uses.writes[p]
            constant = each.opcode == "mov" and not any(isinstance(operand, Special) for operand in each.operands)
            if not names.isdisjoint(made) and each.guard is None and (constant or each.opcode in ARITHMETIC):
                names.difference_update(made)
                names.update(self.uses.reads[p])
        return frozenset(names)

    @cached_property
    def waits(self) -> dict[int, bool]:
        """The tries of :attr:`spins` whose loop one branch leaves by the try's answer alone, so that it is a wait.

        A loop that the answer of another try ends as well waits for either: it is none of them. True where the loop
        has a branch out of it besides.
        """
        found: dict[int, bool] = {}
        for position, loop in self.spins.items():
            exits = self._exits(loop)
            answers = follow_from(position, loop, self.function.body, self.uses)
            tries = [q for q in self.spins if q != position and q in loop]
            others = [follow_from(q, loop, self.function.body, self.uses) for q in tries]
            guards = {guard.register for guard in exits if guard is not None}
            if guards & answers and not any(guards & each for each in others):
                found[position] = len(exits) > 1
        return found

    def _exits(self, loop: frozenset[int]) -> list[Guard | None]:
        """The guards of the branches out of a loop."""
        body = self.function.body
        return [body[p].guard for p in sorted(loop) if any(s not in loop for s in self.successors(p))]

    def polls(self, position: int) -> bool:
        """Whether this load is in a loop that synchronises nothing and keeps its address: it waits for a store."""
        if position not in self._polls:
            self._polls[position] = bool(self.loop_around(position))
        return self._polls[position]

    @cached_property
    def voted(self) -> dict[int, SharedWait]:
        """The waits whose end all threads of a CTA vote on, by the position of the load, of the barrier, and of each
        load before the loop; and those whose answer is handed to all.
        """
        given = self.function.body, self.graph, self.uses
        found = (*voted_waits(*given), *handed_waits(*given))
        return {p: each for each in found for p in (*each.before, each.asks, each.learns)}

    @cached_property
    def barriers_of_waits(self) -> frozenset[int]:
        """The positions of all loops in which threads vote on the end of a wait, or are handed it."""
        return frozenset(p for each in self.voted.values() for p in each.loop)

    @cached_property
    def looks_before(self) -> dict[int, int]:
        """The loads that look at a word before the loop that waits for it, with the load in the loop."""
        return looks_before_loops(self.function.body, self.graph, self.uses)

    def is_used_after(self, position: int) -> bool:
        """Whether what this instruction of a loop leaves, or what the loop makes of it, is read beyond the loop."""
        loop, body, writes = self.innermost_loop_around(position), self.function.body, self.uses.writes
        names, before = frozenset(writes[position]), -1
        while len(names) > before:
            before = len(names)
            names = names.union(*(writes[p] for p in loop if self._reads(p, names)))

        def after(here: tuple[int, frozenset[str]]) -> list[tuple[int, frozenset[str]]]:
            p, live = here
            live = live.difference(writes[p]) if body[p].guard is None else live
            return [(s, live) for s in self.successors(p) if live and s < len(body)]

        left = [(s, names) for p in loop for s in self.successors(p) if s not in loop and s < len(body)]
        return any(self._reads(p, live) for p, live in reached(left, after))

    def loop_around(self, position: int) -> frozenset[int]:
        """The positions of a loop that synchronises nothing and keeps the operands of this instruction; else none.

        Where all threads vote on the end of the wait, the barrier is in its loop.
        """
        if position in self.voted and self.voted[position].asks == position:
            return self.voted[position].loop
        if position in self.looks_before:
            end = self.graph.blocks[self.graph.block_of[position]].end
            return self.loop_around(self.looks_before[position]) | frozenset(range(position, end))
        return self._loop(position, self._kept_operands(position))

    def innermost_loop_around(self, position: int) -> frozenset[int]:
        """As much of :meth:`loop_around` as lies in the innermost natural loop with this instruction."""
        block = self.graph.block_of[position]
        loops = [each.blocks for each in self.graph.loops if block in each.blocks]
        found = self.loop_around(position)
        if loops:
            inner = min(loops, key=len)
            found = frozenset(p for p in found if self.graph.block_of[p] in inner)
        return found

    def _reads(self, position: int, names: frozenset[str]) -> bool:
        guard = self.function.body[position].guard
        return not names.isdisjoint(self.uses.reads[position]) or (guard is not None and guard.register in names)

    def ends_otherwise(self, position: int) -> bool:
        """Whether the loop around a try may end by more than its answer, as one that asks a few times does."""
        if position in self.waits:
            return self.waits[position]
        if position not in self._ends_otherwise:
            loop = self._loop(position, frozenset())
            answers = follow_from(position, loop, self.function.body, self.uses)
            exits = self._exits(loop)
            self._ends_otherwise[position] = any(each is None or each.register not in answers for each in exits)
        return self._ends_otherwise[position]

    @cached_property
    def with_accesses(self) -> frozenset[int]:
        """The tries of :attr:`spins` whose loop touches memory that may be shared, also after "not yet"."""
        body = self.function.body
        return frozenset(
            p for p in self.spins if any(q in self.kept and may_touch_shared(body[q]) for q in self.spins[p])
        )

    def _loop(self, position: int, operands: frozenset[str]) -> frozenset[int]:
        """The positions on ways from here back to here that synchronise nothing and keep these; empty without one."""
        through, writes = self._spins_through, self.uses.writes

        def passable(p: int) -> bool:
            return through[p] and operands.isdisjoint(writes[p])

        before: dict[int, list[int]] = {}
        for p in reached([position], lambda p: filter(passable, self.successors(p))):
            self.step(p)
            for s in filter(passable, self.successors(p)):
                before.setdefault(s, []).append(p)
        return frozenset(reached([position], lambda p: before.get(p, ()))) if position in before else frozenset()
