"""Corrections of a kernel for which its flat program is not enough: lines of its PTX are changed, and it is read again.

A kernel is followed as far as its warps go. Where they hang, what comes after is not known; where a wait is stale, the
reads after it are known with what they have read. No change of the flat program can be proved then; here the file is
changed, followed again to its end, and checked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from pipesim.answers.budget import Unit
from pipesim.errors import PipesimError
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.groups import (
    BRINGS_BYTES,
    BY_PARITY,
    DELAYED_ARRIVALS,
    ENGINE_ACCESSES,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    SIGNALS,
)
from pipesim.model.ops import Engine, Op, operand
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.arithmetic import count_of, counts, expects, threads
from pipesim.prove.repair.behind import Hidden, finding_key
from pipesim.prove.repair.correction import Correction, corrections
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sentences import sentence
from pipesim.prove.repair.sites import barriers_of
from pipesim.ptx.branch_decisions import BranchPast
from pipesim.ptx.flow.graph import ENDS
from pipesim.ptx.flow.loop_values import computing_lines
from pipesim.ptx.kernel import EditableKernel, KernelReading
from pipesim.ptx.text.instruction import Immediate, Instruction, Register

_LANES = 32
_SIGNAL = SIGNALS | BRINGS_BYTES | DELAYED_ARRIVALS


@dataclass(frozen=True)
class LineChange:
    """Lines of the file that are written otherwise, and the change as a repair and in words."""

    lines: Mapping[int, str]
    repair: Repair
    said: str
    source: str = ""  #: the author's line that all of it maps to, where operations do not say so


class HungKernel:
    """The file, and its program as far as it was followed."""

    def __init__(self, kernel: EditableKernel, placed: KernelReading) -> None:
        self.program: Program = placed.program
        self._kernel = kernel
        self._where = placed.lines
        self._offsets = placed.offsets
        self._function = placed.function

    def text(self, line: int) -> str:
        """The text of a line."""
        return self._kernel.line(line)

    def places(self, lines: Collection[int]) -> str:
        """``kernel.ptx, lines 101 and 108``."""
        *others, last = sorted(lines)
        said = f"{', '.join(map(str, others))} and " if others else ""
        return f"{self._kernel.ptx.name}, line{'s' if others else ''} {said}{last}"

    def wait_of(self, fault: Fault) -> tuple[int, int] | None:
        """The line and the mbarrier of a stale wait, or of the last wait for bytes before a read; None without one."""
        code, lines = self.program.code[fault.agent], self._where[fault.agent]
        counting = {operand(op, "barrier") for each in self.program.code for op in each if op[0] == Op.TMA_LOAD}
        for pc in range(fault.pc, -1, -1):
            if code[pc][0] in PARITY_WAITS and (pc == fault.pc or operand(code[pc], "barrier") in counting):
                return lines[pc], operand(code[pc], "barrier")
        return None

    def source_of(self, lines: Collection[int]) -> str:
        """The author's line of all operations of these lines, "" if there are several."""
        found = {
            self.program.line(agent, pc)
            for agent, where in enumerate(self._where)
            for pc, line in enumerate(where)
            if line in lines
        }
        return found.pop() if len(found) == 1 else ""

    def instruction(self, position: int) -> Instruction:
        """By its position in the body."""
        return self._function.body[position]

    def computing(self, line: int) -> tuple[int, ...]:
        """The lines that compute the stage and parity of the wait at a line."""
        return computing_lines(self._function, line)

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

    def count_of(self, group: Collection[int]) -> int:
        """The count with which the barriers of a group are initialised, 0 of none."""
        inits = (op for code in self.program.code for op in code if op[0] == Op.INIT)
        return next((operand(op, "count") for op in inits if operand(op, "barrier") in group), 0)

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
        """The agents of the first CTA that reached a line."""
        return [n for n, agent in enumerate(self.program.agents) if not agent.cta and line in self._where[n]]

    def who(self, line: int) -> str:
        """The roles that reached a line; ``compute`` for that and ``compute_2``."""
        roles = dict.fromkeys(self.program.agents[n].role for n in self.agents_at(line))
        return " and ".join(role for role in roles if role.rpartition("_")[0] not in roles)

    def first_parity(self, line: int) -> int:
        """The parity with which the wait at a line is executed first, -1 without one."""
        for code, where in zip(self.program.code, self._where, strict=True):
            for op, at in zip(code, where, strict=True):
                if at == line and op[0] in BY_PARITY:
                    return operand(op, "parity")
        return -1

    def constant_of(self, lines: Collection[int], value: int) -> int | None:
        """The one line that moves a constant to a register which is the last operand of all these lines, if there is
        one: also instructions that no warp reached may have that operand.
        """
        named = {found[0].lstrip("%") for line in lines if (found := _LAST_OPERAND.search(self.text(line))) is not None}
        moves = [each for each in self._function.body if _written(each) in named]
        if len(named) != 1 or len(moves) != 1 or moves[0].opcode != "mov":
            return None
        return moves[0].line if moves[0].operands[1] == Immediate(value) else None

    def last_product(self, line: int) -> int:
        """The line of the last product of tensor memory that follows a line directly, itself without one."""
        body = self._function.body
        at = next((each.position for each in body if each.line == line), len(body))
        found = line
        for each in body[at:]:
            if each.opcode in ENDS or each.opcode == "mbarrier" or each.has("commit"):
                break
            found = each.line if each.opcode == "tcgen05" and each.has("mma") else found
        return found

    def multiplies(self, agent: int) -> bool:
        """Whether it has products of tensor memory, which end with a commit."""
        code = self.program.code[agent]
        return any(op[0] in ENGINE_ACCESSES and operand(op, "engine") == Engine.TCGEN05 for op in code)

    def arrivals_in_words(self, group: Collection[int], agents: list[int]) -> tuple[str, str]:
        """Who of these agents arrives by the count of a group, in words, and the PTX of a predicate ("" for all)."""
        count = self.count_of(group) or 1
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

    def with_predicate(self, instruction: str, predicate: str) -> str:
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


def _written(each: Instruction) -> str:
    """The register that is the first operand, "" if that is none."""
    first = each.operands[0] if each.operands else None
    return first.name.lstrip("%") if isinstance(first, Register) else ""


_MOST_READ = 24  #: changes with which the kernel is read again
_MOST_NUMBERS = 4  #: of these, for what a hang hides
_LAST_OPERAND = re.compile(r"[%\w]+(?=\s*;)")
_ADDRESS = re.compile(r"\[\s*(%\w+)\s*(?:\+\s*(-?\d+)\s*)?\]")
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
_GUARD = re.compile(r"@!?%\w+\s+")
_RESTART = re.compile(r"\s*(?:@!?%\w+\s+)?mov\.\w+\s+%\w+,\s*\w+;\s*(?://.*)?")
_PARITY = re.compile(r"(mbarrier\.(?:try|test)_wait[^;]*,\s*)(%\w+|\d+)(\s*[,;])")


def corrections_of_kernel(
    kernel: EditableKernel, program: Program, refuted: Refutation, unit: Unit, led_past: Sequence[BranchPast] = ()
) -> tuple[Correction, ...]:
    """The first change of lines with which the whole kernel is proved; () if there is none among those that are tried.

    Where ``program`` ends with agents that wait, as its coverage says, or a wait returns with an earlier phase.
    """
    found = refuted.deadlock
    blocked = () if found is None else tuple(dict.fromkeys(each.barrier for each in found.blocked))
    hung = HungKernel(kernel, kernel.read())
    wait = hung.wait_of(refuted.fault) if refuted.fault is not None else None
    changes = chain(
        _carried(hung, *wait) if wait is not None else (),
        _changes(hung, blocked, led_past) if program.coverage.blocked else (),
    )
    for tried, change in enumerate(islice(changes, _MOST_READ)):
        unit(tried, 0)
        try:
            again = kernel.read(change.lines).program.with_strictness(program.strictness)
        except PipesimError:
            continue
        if check(again, max_states=1).verdict is Verdict.PROVED:
            line, source = f"{kernel.ptx}:{min(change.lines)}", change.source or hung.source_of(change.lines)
            return (Correction(change.repair, change.said, line, source),)
    return ()


def hidden_in_kernel(kernel: EditableKernel, program: Program, refuted: Refutation, unit: Unit) -> Hidden | None:
    """What a hang hides: the kernel is read again with a number that its operations need, by which the hang is gone.

    What was not read because of the hang is read then.
    """
    hung = HungKernel(kernel, kernel.read())
    for tried, change in enumerate(islice(_numbers(hung), _MOST_NUMBERS)):
        unit(tried, 0)
        try:
            again = kernel.read(change.lines).program.with_strictness(program.strictness)
        except PipesimError:
            continue
        found = check(again, max_states=1)
        if any(finding_key(again, each) == finding_key(program, refuted) for each in found.refutations):
            continue
        for left in found.refutations[:1]:
            first = Correction(change.repair, change.said, f"{kernel.ptx}:{min(change.lines)}")
            blocked = again.coverage.blocked or again.coverage.stopped
            return Hidden(first, again, left, () if blocked else corrections(again, left, again, unit))
    return None


def _changes(hung: HungKernel, blocked: Collection[str], led_past: Sequence[BranchPast]) -> Iterator[LineChange]:
    """What is tried: numbers that contradict what the kernel did, ways past an arrive, arrives of too many or too few,
    a parity.
    """
    at_times = [past for past in led_past if past.agent in hung.agents_at(hung.instruction(past.past).line)]
    yield from _not_past(hung, at_times)
    yield from _numbers(hung)
    yield from _not_past(hung, [past for past in led_past if past not in at_times])
    yield from _guards(hung)
    groups = [group for group in hung.groups() if any(hung.barrier_name(n) in blocked for n in group)]
    silent = [group for group in groups if not hung.is_signalled(group)]
    for group in groups:
        for line in hung.lines_of(PARITY_WAITS, group):
            yield from _carried(hung, line, min(group))
    for group in (*silent, *(group for group in groups if group not in silent)):
        yield from _on_group(hung, group)
    for group in silent or groups:
        yield from _arrives(hung, group)
    for group in groups:
        yield from _parities(hung, group)


# numbers


def _numbers(hung: HungKernel) -> Iterator[LineChange]:
    """Counts, bytes and threads as the operations that were executed need them."""
    program = hung.program
    for repair in (*threads(program), *expects(program), *_counts(program)):
        mine = barriers_of(program, repair.group)
        if repair.kind is RepairKind.COUNT:
            was = [group for group in hung.groups() if hung.count_of(group) == repair.was and set(group) <= set(mine)]
            lines = hung.lines_of({Op.INIT}, {bar for group in was for bar in group})
            new = {line: _with_last(hung, line, repair.value) for line in lines}
        elif repair.kind is RepairKind.EXPECT:
            lines = hung.lines_of(SIGNALS, mine)
            new = {line: _with_last(hung, line, repair.value) for line in lines if "expect_tx" in hung.text(line)}
        elif repair.kind is RepairKind.THREADS:
            new = dict(_with_threads(hung, repair))
        else:
            continue
        if new:
            yield LineChange(new, repair, f"{sentence(repair)} ({hung.places(new)})")
            constant = hung.constant_of(new, repair.was)
            if constant is not None and constant not in new:
                text = _LAST_OPERAND.sub(str(repair.value), hung.text(constant), count=1)
                yield LineChange({constant: text}, repair, f"{sentence(repair)} ({hung.places([constant])})")


def _with_last(hung: HungKernel, line: int, value: int) -> str:
    return _LAST_OPERAND.sub(str(value), hung.text(line), count=1)


def _with_threads(hung: HungKernel, repair: Repair) -> Iterator[tuple[int, str]]:
    """The lines at the named barriers that say a number of threads, with another."""
    numbers, program = repair.group.split(","), hung.program
    named = {
        operand(op, "named_barrier")
        for code in program.code
        for op in code
        if str(program.named_barrier(op)) in numbers
    }
    for line in hung.lines_of(ON_NAMED_BARRIER, named):
        if "," in hung.text(line):
            yield line, re.sub(r",\s*[%\w]+(?=\s*;)", f", {repair.value}", hung.text(line))


def _counts(program: Program) -> Iterator[Repair]:
    """The counts that the arrivals ask for, and where only a part of them has come, one."""
    found = dict.fromkeys(counts(program))
    for group in dict.fromkeys(barrier.name for barrier in program.barriers):
        was = count_of(program, group)
        if was > 1:
            found[Repair(RepairKind.COUNT, "", group, 1, was)] = None
    yield from found


# parities


def _parities(hung: HungKernel, group: Collection[int]) -> Iterator[LineChange]:
    """The other parity at one line that waits for a barrier of the group."""
    for line in hung.lines_of(BY_PARITY, group):
        parity = _PARITY.search(hung.text(line))
        if parity is None:
            continue
        if parity[2].isdecimal():
            new = _PARITY.sub(lambda m: f"{m[1]}{int(m[2]) ^ 1}{m[3]}", hung.text(line), count=1)
        else:
            other = _PARITY.sub(r"\1%pipesim_parity\3", hung.text(line), count=1).strip()
            new = f"{{ .reg .b32 %pipesim_parity; xor.b32 %pipesim_parity, {parity[2]}, 1; {other} }}"
        role, name = hung.who(line), hung.name(group)
        first = f"parity {hung.first_parity(line) ^ 1} in the first lap"
        said = f"{role} waits for {name} with {first} ({hung.places([line])}: {parity[2]} inverted)"
        yield LineChange({line: new}, Repair(RepairKind.PHASES, role, name), said)


def computed_at(kernel: EditableKernel, fault: Fault) -> str:
    """The lines that compute the stage and parity of the wait that returned with an earlier phase, as a clause; "" if
    they are not known.
    """
    hung = HungKernel(kernel, kernel.read())
    wait = hung.wait_of(fault)
    lines = hung.computing(wait[0]) if wait is not None else ()
    if wait is None or not lines:
        return ""
    which = "the wait" if fault.kind is FaultKind.STALE_WAIT else f"its wait at {hung.places(wait[:1])}"
    return f"; stage and parity of {which} come from {hung.places(lines)}"


def _carried(hung: HungKernel, wait: int, barrier: int) -> Iterator[LineChange]:
    """The stage and parity of the wait at a line are not restarted: without the lines that do so."""
    lines = hung.computing(wait)
    if lines and all(_RESTART.fullmatch(hung.text(line)) for line in lines):
        role, group = hung.who(wait), hung.program.barriers[barrier].name
        said = f"{role} carries stage and phase of {group} on instead of beginning again (without {hung.places(lines)})"
        yield LineChange({line: f"// {hung.text(line)}" for line in lines}, Repair(RepairKind.CARRY, role, group), said)


# arrives


def _not_past(hung: HungKernel, led_past: Sequence[BranchPast]) -> Iterator[LineChange]:
    """Without the condition of a branch that led an agent past what it should have done."""
    for past in led_past:
        each = hung.instruction(past.at)
        if past.ends or not hung.text(each.line).lstrip().startswith("@"):
            continue
        always = _GUARD.sub("", hung.text(each.line), count=1)
        new = always if past.at == past.past or not past.taken else f"// {hung.text(each.line)}"
        role = hung.program.agents[past.agent].role
        does = "arrives" if "arrive" in hung.instruction(past.past).modifiers else "does so"
        omit = f"omit the condition at {past.line} ({hung.places([each.line])})"
        words = f"{role} {does} every time ({past.past_line}): {omit}"
        yield LineChange({each.line: new}, Repair(RepairKind.NOT_PAST, role, ""), words, past.line)


def _guards(hung: HungKernel) -> Iterator[LineChange]:
    """An arrive that all threads execute at a line, by as many as its barrier counts."""
    for group in hung.groups():
        for line in hung.lines_of({Op.ARRIVE}, group):
            agents = hung.agents_at(line)  # none where only another CTA gets there
            if agents and hung.text(line).lstrip().startswith("mbarrier.arrive"):
                said, predicate = hung.arrivals_in_words(group, agents)
                if predicate:
                    repair = Repair(RepairKind.LANES, hung.who(line), hung.name(group), 1, 32)
                    words = f"only {said} executes the arrive on {hung.name(group)}, by a predicate"
                    new = {line: hung.with_predicate(hung.text(line), predicate)}
                    yield LineChange(new, repair, f"{words} ({hung.places(new)})")


def _on_group(hung: HungKernel, group: tuple[int, ...]) -> Iterator[LineChange]:
    """What signals another group, or is counted there, on this one, which lacks it; a wait for it for another one."""
    for other in hung.groups():
        if other == group or len(other) != len(group):
            continue
        here, there = hung.name(group), hung.name(other)
        if here == there:
            here, there = hung.barrier_name(group[0]), hung.barrier_name(other[0])
        moves = [(line, other, group, "arrives on", here, there) for line in hung.lines_of(_SIGNAL, other)]
        moves += [(line, group, other, "waits for", there, here) for line in hung.lines_of(PARITY_WAITS, group)]
        for line, was, to, does, now, before in moves:
            found, delta = list(_ADDRESS.finditer(hung.text(line))), hung.distance(was[0], to)
            if not found or delta is None:
                continue
            at = found[-1]  # of a copy the last operand in brackets
            new = f"{hung.text(line)[: at.start()]}[{at[1]}+{int(at[2] or 0) + delta}]{hung.text(line)[at.end() :]}"
            words = "completes its copy on" if "cp.async.bulk" in hung.text(line) else does
            said = f"{hung.who(line)} {words} {now}, not {'on ' if does != 'waits for' else ''}{before}"
            repair = Repair(RepairKind.OTHER_GROUP, hung.who(line), before)
            yield LineChange({line: new}, repair, f"{said} ({hung.places([line])})")


def _arrives(hung: HungKernel, group: Collection[int]) -> Iterator[LineChange]:
    """An arrive after an instruction that follows a wait for another group, on the same stage, by as many as count."""
    for agents in hung.roles().values():
        said, predicate = hung.arrivals_in_words(group, agents)
        for wait, (barrier, lines) in hung.after_waits(agents[0], group).items():
            address, delta = _ADDRESS.search(hung.text(wait)), hung.distance(barrier, group)
            if address is None or delta is None:
                continue
            commits = hung.multiplies(agents[0])
            does = _COMMIT if commits else "mbarrier.arrive.shared::cta.b64 _,"
            arrive = f"{does} [{address[1]}+{delta + int(address[2] or 0)}];"
            verb = "commits to" if commits else "arrives on"
            for line in dict.fromkeys(map(hung.last_product, lines) if commits else lines):
                words = f"{said} {verb} {hung.name(group)} for every stage, after {hung.places([line])}"
                new = f"{hung.text(line)} {hung.with_predicate(arrive, predicate)}"
                repair = Repair(RepairKind.ARRIVE, hung.program.agents[agents[0]].role, hung.name(group))
                yield LineChange({line: new}, repair, words)
