"""Why something that a barrier of a kernel waits for did not come: the branch by which an agent went past it."""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from pipesim.answers.kernel.lines import GUARD, KernelLines, LineChange
from pipesim.explain.blocked_agents import contributes
from pipesim.model.finding import BlockedAgent, Deadlock, LedPast
from pipesim.model.groups import ON_NAMED_BARRIER, PARITY_WAITS
from pipesim.model.machine import finished
from pipesim.model.ops import Operation, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import families
from pipesim.ptx.branch_decisions import BranchPast, comes_to, is_wait, led_past
from pipesim.ptx.kernel import EditableKernel, KernelReading
from pipesim.ptx.names.paths import group_of
from pipesim.ptx.names.resolve import resolver_of
from pipesim.ptx.prepare import Kernel

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
    if found is None or len(program.agents) > _MOST_AGENTS or program.words_cta >= 0:
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


class _Execution(NamedTuple):
    """Of an instruction that brings what is missing: at which step of its agent, in which turn, each after a wait."""

    step: int
    stage: int
    at: int
    turn: int
    lanes: int


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
        self._alike: dict[tuple[int, int], list[_Execution]] = {}

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

        Of the roles that bring such things; if none of these was led past it, of the agents that share their code (of
        all if no agent does) those that were led past it last. Without as many as still reach it, from the waits where
        they are now.
        """
        program, missing = self._program, max(self._blocked.arrivals_missing, 1)
        ready = kernel.prepared()
        if not self._at:  # no agent arrived there
            self._at = self._own = self._never_reached(ready)
        does = {a for a, stream in enumerate(self._streams) if not self._own.isdisjoint(stream.positions)}
        roles = {(program.agents[a].role, program.agents[a].cta) for a in does}
        lacks = self._lacks()
        held_up = {a for a in lacks if self._next(a) >= 0 and comes_to(ready, self._next(a), self._own)}
        every = led_past(ready, range(len(program.agents)), self._at)
        found = self._came_for(lacks, every, held_up) or self._in_part(every)
        come = held_up - found.keys()
        mine = [f for a, f in found.items() if (program.agents[a].role, program.agents[a].cta) in roles]
        if not mine:
            alike, names = families(program), [agent.role for agent in program.agents]
            meant = {alike[role] for role, _ in roles if role in alike}
            mine = [f for f in found.values() if not roles or alike.get(names[f.agent]) in meant]
            mine = [f for f in mine if f.depth == max(each.depth for each in mine)]
        return sorted(mine, key=lambda past: past.agent)[: max(missing - len(come), 0)]

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
            stream, pc = self._streams[agent], self._done[agent]
            last = stream.steps[pc][1] if pc < len(stream.steps) else len(stream.path)
            mine = [p for p in found if p.agent == agent and p.step <= last and (p.ends or not self._instead(p))]
            wait = stream.path[last - 1].lanes if agent in held_up and last else 0  # lanes that still come there
            mine = [p for p in mine if not (self._lanes(p) or wait) & ~p.lanes]
            turns = [past for past in mine if not past.ends and self._stage_of(past, mine) == self._stage]
            there = self._of_role(agent) if self._next(agent) >= 0 else {past.past for past in mine}
            ends = [past for past in mine if past.ends and agent not in held_up and past.past in there]
            if turns or ends:
                after = [past for past in turns if past.step > self._last_turn(past)]
                first = [past for past in after if past.step == after[0].step]  # the last alternative is the deepest
                chosen[agent] = max(first, key=lambda past: past.depth) if after else (turns or ends)[-1]
        return chosen

    @cached_property
    def _turn_at(self) -> list[list[int]]:
        """Of each agent and step: how many waits it has executed."""
        return [list(accumulate(step.position in self._waits for step in stream.path)) for stream in self._streams]

    @cached_property
    def _executed(self) -> list[list[_Execution]]:
        """What brings such things to the group, in the order in which each agent does so."""
        found: list[list[_Execution]] = []
        for stream, code, turn_at in zip(self._streams, self._program.code, self._turn_at, strict=True):
            mine = [
                _Execution(step, stage, at, turn_at[step], stream.path[step].lanes)
                for op, at, (step, _) in zip(code, stream.positions, stream.steps, strict=True)
                if at in self._at and (stage := self._stage_at(op)) >= 0
            ]
            found.append(sorted(mine))
        return found

    def _stage_at(self, op: Operation) -> int:
        if op[0] in ON_NAMED_BARRIER:
            return 0
        barrier = operand(op, "barrier")
        return self._program.barriers[barrier].stage if barrier >= 0 else -1

    def _alternatives(self, past: BranchPast) -> list[_Execution]:
        """What its agent executed of an instruction, and of others that it never executed in a turn of that one."""
        if (past.agent, past.past) not in self._alike:
            mine = self._executed[past.agent]
            turns = {each.turn for each in mine if each.at == past.past}
            other = {each.at for each in mine if each.turn in turns} - {past.past}
            self._alike[past.agent, past.past] = [each for each in mine if each.at not in other]
        return self._alike[past.agent, past.past]

    def _instead(self, past: BranchPast) -> bool:
        """Whether the agent executed an alternative in the turn in which it was led past an instruction."""
        turn = self._turn_at[past.agent][past.step - 1] if past.step else 0
        return any(each.turn == turn and each.at != past.past for each in self._alternatives(past))

    def _of_role(self, agent: int) -> set[int]:
        """The instructions that the agents of its role execute."""
        role = self._program.agents[agent].role
        return {p for a, s in enumerate(self._streams) if self._program.agents[a].role == role for p in s.positions}

    def _lanes(self, past: BranchPast) -> int:
        """Those of an agent that execute an instruction where it does; of one that never does those of the others."""
        every = (each for mine in self._executed for each in mine if each.at == past.past)
        return min((each.lanes for each in self._alternatives(past) or every), default=0)

    def _last_turn(self, past: BranchPast) -> int:
        return max((each.step for each in self._alternatives(past) if each.stage == self._stage), default=-1)

    def _stage_of(self, past: BranchPast, found: Sequence[BranchPast]) -> int:
        """The stage that would have had its turn: stages come one after the other, what is led past included."""
        turns = self._alternatives(past)
        same = {past.past, *(each.at for each in turns)}
        others = [[each.stage for each in mine if each.at in same] for mine in self._executed]
        ring = sorted({self._stage}.union(*others))
        skipped = {each.step for each in found if not each.ends and each.past in same}
        before = [each for each in turns if each.step < past.step]
        starts = [stages[0] for stages in others if stages]
        if before:
            known, more = before[-1].stage, sum(before[-1].step < step <= past.step for step in skipped)
        elif turns:
            known, more = turns[0].stage, -sum(past.step <= step < turns[0].step for step in skipped)
        else:
            known, more = (starts or [self._stage])[0], sum(step < past.step for step in skipped)
        return ring[(ring.index(known) + more) % len(ring)]

    def say(self, past: BranchPast) -> LedPast:
        """As the report has it."""
        name, barrier = self._program.agent_name(past.agent), self._blocked.barrier
        if any(each.position == past.past for each in self._streams[past.agent].path[past.step :][:1]):
            lanes = [lane for lane in range(WARP) if past.lanes >> lane & 1]
            name = f"lane {lanes[0]} of {name}" if len(lanes) == 1 else f"{len(lanes)} lanes of {name}"
        return LedPast(
            name, barrier, self._does, past.past_line, past.line, past.nth, past.ends, past.because, *past.said
        )


def not_past(kernel: KernelLines, led_past: Sequence[BranchPast]) -> Iterator[LineChange]:
    """Without the condition of a branch that led an agent past what it should have done."""
    for past in led_past:
        each = kernel.instruction(past.at)
        if past.only or not kernel.text(each.line).lstrip().startswith("@"):
            continue
        always = GUARD.sub("", kernel.text(each.line), count=1)
        new = always if past.at == past.past or not past.taken else f"// {kernel.text(each.line)}"
        role = kernel.program.agents[past.agent].role
        does = "arrives" if "arrive" in kernel.instruction(past.past).modifiers else "does so"
        omit = f"omit the condition at {past.line} ({kernel.places([each.line])})"
        words = f"{role} {does} every time ({past.past_line}): {omit}"
        yield LineChange({each.line: new}, Repair(RepairKind.NOT_PAST, role, ""), words, past.line)
