"""Regions of a kernel's control flow: what lies between a branch and the place where its ways meet again."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pipesim.bounds import MAX_REGION_STEPS
from pipesim.errors import PtxError
from pipesim.ptx.emulate.wait_loops import WaitLoops
from pipesim.ptx.flow.divergence import needs_others
from pipesim.ptx.flow.graph import Graph, reached
from pipesim.ptx.flow.observations import Observations
from pipesim.ptx.flow.opcodes import ARITHMETIC, is_try, makes_others_wait, may_touch_shared, synchronises
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function

_MOST_AHEAD = 200  #: positions of a way in which a meeting place is looked for


@dataclass(frozen=True)
class BranchRegion:
    """The instructions between a branch and ``join``, which is the end of the body if its ways meet nowhere.

    ``written``: names of the registers that they may write; ``varying``: those of them that are not given the same
    value again by each iteration of a loop that the branch ends. ``synchronising``: the positions that synchronise.
    ``noticed``: others wait for one of them or continue by it, or a warp may never leave; ``accesses``: there
    are accesses that may be shared, ``touching`` their positions, () where one of them may wait for a store of another
    thread; ``polls``: it is a loop whose accesses are all loads that wait for a store. ``stores``: to local memory,
    which a load of this thread may see. ``on_global``: the positions of accesses to global memory, where these are
    followed.
    ``meetings``: those at which lanes wait for others of their warp.
    """

    join: int
    written: tuple[str, ...]
    varying: tuple[str, ...]
    synchronising: tuple[int, ...]
    noticed: bool
    accesses: bool
    touching: tuple[int, ...]
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
        self._steps = 0

    @cached_property
    def loops(self) -> WaitLoops:
        """The loops that wait."""
        return WaitLoops(self.function, self.graph, self.uses, self.kept, self.successors, self.step)

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
    def _endless(self) -> frozenset[int]:
        """Where loops begin that no branch leaves."""
        return frozenset(self.graph.blocks[block].first for each in self.graph.endless for block in each)

    def step(self, position: int) -> None:
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
        ways = self._ways_from([position], self.region_at(branch).join)
        return any(at in self.kept and synchronises(self.function.body[at]) for at in ways)

    def _ways_from(self, starts: Iterable[int], join: int) -> Iterator[int]:
        """The positions on the ways from some to where these meet, each once."""
        end = len(self.function.body)

        def inside(positions: Iterable[int]) -> list[int]:
            return [at for at in positions if at != join and at < end]

        for at in reached(inside(starts), lambda at: inside(self.successors(at))):
            self.step(at)
            yield at

    def comes_to_a_barrier(self, position: int) -> bool:
        """Whether every way from here leads to a barrier of the CTA, before lanes meet otherwise or end."""
        body = self.function.body

        def after(at: int) -> tuple[int, ...]:
            waits = body[at].opcode in ("bar", "barrier") and not body[at].has_any("arrive", "cluster")
            return () if waits and body[at].guard is None else self.successors(at)

        for at in reached([position], after):
            each = body[at] if at < len(body) else None
            if each is None or needs_others(each) or each.opcode in ("exit", "ret", "trap") or each.has("warp"):
                return False
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
        inside = set(self._ways_from(self.successors(branch), join))
        body = self.function.body
        kept = sorted(inside & self.kept)
        written = dict.fromkeys(name for p in sorted(inside & self.changing) for name in self.uses.writes[p])
        sync = tuple(p for p in kept if synchronises(body[p]))
        loop = branch in inside or any(s <= p and s in inside for p in inside for s in self.successors(p))
        repeated = self._repeated_registers(branch, inside) if branch in inside else frozenset()
        varying = tuple(name for name in written if name not in repeated)
        noticed = any(makes_others_wait(body[p]) for p in sync) or not self._endless.isdisjoint(inside)
        accesses = any(may_touch_shared(body[p]) for p in kept) or bool(sync)
        stores = any(body[p].opcode == "st" for p in kept)
        found = self.on_global.intersection(kept)
        touching = [body[p] for p in kept if may_touch_shared(body[p])]
        looks = [each.opcode == "ld" and is_word(each, shared=True) for each in touching]
        polls = loop and not sync and all(is_word(each) and each.opcode == "ld" for each in touching)
        data = () if sync or any(looks) else tuple(each.position for each in touching)
        meetings = frozenset(p for p in inside if needs_others(body[p]))
        return BranchRegion(
            join, tuple(written), varying, sync, noticed, accesses, data, stores, loop, polls, found, meetings
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
            if each.opcode in ARITHMETIC and each.guard is None and same:
                found |= {name for name in uses.writes[p] if writers[name] == [p]}
        return frozenset(found)

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
        body, graph = self.function.body, self.graph

        def last(position: int) -> int:
            return graph.blocks[graph.block_of[position]].end - 1

        begun = (position for position in positions if position < len(body))
        parts = (body[at : last(at) + 1] for at in reached(begun, lambda at: graph.after(last(at))))
        return any(makes_others_wait(each) and not is_try(each) for part in parts for each in part)

    def leads_nowhere(self, position: int) -> bool:
        """Whether every way from here ends the kernel, or a trap, and synchronises nothing."""
        found = self._only_exits.get(position)
        if found is None:
            found = self._only_exits[position] = self._nowhere(position)
        return found

    def _nowhere(self, position: int) -> bool:
        body, trapped = self.function.body, False
        for p in reached([position], lambda p: self.successors(p) if body[p].opcode != "trap" else ()):
            if p >= len(body):
                return False
            self.step(p)
            if body[p].opcode in ("ret", "exit") or (synchronises(body[p]) and p in self.kept):
                return False
            trapped = trapped or body[p].opcode == "trap"
        return trapped
