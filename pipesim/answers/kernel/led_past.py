"""Why something that a barrier of a kernel waits for did not come: the branch by which an agent went past it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set

from pipesim.explain.blocked_agents import contributes
from pipesim.model.finding import BlockedAgent, Deadlock, LedPast
from pipesim.model.groups import ON_NAMED_BARRIER, PARITY_WAITS
from pipesim.model.machine import finished
from pipesim.model.ops import Operation, operand
from pipesim.model.program import Program
from pipesim.model.warp_shape import WARP
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Refutation
from pipesim.ptx.branch_decisions import BranchPast, comes_to, is_wait, led_past
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.emulation import Kernel
from pipesim.ptx.kernel import EditableKernel, KernelReading
from pipesim.ptx.names.paths import group_of
from pipesim.ptx.names.resolve import resolver_of

MOST = 2  #: that are reported of one deadlock
_MOST_AGENTS = 64  #: of a kernel whose branches are looked at

_Wanted = Callable[[Operation], bool]


def led_past_by(
    kernel: EditableKernel, program: Program, refuted: Refutation
) -> tuple[tuple[LedPast, BranchPast], ...]:
    """For what is missing in a deadlock of a kernel's program: which agents were led past it, and where.

    Nothing of what an agent still reaches, nor of a phase that is missed. The kernel is followed once more for each
    barrier.
    """
    found = refuted.deadlock
    if found is None or len(program.agents) > _MOST_AGENTS:
        return ()
    state = Play(program, refuted.schedule).state
    reading = kernel.read()
    if reading.program.code != program.code:
        return ()
    done = [len(code) if finished(program, state, a) else state.pcs[a] for a, code in enumerate(program.code)]
    told: dict[tuple[str, int], tuple[LedPast, BranchPast]] = {}
    for barrier in sorted(_missing(found), key=lambda each: each.parity < 0):
        if told and barrier.parity < 0:  # who waits for what is explained does not reach a meeting
            break
        look = _Missing(program, reading, done, barrier)
        for past in look.branches(kernel):
            told.setdefault((barrier.barrier, past.agent), (look.say(past), past))
        if len(told) >= MOST:
            break
    return tuple(told.values())[:MOST]


def _missing(found: Deadlock) -> Iterator[BlockedAgent]:
    """One agent for each barrier that lacks what no agent sends next."""
    seen: set[str] = set()
    for each in found.blocked:
        lacks = each.arrivals_missing > 0 or each.bytes_missing > each.bytes_in_flight
        if lacks and each.barrier not in seen and not any(s.next_line for s in each.suppliers):
            seen.add(each.barrier)
            yield each


class _Missing:
    """What is missing at one barrier, who has brought such a thing, and by which instructions."""

    def __init__(self, program: Program, reading: KernelReading, done: Sequence[int], blocked: BlockedAgent) -> None:
        self._program, self._blocked, self._done, self._streams = program, blocked, done, reading.streams
        names = [program.agent_name(agent) for agent in range(len(program.agents))]
        self._waiting = names.index(blocked.agent)
        wait = program.code[self._waiting][done[self._waiting]]
        self._here = self._wanted(wait, group=False)
        self._stage = program.barriers[operand(wait, "barrier")].stage if wait[0] in PARITY_WAITS else 0
        self._does = "arrive" if blocked.arrivals_missing else "copy"
        if wait[0] in ON_NAMED_BARRIER:
            self._does = "sync"
        self._at = self._positions(self._wanted(wait, group=True))
        self._own = self._positions(self._here) or self._at  #: of these those that have done so at this barrier
        self._waits = {each.position for each in reading.function.body if is_wait(each)}
        self._executed: dict[int, dict[int, set[int]]] = {}

    def _wanted(self, wait: Operation, *, group: bool) -> _Wanted:
        """A test for what brings it to this barrier, or to any of its group."""
        program = self._program
        if wait[0] in ON_NAMED_BARRIER:
            number = operand(wait, "named_barrier")
            return lambda op: op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number
        if wait[0] not in PARITY_WAITS:
            return lambda _: False
        part = "arrival" if self._blocked.arrivals_missing else "bytes"
        mine = program.barriers[operand(wait, "barrier")]
        alike = [n for n, b in enumerate(program.barriers) if b == mine or (group and b.name == mine.name)]
        tests = [contributes(program, n, part) for n in alike]
        return lambda op: any(test(op) for test in tests)

    def _positions(self, wanted: _Wanted) -> frozenset[int]:
        """The instructions that bring such a thing."""
        return frozenset(
            stream.positions[pc]
            for code, stream in zip(self._program.code, self._streams, strict=True)
            for pc, op in enumerate(code)
            if wanted(op)
        )

    def branches(self, kernel: EditableKernel) -> list[BranchPast]:
        """The branch of each agent that has not brought its part, of as many as are missing.

        Of the roles that bring such things; if none of these was led past it, of the agents that were led past it last.
        Without as many as still reach it, from the waits where they are now.
        """
        program, missing = self._program, max(self._blocked.arrivals_missing, 1)
        ready = kernel.prepared()
        if not self._at:  # nobody came there
            self._at = self._own = self._never_reached(ready)
        does = {a for a, stream in enumerate(self._streams) if not self._own.isdisjoint(stream.positions)}
        roles = {(program.agents[a].role, program.agents[a].cta) for a in does}
        lacks = self._lacks()
        held_up = {a for a in lacks if self._next(a) >= 0 and comes_to(ready, self._next(a), self._own)}
        every = led_past(ready, range(len(program.agents)), self._at)
        found = self._came_for(lacks, every, held_up) or self._in_part(every)
        come = held_up - found.keys()
        mine = [f for a, f in found.items() if (program.agents[a].role, program.agents[a].cta) in roles]
        others = [f for f in found.values() if f.depth == max(each.depth for each in found.values())]
        return sorted(mine or others, key=lambda past: past.agent)[: max(missing - len(come), 0)]

    def _never_reached(self, kernel: Kernel) -> frozenset[int]:
        """The arrives on the barriers of this group, as the source calls them, if no agent executes any."""
        sources = kernel.module.sources
        arrives = [each for each in kernel.function.body if each.opcode == "mbarrier" and each.has("arrive")]
        said = {each.position: resolver_of(sources).paths(each) for each in arrives} if sources is not None else {}
        name = self._blocked.barrier.partition("[")[0]
        return frozenset(
            at for at, of in said.items() if len(of) == 1 and f".{group_of(of[0])[0]}".endswith(f".{name}")
        )

    def _in_part(self, found: Sequence[BranchPast]) -> dict[int, BranchPast]:
        """The branch of each agent that arrives once in a phase, and in this one with some of its lanes alone."""
        chosen: dict[int, BranchPast] = {}
        for agent, (code, stream) in enumerate(zip(self._program.code, self._streams, strict=True)):
            mine = [pc for pc in range(self._done[agent]) if self._here(code[pc])]
            if len(mine) != self._blocked.phase_now + 1:
                continue
            step, past = stream.steps[mine[-1]][0], stream.positions[mine[-1]]
            usual = max(stream.path[stream.steps[pc][0]].lanes.bit_count() for pc in mine)
            if stream.path[step].lanes.bit_count() < usual:
                led = [p for p in found if (p.agent, p.step, p.past) == (agent, step, past)]
                chosen.update((agent, each) for each in led[-1:])
        return chosen

    def _next(self, agent: int) -> int:
        """The position where an agent is, -1 at its end."""
        positions = self._streams[agent].positions
        return positions[self._done[agent]] if self._done[agent] < len(positions) else -1

    def _lacks(self) -> list[int]:
        """The agents that may lack: earlier phases, which are complete, had what each brings, and this one has not."""
        brought = [sum(map(self._here, code[: self._done[a]])) for a, code in enumerate(self._program.code)]
        most = max(brought, default=0)
        if self._does == "sync":
            waiting = self._program.code[self._waiting][self._done[self._waiting]]
            heres = [
                code[at] if at < len(code) else () for code, at in zip(self._program.code, self._done, strict=True)
            ]
            return [a for a, here in enumerate(heres) if here != waiting and brought[a] <= most]
        phases = self._blocked.phase_now
        each = -(-most // (phases + 1))
        return [a for a, times in enumerate(brought) if phases <= times < max(phases + 1, each * (phases + 1))]

    def _came_for(self, agents: Sequence[int], found: Sequence[BranchPast], held_up: Set[int]) -> dict[int, BranchPast]:
        """The branch of each agent: the first one in place of this stage since it was last there, else the one by which
        it left for good, which an agent that is ``held_up`` on its way there has not done. One that waits has
        not left instructions that none of its role executes: what it would do later was not read.
        """
        chosen: dict[int, BranchPast] = {}
        for agent in agents:
            last = self._last_step(agent)
            mine = [p for p in found if p.agent == agent and p.step <= last and not self._lanes(p) & ~p.lanes]
            mine = [p for p in mine if p.ends or not self._instead(p)]
            turns = [past for past in mine if not past.ends and self._stage_of(past, mine) == self._stage]
            there = self._of_role(agent) if self._next(agent) >= 0 else {past.past for past in mine}
            ends = [past for past in mine if past.ends and agent not in held_up and past.past in there]
            if turns or ends:
                after = [past for past in turns if past.step > self._last_turn(past)]
                first = [past for past in after if past.step == after[0].step]  # the last alternative is the deepest
                chosen[agent] = max(first, key=lambda past: past.depth) if after else (turns or ends)[-1]
        return chosen

    def _turns_of(self, agent: int) -> dict[int, set[int]]:
        """The turns, each after a wait, in which an agent executed each instruction that brings such a thing."""
        if agent not in self._executed:
            turn, found = 0, defaultdict[int, set[int]](set)
            for each in self._streams[agent].path:
                turn += each.position in self._waits
                if each.position in self._at:
                    found[each.position].add(turn)
            self._executed[agent] = found
        return self._executed[agent]

    def _alternatives(self, past: BranchPast) -> set[int]:
        """The instructions of which its agent executes another one in each turn."""
        turns = self._turns_of(past.agent)
        return {at for at, of in turns.items() if of.isdisjoint(turns.get(past.past, ()))} | {past.past}

    def _instead(self, past: BranchPast) -> bool:
        """Whether the agent executed an alternative in the turn in which it was led past an instruction."""
        turn = sum(each.position in self._waits for each in self._streams[past.agent].path[: past.step])
        turns = self._turns_of(past.agent)
        return any(turn in turns.get(at, ()) for at in self._alternatives(past) - {past.past})

    def _of_role(self, agent: int) -> set[int]:
        """The instructions that the agents of its role execute."""
        role = self._program.agents[agent].role
        return {p for a, s in enumerate(self._streams) if self._program.agents[a].role == role for p in s.positions}

    def _lanes(self, past: BranchPast) -> int:
        """Those of an agent that execute an instruction where it does; of one that never does those of the others."""
        mine = self._turns(self._streams[past.agent], self._program.code[past.agent], past)
        lanes = {self._streams[past.agent].path[step].lanes for step, _ in mine}
        if not lanes:
            lanes = {
                s.path[at].lanes
                for s in self._streams
                for pc, (at, _) in enumerate(s.steps)
                if s.positions[pc] == past.past
            }
        return min(lanes, default=0)

    def _last_turn(self, past: BranchPast) -> int:
        mine = self._turns(self._streams[past.agent], self._program.code[past.agent], past)
        return max((step for step, stage in mine if stage == self._stage), default=-1)

    def _last_step(self, agent: int) -> int:
        stream, pc = self._streams[agent], self._done[agent]
        return stream.steps[pc][1] if pc < len(stream.steps) else len(stream.path)

    def _stage_of(self, past: BranchPast, found: Sequence[BranchPast]) -> int:
        """The stage that would have had its turn: stages come one after the other, what is led past included."""
        turns: list[tuple[int, int]] = sorted(
            self._turns(self._streams[past.agent], self._program.code[past.agent], past)
        )
        ring = sorted({self._stage} | {stage for each in self._all_turns(past) for _, stage in each})
        same = self._alternatives(past)
        skipped = {each.step for each in found if not each.ends and each.past in same}
        before = [turn for turn in turns if turn[0] < past.step]
        if before:
            since = sum(before[-1][0] < step <= past.step for step in skipped)
            return ring[(ring.index(before[-1][1]) + since) % len(ring)]
        first = next((turn for turn in turns if turn[0] >= past.step), None)
        if first is not None:
            until = sum(past.step <= step < first[0] for step in skipped)
            return ring[(ring.index(first[1]) - until) % len(ring)]
        starts = [min(each)[1] for each in self._all_turns(past) if each]
        return (
            ring[(ring.index(starts[0]) + sum(step < past.step for step in skipped)) % len(ring)]
            if starts
            else self._stage
        )

    def _all_turns(self, past: BranchPast) -> list[list[tuple[int, int]]]:
        return [list(self._turns(s, code, past)) for s, code in zip(self._streams, self._program.code, strict=True)]

    def _turns(self, stream: Stream, code: Sequence[Operation], past: BranchPast) -> Iterator[tuple[int, int]]:
        """Step and stage of each execution of the instruction that a branch led past, and of its alternatives."""
        same = self._alternatives(past)
        for pc, op in enumerate(code):
            if stream.positions[pc] in same and op[0] in ON_NAMED_BARRIER:
                yield stream.steps[pc][0], 0
            elif stream.positions[pc] in same and operand(op, "barrier") >= 0:
                yield stream.steps[pc][0], self._program.barriers[operand(op, "barrier")].stage

    def say(self, past: BranchPast) -> LedPast:
        """As the report has it."""
        name, barrier = self._program.agent_name(past.agent), self._blocked.barrier
        if any(each.position == past.past for each in self._streams[past.agent].path[past.step :][:1]):
            lanes = [lane for lane in range(WARP) if past.lanes >> lane & 1]
            name = f"lane {lanes[0]} of {name}" if len(lanes) == 1 else f"{len(lanes)} lanes of {name}"
        return LedPast(name, barrier, self._does, past.past_line, past.line, past.nth, past.ends, past.because)
