"""Regions of a kernel's control flow: what lies between a branch and the place where its ways meet again, and loops
that only spin on an mbarrier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipesim.bounds import MAX_REGION_STEPS
from pipesim.errors import PtxError
from pipesim.ptx.flow.divergence import needs_others
from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.handed_waits import handed_waits
from pipesim.ptx.flow.observations import Observations
from pipesim.ptx.flow.opcodes import PASS_ON, ends_a_spin, is_try, makes_others_wait, may_touch_shared, synchronises
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.flow.voted_waits import VotedWait, voted_waits
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


#: Opcodes whose result depends on nothing but their operands.
_ARITHMETIC = frozenset(
    {
        "add", "sub", "mul", "mad", "and", "or", "xor", "not", "neg", "shl", "shr", "min", "max", "setp", "selp", "cvt",
        "cvta", "mapa", "lop3", "shf", "bfe", "bfi", "prmt",
    }
)  # fmt: skip
_MOST_AHEAD = 200  #: positions of a way in which a meeting place is looked for


@dataclass(frozen=True)
class BranchRegion:
    """The instructions between a branch and ``join``, which is the end of the body if its ways meet nowhere.

    ``written``: names of the registers that they may write; ``varying``: those of them that are not given the same
    value again by each iteration of a loop that the branch ends. ``synchronising``: the positions that synchronise.
    ``noticed``: others wait for one of them or continue by it; ``accesses``: there are accesses that may be shared;
    ``polls``: it is a loop whose accesses are all loads that wait for a store. ``stores``: to local memory, which a
    load of this thread may see. ``on_global``: the positions of accesses to global memory, where these are followed.
    ``meetings``: those at which lanes wait for others of their warp.
    """

    join: int
    written: tuple[str, ...]
    varying: tuple[str, ...]
    synchronising: tuple[int, ...]
    noticed: bool
    accesses: bool
    stores: bool
    has_loop: bool
    polls: bool
    on_global: frozenset[int]
    meetings: frozenset[int]


class Regions:
    """The regions of a function, each computed when it is first asked for."""

    def __init__(
        self,
        function: Function,
        graph: Graph,
        kept: Collection[int],
        uses: Uses,
        opaque: Collection[int] = (),
        on_global: Collection[int] = (),
    ) -> None:
        self.function = function
        self.graph = graph
        self.kept = frozenset(kept)
        self.on_global = frozenset(on_global)
        self.uses = uses
        self.changing = self.kept | frozenset(opaque)  #: positions whose registers matter
        self._regions: dict[int, BranchRegion] = {}
        self._ahead: dict[int, tuple[int, ...]] = {}
        self._only_exits: dict[int, bool] = {}
        self._ends_otherwise: dict[int, bool] = {}
        self._polls: dict[int, bool] = {}
        self._steps = 0

    @cached_property
    def observations(self) -> Observations:
        """What is made of values that are loaded."""
        return Observations(self.function.body, self.uses)

    def successors(self, position: int) -> tuple[int, ...]:
        """The positions that may come next; the length of the body is the end of the kernel."""
        found = self._successors.get(position)
        return (position + 1,) if found is None else found

    @cached_property
    def _successors(self) -> dict[int, tuple[int, ...]]:
        """What comes after the last position of each block."""
        end, blocks = len(self.function.body), self.graph.blocks
        return {
            each.end - 1: tuple(blocks[b].first if b != self.graph.exit else end for b in each.successors)
            for each in blocks
        }

    @cached_property
    def _spins_through(self) -> list[bool]:
        """By position, whether a loop that only waits may have this instruction; the last is the end of the kernel."""
        return [not ends_a_spin(each) for each in self.function.body] + [False]

    def _step(self, position: int) -> None:
        """Look at one more instruction. PtxError if that was too many: they grow with the square of the branches."""
        self._steps += 1
        if self._steps > MAX_REGION_STEPS:
            raise PtxError(
                f"the control flow of {self.function.name} is too large to be followed",
                place=f"line {self.function.body[position].line}",
                cause=f"more than {MAX_REGION_STEPS:,} instructions lie between its branches and where they meet",
            )

    def synchronises_before(self, position: int, branch: int) -> bool:
        """Whether something synchronises on a way from here to where the ways of a branch meet."""
        join = self.region_at(branch).join
        seen: set[int] = set()
        open_ = [position]
        while open_:
            at = open_.pop()
            if at == join or at in seen or at >= len(self.function.body):
                continue
            seen.add(at)
            self._step(at)
            if at in self.kept and synchronises(self.function.body[at]):
                return True
            open_ += self.successors(at)
        return False

    def comes_to_a_barrier(self, position: int) -> bool:
        """Whether every way from here leads to a barrier of the CTA, before lanes meet otherwise or end."""
        body, seen, open_ = self.function.body, set[int](), [position]
        while open_:
            at = open_.pop()
            each = body[at] if at < len(body) else None
            if each is None or needs_others(each) or each.opcode in ("exit", "ret", "trap") or each.has("warp"):
                return False
            waits = each.opcode in ("bar", "barrier") and not each.has_any("arrive", "cluster") and each.guard is None
            if not waits and at not in seen:
                seen.add(at)
                open_ += self.successors(at)
        return True

    def ahead(self, position: int) -> tuple[int, ...]:
        """Positions of a straight way from here on, up to what synchronises first, where another way may join it."""
        found = self._ahead.get(position)
        if found is None:
            at = position
            seen: list[int] = []
            while at < len(self.function.body) and at not in seen and len(seen) < _MOST_AHEAD:
                seen.append(at)
                if at in self.kept and synchronises(self.function.body[at]):
                    break
                after = self.successors(at)
                if len(after) != 1:
                    break
                at = after[0]
            found = self._ahead[position] = tuple(seen)
        return found

    def region_at(self, branch: int) -> BranchRegion:
        """The region of the branch at this position."""
        found = self._regions.get(branch)
        if found is None:
            found = self._regions[branch] = self._region(branch)
        return found

    def _region(self, branch: int) -> BranchRegion:
        join = self.graph.meeting_point(branch)
        inside: set[int] = set()
        open_ = [s for s in self.successors(branch) if s != join]
        while open_:
            position = open_.pop()
            if position in inside or position >= len(self.function.body):
                continue
            inside.add(position)
            self._step(position)
            open_ += [s for s in self.successors(position) if s != join]
        body = self.function.body
        kept = sorted(inside & self.kept)
        written = dict.fromkeys(name for p in sorted(inside & self.changing) for name in self.uses.writes[p])
        sync = tuple(p for p in kept if synchronises(body[p]))
        loop = branch in inside or any(s <= p and s in inside for p in inside for s in self.successors(p))
        repeated = self._repeated_registers(branch, inside) if branch in inside else frozenset()
        varying = tuple(name for name in written if name not in repeated)
        noticed = any(makes_others_wait(body[p]) for p in sync)
        accesses = any(may_touch_shared(body[p]) for p in kept) or bool(sync)
        stores = any(body[p].opcode == "st" for p in kept)
        found = self.on_global.intersection(kept)
        touching = [body[p] for p in kept if may_touch_shared(body[p])]
        polls = loop and not sync and all(is_word(each) and each.opcode == "ld" for each in touching)
        meetings = frozenset(p for p in inside if needs_others(body[p]))
        return BranchRegion(
            join, tuple(written), varying, sync, noticed, accesses, stores, loop, polls, found, meetings
        )

    def _repeated_registers(self, branch: int, inside: set[int]) -> frozenset[str]:
        """Registers that each iteration of a loop, which ends or not at this branch, computes again from the same.

        They are written once in the loop, in the branch's own block and under no guard: so the value that a register
        has at the branch is that of every further iteration.
        """
        body, uses = self.function.body, self.uses
        first = self.graph.blocks[self.graph.block_of[branch]].first
        writers: dict[str, list[int]] = {}
        for p in inside:
            for name in uses.writes[p]:
                writers.setdefault(name, []).append(p)
        found: set[str] = set()
        for p in range(first, branch):
            each = body[p]
            same = all(name not in writers or name in found for name in uses.reads[p])
            if each.opcode in _ARITHMETIC and each.guard is None and same:
                found |= {name for name in uses.writes[p] if writers[name] == [p]}
        return frozenset(found)

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
            if not names.isdisjoint(made) and each.guard is None and (constant or each.opcode in _ARITHMETIC):
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
    def voted(self) -> dict[int, VotedWait]:
        """The waits whose end all threads of a CTA vote on, by the position of the load, of the barrier, and of each
        load before the loop; and those whose answer is handed to all.
        """
        given = self.function.body, self.graph, self.uses
        found = (*voted_waits(*given), *handed_waits(*given))
        return {p: each for each in found for p in (*each.before, each.load, each.barrier)}

    @cached_property
    def barriers_of_waits(self) -> frozenset[int]:
        """The positions of all loops in which threads vote on the end of a wait, or are handed it."""
        return frozenset(p for each in self.voted.values() for p in each.loop)

    def is_used_after(self, position: int) -> bool:
        """Whether what this instruction of a loop leaves, or what the loop makes of it, is read beyond the loop."""
        loop, blocks = self.innermost_loop_around(position), self.graph.blocks
        made, before = set(self.uses.writes[position]), -1
        while len(made) > before:
            before = len(made)
            made |= {name for p in loop if not made.isdisjoint(self.uses.reads[p]) for name in self.uses.writes[p]}
        inside = {self.graph.block_of[p] for p in loop}
        ends = {*inside, self.graph.exit}
        open_ = [(after, frozenset(made)) for b in inside for after in blocks[b].successors if after not in ends]
        seen = set(open_)
        while open_:
            block, live = open_.pop()
            for p in range(blocks[block].first, blocks[block].end):
                guard = self.function.body[p].guard
                if not live.isdisjoint((*self.uses.reads[p], *([guard.register] if guard is not None else []))):
                    return True
                live = live.difference(self.uses.writes[p])
            further = [(after, live) for after in blocks[block].successors if live and after != self.graph.exit]
            open_ += [each for each in further if each not in seen]
            seen.update(further)
        return False

    def loop_around(self, position: int) -> frozenset[int]:
        """The positions of a loop that synchronises nothing and keeps the operands of this instruction; else none.

        Where all threads vote on the end of the wait, the barrier is in its loop.
        """
        if position in self.voted and self.voted[position].load == position:
            return self.voted[position].loop
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

    def is_read_in_its_loop_alone(self, position: int) -> bool:
        """Whether the loop of a wait alone reads what its load returns, and what is computed of that."""
        loop, uses = self.innermost_loop_around(position), self.uses
        names, before = frozenset(uses.writes[position]), 0
        while len(names) > before:
            before = len(names)
            names = names.union(*(uses.writes[p] for p in loop if self._reads(p, names)))
        left = [(s, names) for p in loop for s in self.successors(p) if s not in loop]
        seen = set(left)
        while left:
            p, names = left.pop()
            if p >= len(self.function.body):  # the end
                continue
            if self._reads(p, names):
                return False
            names = names.difference(uses.writes[p]) if self.function.body[p].guard is None else names
            ahead = {(s, names) for s in self.successors(p)} - seen if names else set()
            seen |= ahead
            left += sorted(ahead, key=lambda each: each[0])
        return True

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

        ahead: set[int] = set()
        open_ = [s for s in self.successors(position) if passable(s)]
        before: dict[int, list[int]] = {}
        while open_:
            p = open_.pop()
            if p in ahead:
                continue
            ahead.add(p)
            self._step(p)
            for s in self.successors(p):
                if passable(s):
                    before.setdefault(s, []).append(p)
                    open_.append(s)
        if position not in ahead:
            return frozenset()
        for s in self.successors(position):
            before.setdefault(s, []).append(position)
        loop: set[int] = set()
        open_ = [position]
        while open_:
            p = open_.pop()
            for q in before.get(p, ()):
                if q in ahead and q not in loop:
                    loop.add(q)
                    open_.append(q)
        return frozenset(loop | {position})

    def ends_at(self, position: int) -> bool:
        """Whether the kernel ends here, with nothing before that is followed."""
        body = self.function.body
        seen: set[int] = set()
        while position < len(body) and position not in seen:
            each = body[position]
            if each.opcode in ("ret", "exit") and each.guard is None:
                return True
            if (position in self.kept or each.guard is not None) and each.opcode != "bra":
                return False
            seen.add(position)
            after = self.successors(position)
            if len(after) != 1:
                return False
            position = after[0]
        return position >= len(body)

    def may_signal(self, positions: Iterable[int]) -> bool:
        """Whether a way from one of these on has an instruction for which another warp may wait."""
        body, blocks, graph = self.function.body, self.graph.blocks, self.graph
        seen: set[int] = set()
        open_ = [position for position in positions if position < len(body)]
        while open_:
            first = open_.pop()
            block = graph.block_of[first]
            rest = body[first : blocks[block].end]
            if any(makes_others_wait(p) and not is_try(p) for p in rest):
                return True
            following = {blocks[b].first for b in blocks[block].successors if b != graph.exit}
            open_ += following - seen
            seen |= following
        return False

    def leads_nowhere(self, position: int) -> bool:
        """Whether every way from here ends the kernel, or a trap, and synchronises nothing."""
        found = self._only_exits.get(position)
        if found is None:
            found = self._only_exits[position] = self._nowhere(position)
        return found

    def _nowhere(self, position: int) -> bool:
        body = self.function.body
        seen: set[int] = set()
        open_ = [position]
        trapped = False
        while open_:
            p = open_.pop()
            if p in seen:
                continue
            seen.add(p)
            if p >= len(body):
                return False
            self._step(p)
            if body[p].opcode == "trap":
                trapped = True
                continue
            if synchronises(body[p]) and p in self.kept:
                return False
            if body[p].opcode in ("ret", "exit"):
                return False
            open_ += self.successors(p)
        return trapped
