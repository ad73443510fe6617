"""The naive judge of memory order: every operation and landing of a run a node, every edge drawn, every path walked."""

from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.model.coverage import Assumption
from pipesim.model.finding import FaultKind
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import IN_ORDER, OPERANDS, Engine, Fence, Op, Order, Scope, Space, order_of, scope_of
from pipesim.model.program import Program

Node = tuple[object, ...]  #: ("op", agent, pc) or ("land", agent, pc, barrier); a sync is an "in" and an "op"
Said = tuple[FaultKind, int, int, int, int]

_RELATIONS = ("occurs", "ordered", "synced", "published", "carried")
_ARRIVES = {Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE, Op.EXPECT_TX, Op.COMPLETE_TX}
_TAKES = {Op.WAIT, Op.WAIT_UNLESS}
_TRIES = {Op.TRY_WAIT, Op.TEST_WAIT}


@dataclass
class _Arrival:
    """A part of a phase: its node, the CTA it comes from (-1: an engine), order and scope, the fences before it."""

    node: Node
    cta: int
    order: Order
    scope: Scope
    fences: tuple[tuple[Node, Scope], ...]


class _Asked(NamedTuple):
    """A try: its order and scope, how many fences its agent had come to, and the phases complete when it said yes."""

    semantics: int
    fences: int
    phases: int


@dataclass
class _Access:
    node: Node
    agent: int
    pc: int
    engine: int  #: -2: the agent itself
    writes: bool
    cell: int
    written: tuple[int, ...] = ()  #: the operation, if agents other than this one carry it out as well, as a write

    def alike(self, other: "_Access") -> bool:
        """True if both write the same, so that no order of the two can be seen."""
        return bool(self.written) and self.written == other.written

    @property
    def generic(self) -> bool:
        return self.engine in (-2, Engine.CP_ASYNC)


@dataclass
class Graph:
    """Watches a run and writes everything down; :meth:`faults` then walks it."""

    program: Program
    edges: dict[str, dict[Node, set[Node]]] = field(default_factory=lambda: {r: {} for r in _RELATIONS})
    parts: dict[int, list[list[_Arrival]]] = field(default_factory=dict)
    last: dict[int, Node] = field(default_factory=dict)  #: of each agent
    fences: dict[int, tuple[tuple[Node, Scope], ...]] = field(default_factory=dict)  #: of each agent, all so far
    loose: dict[int, list[tuple[list[_Arrival], bool, tuple[int, int]]]] = field(default_factory=dict)
    knows: dict[str, list[tuple[int, int, Node]]] = field(default_factory=lambda: {r: [] for r in _RELATIONS})
    accesses: list[_Access] = field(default_factory=list)
    ends: dict[Node, tuple[int, int]] = field(default_factory=dict)  #: by landing: channel and phase
    groups: dict[Node, list[Node]] = field(default_factory=dict)  #: by access: the waits for its group
    grouped: list[tuple[int, int, int, Node]] = field(default_factory=list)  #: agent, engine, group, access
    closed: dict[tuple[int, int], list[Node]] = field(default_factory=dict)
    commits: list[tuple[int, int, int, int, int]] = field(default_factory=list)  #: agent, engine, issue, channel, phase
    issues: dict[Node, int] = field(default_factory=dict)
    tries: dict[tuple[int, int], _Asked] = field(default_factory=dict)
    joined: dict[tuple[int, int], int] = field(default_factory=dict)
    inits: dict[int, Node] = field(default_factory=dict)
    uses: list[tuple[Node, Node, Node, bool]] = field(default_factory=list)  #: use, what stands before it, init
    before: dict[int, Node] = field(default_factory=dict)  #: of each agent the operation before the last
    proxy: list[Node] = field(default_factory=list)
    publish: list[Node] = field(default_factory=list)
    init_fences: list[Node] = field(default_factory=list)
    tensor: dict[Fence, list[Node]] = field(default_factory=dict)  #: fences of tensor memory
    addresses: list[_Access] = field(default_factory=list)  #: reads of what tcgen05.alloc has written

    # drawing

    def edge(self, relations: tuple[str, ...], one: Node, other: Node) -> None:
        for relation in relations:
            self.edges[relation].setdefault(one, set()).add(other)

    def at(self, agent: int, node: Node) -> None:
        if agent in self.last:
            self.edge(_RELATIONS, self.last[agent], node)
            self.before[agent] = self.last[agent]
        self.last[agent] = node

    def open(self, channel: int) -> list[_Arrival]:
        return self.parts.setdefault(channel, [[]])[-1]

    def part(self, channel: int, arrival: _Arrival, result: Step) -> None:
        self.open(channel).append(arrival)
        if result.signalled == channel:
            self.parts[channel].append([])

    def on_step(self, before: State, agent: int, result: Step) -> None:
        pc = before.pcs[agent]
        op = self.program.code[agent][pc]
        moved = result.state.pcs[agent] != pc
        if op[0] == Op.BAR_SYNC and not before.holds[agent] and (moved or result.state.holds[agent]):
            node: Node = ("in", agent, pc)
            self.at(agent, node)
            channel = self.channel(op)
            self.joined[agent, channel] = len(self.parts.setdefault(channel, [[]])) - 1
            self.part(channel, _Arrival(node, self.cta(agent), Order.DEFAULT, Scope.DEFAULT, ()), result)
        if moved:
            node = ("op", agent, pc)
            self.at(agent, node)
            self.carry_out(before, agent, pc, op, node, result)

    def carry_out(self, before: State, agent: int, pc: int, op: tuple[int, ...], node: Node, result: Step) -> None:
        code = Op(op[0])
        names = dict(zip(OPERANDS[code], op[1:], strict=True))
        if code in _ARRIVES | _TAKES | _TRIES | {Op.CP_ASYNC_ARRIVE}:
            self.use(agent, op[1], node, asynchronous=False)
        if code in _ARRIVES:
            relaxed = code in (Op.EXPECT_TX, Op.COMPLETE_TX)
            order = Order.RELAXED if relaxed else order_of(names["semantics"])
            arrival = _Arrival(node, self.cta(agent), order, scope_of(names["semantics"]), self.fences.get(agent, ()))
            self.part(op[1], arrival, result)
        elif code == Op.TRY_WAIT:
            said_yes = result.state.registers[agent][op[3]]
            phases = len(self.parts.get(op[1], [[]])) - 1 if said_yes else 0
            self.tries[agent, op[3]] = _Asked(op[4], len(self.fences.get(agent, ())), phases)
        elif code in _TAKES:
            self.wait(before, agent, op, node)
        elif code in (Op.BAR_ARRIVE, Op.CLUSTER_ARRIVE):
            channel = self.channel(op)
            self.joined[agent, channel] = len(self.parts.setdefault(channel, [[]])) - 1
            order = order_of(op[1]) if code == Op.CLUSTER_ARRIVE else Order.DEFAULT
            arrival = _Arrival(node, self.cta(agent), order, Scope.CLUSTER, self.fences.get(agent, ()))
            self.part(channel, arrival, result)
        elif code in (Op.BAR_SYNC, Op.CLUSTER_WAIT):
            channel = self.channel(op)
            self.take(
                agent, node, channel, self.joined[agent, channel], acquires=True, narrow=False, narrow_for_good=False
            )
        elif code == Op.FENCE:
            self.fence(agent, node, Fence(op[1]), scope_of(op[2]))
        elif code in (Op.READ, Op.WRITE):
            self.access(node, agent, pc, -2, op[1], writes=code == Op.WRITE)
        elif code == Op.INIT:
            self.inits[op[1]] = node
        elif code == Op.WAIT_GROUP:
            self.wait_group(before, agent, op, node)
        self.transfer(before, agent, pc, op, node)

    def wait(self, before: State, agent: int, op: tuple[int, ...], node: Node) -> None:
        """A wait sees its phase; one that a try may have answered sees it itself, or stands behind what the try saw."""
        phases = len(self.parts.get(op[1], [[]])) - 1
        acquires, narrow, mine = _strength(op[-1])
        asked = self.tries.get((agent, op[3])) if op[0] == Op.WAIT_UNLESS else None
        if asked is not None:
            phases = asked.phases if before.registers[agent][op[3]] else phases
            at_once, tried_narrow, tried = _strength(asked.semantics)
            since = [scope for _, scope in self.fences.get(agent, ())[asked.fences :]]
            if not at_once and since:
                at_once, tried_narrow = True, tried_narrow or all(scope == Scope.CTA for scope in since)
            acquires, narrow, mine = acquires and at_once, narrow or tried_narrow, mine or tried
        if phases:
            self.take(agent, node, op[1], phases - 1, acquires=acquires, narrow=narrow, narrow_for_good=mine)

    def wait_group(self, before: State, agent: int, op: tuple[int, ...], node: Node) -> None:
        limit = before.commits[agent * len(Engine) + op[1]] - op[2]
        members = self.program.warp_groups[agent] if op[1] == Engine.WGMMA else (agent,)
        for who, engine, group, access in self.grouped:
            if who in members and engine == op[1] and group < limit:
                self.groups.setdefault(access, []).append(node)
        for member in members:
            closed = self.closed.get((member, op[1]), [])
            if 0 < limit <= len(closed):
                self.edge(_RELATIONS, closed[limit - 1], node)

    def transfer(self, before: State, agent: int, pc: int, op: tuple[int, ...], node: Node) -> None:
        code = Op(op[0])
        if code == Op.TMA_LOAD:
            self.use(agent, op[1], node, asynchronous=True)
            self.flies(node, agent, pc, op[1], hands_on=False)
            self.access(("land", agent, pc, op[1]), agent, pc, TMA, op[2], writes=True)
        elif code in (Op.TRANSFER_READ, Op.TRANSFER_WRITE):
            landing = self.flies(node, agent, pc, -1)
            self.access(landing, agent, pc, op[1], op[2], writes=code == Op.TRANSFER_WRITE)
            group = before.commits[agent * len(Engine) + op[1]]
            self.grouped.append((agent, op[1], group, landing))
        elif code == Op.CP_ASYNC_ARRIVE:
            self.flies(node, agent, pc, op[1], hands_on=False)
        elif code == Op.COMMIT and op[2] >= 0:
            self.use(agent, op[2], node, asynchronous=True)
            self.flies(node, agent, pc, op[2])
        elif code == Op.COMMIT:
            self.closed.setdefault((agent, op[1]), []).append(node)

    def flies(self, node: Node, agent: int, pc: int, bar: int, *, hands_on: bool = True) -> Node:
        """Bytes of a bulk copy and the arrival of cp.async order nothing of what their agent did before."""
        landing: Node = ("land", agent, pc, bar)
        self.issues[landing] = len(self.issues)
        self.edge(_RELATIONS if hands_on else ("occurs",), node, landing)
        return landing

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        if flight.barrier < 0:
            return
        landing: Node = ("land", flight.agent, flight.pc, flight.barrier)
        phase = len(self.parts.setdefault(flight.barrier, [[]])) - 1
        if flight.engine == TMA:
            self.ends[landing] = (flight.barrier, phase)
        else:
            self.commits.append((flight.agent, flight.engine, self.issues[landing], flight.barrier, phase))
        self.part(flight.barrier, _Arrival(landing, -1, Order.DEFAULT, Scope.DEFAULT, ()), result)

    def take(
        self, agent: int, node: Node, channel: int, phase: int, *, acquires: bool, narrow: bool, narrow_for_good: bool
    ) -> None:
        if phase >= len(self.parts.get(channel, [[]])) - 1:
            return
        arrivals = self.parts[channel][phase]
        for arrival in arrivals:
            self.edge(("occurs",), arrival.node, node)
        for relation in ("occurs", "carried"):
            self.knows[relation].append((channel, phase, node))
        self.carry(agent, node, arrivals, narrow=narrow if acquires else narrow_for_good)
        if acquires:
            self.receive(agent, node, arrivals, (channel, phase), narrow=narrow)
        if not acquires or narrow > narrow_for_good:
            self.loose.setdefault(agent, []).append((arrivals, narrow_for_good, (channel, phase)))

    def carry(self, agent: int, node: Node, arrivals: list[_Arrival], *, narrow: bool) -> None:
        """What a fence of tensor memory has ordered before an arrival, whatever the order of the two operations."""
        for each in arrivals:
            crossing = each.cta >= 0 and each.cta != self.cta(agent)
            if not crossing or (each.scope != Scope.CTA and not narrow):
                self.edge(("carried",), each.node, node)

    def receive(self, agent: int, node: Node, arrivals: list[_Arrival], what: tuple[int, int], *, narrow: bool) -> None:
        """The edges that order data, from every arrival to this operation: a wait, or the fence behind it."""
        self.carry(agent, node, arrivals, narrow=narrow)
        for relation in ("ordered", "synced"):
            self.knows[relation].append((*what, node))
        for each in arrivals:
            crossing = each.cta >= 0 and each.cta != self.cta(agent)
            reaches = not crossing or (each.scope != Scope.CTA and not narrow)
            if reaches:
                self.edge(("published",), each.node, node)
            givers: tuple[tuple[Node, Scope], ...] = ((each.node, Scope.DEFAULT),)
            if each.order in (Order.RELAXED, Order.ACQUIRE):
                givers = each.fences
            for giver, fenced in givers:
                self.edge(("ordered",), giver, node)
                if reaches and not (crossing and fenced == Scope.CTA):
                    self.edge(("synced",), giver, node)

    def fence(self, agent: int, node: Node, kind: Fence, scope: Scope) -> None:
        if kind in (Fence.ACQ_REL, Fence.SC):
            for arrivals, narrow, what in self.loose.get(agent, []):
                self.receive(agent, node, arrivals, what, narrow=narrow or scope == Scope.CTA)
                self.knows["occurs"].append((*what, node))
            self.fences[agent] = (*self.fences.get(agent, ()), (node, scope))
        self.tensor.setdefault(kind, []).append(node)
        if kind == Fence.PROXY_ASYNC:
            self.proxy.append(node)
            self.publish.append(node)
        if kind == Fence.MBARRIER_INIT:
            self.init_fences.append(node)

    def access(self, node: Node, agent: int, pc: int, engine: int, access: int, *, writes: bool) -> None:
        op = self.program.code[agent][pc]
        also = [n for n, code in enumerate(self.program.code) if n != agent and op in code]
        written = op if engine == -2 and writes and op[2] >= 0 and also else ()
        for cell in range(*self.program.cells[access]):
            self.accesses.append(_Access(node, agent, pc, engine, writes, cell, written))

    def use(self, agent: int, bar: int, node: Node, *, asynchronous: bool) -> None:
        if bar in self.inits and agent in self.before:
            self.uses.append((node, self.before[agent], self.inits[bar], asynchronous))

    def cta(self, agent: int) -> int:
        return self.program.agents[agent].cta

    def channel(self, op: tuple[int, ...]) -> int:
        barriers = len(self.program.barriers)
        named = op[0] in (Op.BAR_SYNC, Op.BAR_ARRIVE)
        return barriers + op[1] if named else barriers + len(self.program.named_barriers)

    # walking

    def path(self, relation: str, one: Node, other: Node) -> bool:
        seen, todo = {one}, [one]
        while todo:
            node = todo.pop()
            if node == other:
                return True
            for following in self.edges[relation].get(node, ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return False

    def over(self, relation: str, access: _Access, node: Node) -> bool:
        """True if the access is over before ``node``."""
        if access.engine == -2:
            return self.path(relation, access.node, node)
        if any(self.path(relation, wait, node) for wait in self.groups.get(access.node, ())):
            return True
        ends = [self.ends[access.node]] if access.node in self.ends else []
        for agent, engine, issue, channel, phase in self.commits:
            if (agent, engine) == (access.agent, access.engine) and issue > self.issues[access.node]:
                ends.append((channel, phase))
        return any(
            channel == there and later >= phase and self.path(relation, taker, node)
            for channel, phase in ends
            for there, later, taker in self.knows[relation]
        )

    def faults(self) -> set[Said]:
        """Every fault of memory order of the run."""
        found = {self.said(FaultKind.UNPUBLISHED_INIT, node, init) for node, here, init, asynchronous in self.uses
                 if self.path("occurs", init, here) and not self.published(init, here)
                 and ((asynchronous and self.needs_fence(init, node)) or not self.path("synced", init, here))
                 }  # fmt: skip
        writes: dict[int, list[_Access]] = {}  # by cell the latest, which are alike
        before: dict[int, list[_Access]] = {}  # by cell what the latest writes come after
        reads: dict[int, dict[tuple[int, int], _Access]] = {}
        for access in self.accesses:
            cell, rivals = access.cell, list(writes.get(access.cell, ()))
            if not access.writes:
                if any(each.engine == Engine.TCGEN05 for each in rivals):
                    self.addresses.append(access)
                reads.setdefault(cell, {})[access.agent, access.engine] = access
            elif rivals and access.alike(rivals[0]):
                before[cell] = rivals_now = before[cell] + list(reads.pop(cell, {}).values())
                writes[cell] = [each for each in rivals if each.agent != access.agent] + [access]
                rivals = rivals_now
            else:
                rivals += reads.pop(cell, {}).values()
                before[cell], writes[cell] = rivals, [access]
            for rival in rivals:
                kind = self.wrong(rival, access)
                if kind is not None:
                    found.add((kind, access.agent, access.pc, rival.agent, rival.pc))
        return found

    def said(self, kind: FaultKind, node: Node, init: Node) -> Said:
        (_, agent, pc), (_, other, other_pc) = node, init
        assert isinstance(agent, int)
        assert isinstance(pc, int)
        assert isinstance(other, int)
        assert isinstance(other_pc, int)
        return kind, agent, pc, other, other_pc

    def wrong(self, one: _Access, other: _Access) -> FaultKind | None:
        here: Node = ("op", other.agent, other.pc)
        if (one.agent, one.engine) == (other.agent, other.engine) and one.engine in IN_ORDER:
            return None
        if not self.over("occurs", one, here):
            return None
        tensor = self.in_space(other.cell, Space.TENSOR) and one.agent != other.agent
        if tensor and self.fenced(one, here):
            return None
        if not self.over("ordered", one, here):
            return FaultKind.WEAK_ORDER
        if not self.over("synced", one, here):
            return FaultKind.NARROW_SCOPE
        if tensor and Assumption.TENSOR_FENCES in self.program.strictness:
            return FaultKind.TENSOR_FENCE
        if one.generic == other.generic or not self.in_space(other.cell, Space.SHARED, Space.GLOBAL):
            return None
        if any(self.over("synced", one, f) and self.path("synced", f, here) for f in self.proxy):
            return None
        if not one.writes:
            blackwell = one.generic and self.program.fences_reads and one not in self.addresses
            return FaultKind.READ_NOT_FENCED if blackwell or Assumption.PROXIES in self.program.strictness else None
        return FaultKind.MISSING_PROXY_FENCE if one.generic else None

    def needs_fence(self, init: Node, use: Node) -> bool:
        """Without the strict rule it is enough within a CTA that its own agent uses it, or that a barrier of the CTA is
        what others first learn of it by."""
        (_, owner, first), (_, user, _) = init, use
        assert isinstance(owner, int)
        assert isinstance(user, int)
        assert isinstance(first, int)
        agents, initialised = self.program.agents, self.program.code[owner][first][1]
        ctas = {agents[owner].cta, agents[user].cta, self.program.barriers[initialised].cta}
        if Assumption.INIT in self.program.strictness or len(ctas) > 1:
            return True
        if user == owner:
            return False
        meets = {Op.BAR_SYNC, Op.BAR_ARRIVE, Op.CLUSTER_ARRIVE}
        for op in self.program.code[owner][first + 1 :]:
            here = op[2] if op[0] in (Op.COMMIT, Op.COMMIT_MULTICAST) else op[1]
            if op[0] in meets or (op[0] in _ARRIVES | {Op.COMMIT, Op.COMMIT_MULTICAST} and here != initialised):
                return op[0] not in meets
        return True

    def fenced(self, one: _Access, here: Node) -> bool:
        """True if a fence after the access, or a commit, reaches one before ``here`` by whatever synchronises."""
        after = [f for f in self.tensor.get(Fence.TCGEN05_AFTER, []) if f[1] == here[1] and f[2] < here[2]]  # type: ignore[operator]
        before: list[Node] = [f for f in self.tensor.get(Fence.TCGEN05_BEFORE, []) if f[1] == one.agent]
        before += [landing for landing in self.issues if landing[1] == one.agent and landing[3] != -1]
        if one.engine == -2:
            return any(self.path("carried", b, f) for b in before for f in after if b[2] > one.pc)  # type: ignore[operator]
        return any(self.over("carried", one, f) for f in after)

    def in_space(self, cell: int, *spaces: Space) -> bool:
        return any(
            a.space in spaces and first <= cell < end
            for a, (first, end) in zip(self.program.accesses, self.program.cells, strict=True)
        )

    def published(self, init: Node, node: Node) -> bool:
        fences = self.publish + [f for f in self.init_fences if f[1] == init[1]]
        return any(self.path("synced", init, f) and self.path("published", f, node) for f in fences)


def _strength(semantics: int) -> tuple[bool, bool, bool]:
    """Of a wait: whether it acquires, whether it then reaches its own CTA only, and whether no fence changes that."""
    narrow = scope_of(semantics) == Scope.CTA
    return order_of(semantics) in (Order.DEFAULT, Order.ACQUIRE, Order.ACQ_REL), narrow, narrow
