"""Groups of transfers that agents close and wait for: which are under way, and what was known when each was closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from pipesim.model.ops import Engine, Op
from pipesim.model.positions import ENGINE
from pipesim.model.program import Program
from pipesim.prove.happens_before.accesses import Accesses, AccessEvent
from pipesim.prove.happens_before.snapshot import Clock, Knowledge, Marks

M = TypeVar("M", Clock, Knowledge)


def awaited_groups(program: Program) -> frozenset[tuple[int, int]]:
    """The (agent, engine) whose groups an agent waits for: the agent, or for a wgmma any of its warp group."""
    waits = {(a, op[ENGINE]) for a, code in enumerate(program.code) for op in code if op[0] == Op.WAIT_GROUP}
    groups = {(member, engine) for a, engine in waits if engine == Engine.WGMMA for member in program.warp_groups[a]}
    return frozenset(waits | groups)


class Groups(Generic[M]):
    """The groups of one run that an agent waits for, by the agent that issued them and the engine: ``of``, where known.

    ``M`` is what an observer knows at a moment.
    """

    def __init__(self, program: Program, of: Iterable[tuple[int, int]] | None = None) -> None:
        self._program = program
        of = sorted(awaited_groups(program)) if of is None else of
        self._flown: dict[tuple[int, int], list[tuple[int, AccessEvent]]] = {key: [] for key in of}
        self._closed: dict[tuple[int, int], list[M]] = {key: [] for key in self._flown}
        self._waited: dict[tuple[int, int], int] = dict.fromkeys(self._flown, 0)

    def fork(self, program: Program) -> Groups[M]:
        """The same for another program, whose groups the same agents wait for."""
        twin = Groups[M](program, self._flown)
        twin._flown = {key: flown.copy() for key, flown in self._flown.items()}
        twin._closed = {key: moments.copy() for key, moments in self._closed.items()}
        twin._waited = self._waited.copy()
        return twin

    def add_access(self, group: int, access: AccessEvent) -> None:
        """An access is made by the group of this number, which its agent closes next."""
        flown = self._flown.get((access.agent, access.engine))
        if flown is not None:
            flown.append((group, access))

    def close_group(self, agent: int, engine: int, moment: M) -> None:
        """The agent closes a group; what comes after a wait for it comes after this moment."""
        closed = self._closed.get((agent, engine))
        if closed is not None:
            closed.append(moment)

    def wait(self, agent: int, pc: int, engine: int, limit: int, accesses: Accesses, moment: M) -> M:
        """The agent waits until its groups below ``limit`` are over, for a wgmma those of its whole warp group.

        Passes to ``accesses`` what is over, and returns what the agent knows then.
        """
        members = self._members(agent, engine)
        for member in members:
            for group, access in self._flown[member, engine]:
                if group < limit:
                    accesses.add_wait(access.flight, agent, pc)
            if limit > 0:
                moment = moment.join(self._closed[member, engine][limit - 1])
        self._waited[agent, engine] = max(limit, self._waited[agent, engine])
        over = min(self._waited[member, engine] for member in members)
        for member in members:
            mine = self._flown[member, engine]
            if mine and mine[0][0] < over:  # every warp has waited for these: no later wait asks for them
                mine[:] = [(group, access) for group, access in mine if group >= over]
        return moment

    def mark(self, marks: Marks, moments: Sequence[M], accesses: Accesses) -> None:
        """Enter the groups that an agent may yet wait for, counted back from the last one closed.

        ``moments``: what each agent knows. Where all who may wait for a group know by an mbarrier that an access is
        over, as of a product, a wait for the group adds nothing: an agent that learns of the wait also learns of that.
        """
        for agent, engine in self._closed:
            closed = self._closed[agent, engine]
            flown = self._flown[agent, engine]
            members = self._members(agent, engine)
            clocks = [clock for member in members for clock in _relations(moments[member])]
            flown[:] = [one for one in flown if not all(accesses.over(clock, one[1]) for clock in clocks)]
            waited = [self._waited[member, engine] for member in members]
            marks.shape += (agent, engine, len(flown))
            marks.shape += [len(closed) - groups for groups in waited]
            for moment in closed[max(min(waited) - 1, 0) :]:
                marks.moment(moment)
            for group, access in flown:
                marks.shape.append(len(closed) - group)
                marks.operations.append((access.agent, access.pc))

    def _members(self, agent: int, engine: int) -> tuple[int, ...]:
        return self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)


def _relations(moment: Clock | Knowledge) -> Iterator[Clock]:
    """The clocks of which each contains what its agent knew, where it contains one of the agent's operations."""
    if isinstance(moment, Clock):
        yield moment
    else:
        yield from (moment.occurs, moment.ordered, moment.synced)
        if moment.tensor is not None:
            yield moment.tensor
