"""Changes of lines of a kernel's PTX that may correct it: what its flat program does not say, or says less exactly."""

import re
from collections.abc import Iterator, Mapping

from pipesim.answers.kernel.lines import GUARD, LAST_OPERAND, KernelLines, LineChange
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ON_BARRIER, ON_NAMED_BARRIER, PARITY_WAITS, SIGNALS
from pipesim.model.ops import Engine, Op, Operation, operand, operands
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.numbers import counts, expects, threads
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import barriers_of
from pipesim.prove.repair.wording.sentences import sentence

_RESTART = re.compile(r"\s*(?:@!?%\w+\s+)?mov\.\w+\s+%\w+,\s*\w+;\s*(?://.*)?")


# numbers


def numbers(kernel: KernelLines) -> Iterator[LineChange]:
    """Counts, bytes and threads as the operations that were executed need them."""
    program = kernel.program
    every = (*threads(program), *expects(program), *counts(program))
    apart = {repair.group for repair in every if repair.kind is RepairKind.NUMBER}  # groups of warps, not one
    for repair in (each for each in every if each.kind is not RepairKind.THREADS or each.group not in apart):
        mine = barriers_of(program, repair.group)
        if repair.kind is RepairKind.COUNT and repair.value < repair.was in _warps_that_wait(program):
            continue  # which is meant: some of them do not arrive
        if repair.kind is RepairKind.COUNT:
            was = [
                group for group in kernel.groups() if kernel.count_of(group) == repair.was and set(group) <= set(mine)
            ]
            lines = kernel.lines_of({Op.INIT}, {bar for group in was for bar in group})
            new = {line: _with_last(kernel, line, repair.value) for line in lines}
        elif repair.kind is RepairKind.EXPECT and not repair.past.op:
            lines = kernel.lines_of(SIGNALS, mine)
            new = {line: _with_last(kernel, line, repair.value) for line in lines if "expect_tx" in kernel.text(line)}
        elif repair.kind is RepairKind.THREADS:
            new = dict(_with_threads(kernel, repair))
        else:
            continue
        new = {line: text for line, text in new.items() if text != kernel.text(line)}
        if new:
            yield LineChange(new, repair, f"{sentence(repair)} ({kernel.places(new)})")
            constant = kernel.constant_of(new, repair.was)
            if constant is not None and constant not in new:
                text = LAST_OPERAND.sub(str(repair.value), kernel.text(constant), count=1)
                yield LineChange({constant: text}, repair, f"{sentence(repair)} ({kernel.places([constant])})")


def _warps_that_wait(program: Program) -> set[int]:
    """How many warps of a CTA wait for the barriers of a ring, by ring, where it is more than one."""
    waits: dict[tuple[str, int], set[int]] = {}
    for agent, code in zip(program.agents, program.code, strict=True):
        for op in (op for op in code if op[0] in PARITY_WAITS):
            waits.setdefault((program.barriers[operand(op, "barrier")].name, agent.cta), set()).add(agent.warp)
    return {len(warps) for warps in waits.values() if len(warps) > 1}


def _with_last(kernel: KernelLines, line: int, value: int) -> str:
    return LAST_OPERAND.sub(str(value), kernel.text(line), count=1)


def _with_threads(kernel: KernelLines, repair: Repair) -> Iterator[tuple[int, str]]:
    """The lines at the named barriers that say a number of threads, with another."""
    numbers, program = repair.group.split(","), kernel.program
    barriers = [n for n, (_, number) in enumerate(program.named_barriers) if str(number) in numbers]

    def has_others(op: Operation, _: SourceInstruction) -> bool:
        here = op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") in barriers
        return here and operand(op, "threads") != repair.value

    for line in kernel.lines_at(program, "", has_others):
        if "," in kernel.text(line):
            yield line, re.sub(r",\s*[%\w]+(?=\s*;)", f", {repair.value}", kernel.text(line))


def carried(kernel: KernelLines, wait: int, barrier: int) -> Iterator[LineChange]:
    """The stage and parity of the wait at a line are not restarted: without the lines that do so."""
    lines = kernel.computing(wait)
    if lines and all(_RESTART.fullmatch(kernel.text(line)) for line in lines):
        role, group = kernel.who(wait), kernel.program.barriers[barrier].name
        said = (
            f"{role} carries stage and phase of {group} on instead of beginning again (without {kernel.places(lines)})"
        )
        yield LineChange(
            {line: f"// {kernel.text(line)}" for line in lines}, Repair(RepairKind.CARRY, role, group), said
        )


def without_early_ends(kernel: KernelLines, fault: Fault | None) -> Iterator[LineChange]:
    """Threads do not end before a barrier of all threads, where bytes are read that they should have written."""
    for line in kernel.early_ends() if fault is not None and fault.kind is FaultKind.UNINITIALISED_READ else ():
        source = kernel.place_of([line])
        said = f"all threads reach the barrier: leave out the branch at {source} ({kernel.places([line])})"
        yield LineChange({line: f"// {kernel.text(line)}"}, Repair(RepairKind.NOT_PAST, "", "", 1), said, source)


def barriers_after_branches(kernel: KernelLines, fault: Fault | None) -> Iterator[LineChange]:
    """All threads meet after an ``if`` in which bytes are accessed in a race."""
    places = [(fault.agent, fault.pc), (fault.other_agent, fault.other_pc)] if fault is not None else []
    lines = [kernel.where[agent][pc] for agent, pc in places if agent >= 0 and pc < len(kernel.where[agent])]
    for branch, join in dict.fromkeys(each for line in lines for each in kernel.branches_around(line)):
        new = {join: f"bar.sync 0; {kernel.text(join)}"}
        source = kernel.place_of([branch])
        said = f"all threads execute __syncthreads() after the branch at {source} ({kernel.places(new)})"
        yield LineChange(new, Repair(RepairKind.SYNC, "", "0"), said, source)


def one_lane(kernel: KernelLines, fault: Fault | None) -> Iterator[LineChange]:
    """One lane makes the arrives and copies that all lanes of a warp make on the barriers of a group, where more arrive
    than are pending and one lane alone copies as much as each.
    """
    if fault is None or fault.kind not in (FaultKind.OVER_ARRIVAL, FaultKind.TX_RANGE):
        return
    program, agent = kernel.program, fault.agent
    arrive = program.code[agent][fault.pc]
    due = max(fault.expected, 1) if fault.kind is FaultKind.OVER_ARRIVAL else 1
    if arrive[0] != Op.ARRIVE or operand(arrive, "count") != WARP * due:
        return
    code, where = program.code[agent], kernel.where[agent]
    on = {pc: program.barriers[operand(op, "barrier")].name for pc, op in enumerate(code) if op[0] in ON_BARRIER}
    whole = [pc for pc in on if code[pc][0] == Op.ARRIVE and operand(code[pc], "expect") > 0]
    every = dict.fromkeys(on[pc] for pc in whole if operand(code[pc], "count") == WARP)
    group = on[fault.pc]
    for groups in dict.fromkeys(((group,), tuple(every) if group in every else (group,))):
        mine = [pc for pc, name in on.items() if name in groups]
        copies = {where[pc] for pc in mine if code[pc][0] == Op.TMA_LOAD}
        told = {where[pc] for pc in ({fault.pc} if len(groups) == 1 else {pc for pc in whole if on[pc] in groups})}
        arrives = {where[pc] for pc in mine if code[pc][0] == Op.ARRIVE and kernel.is_copy(where[pc], told)}
        lines = sorted(arrives | copies)
        if any(kernel.text(line).count(";") != 1 or kernel.text(line).lstrip().startswith("@!") for line in lines):
            return
        new = {line: _with_one_lane(kernel.text(line)) for line in lines}
        role = program.agents[agent].role
        at = program.instructions[agent][fault.pc]._replace(about=" and ".join(groups))
        repair = Repair(RepairKind.LANES, role, " and ".join(groups), 1, WARP, at)
        also = f", and what it copies there ({kernel.places(lines)})" if copies else ""
        yield LineChange(new, repair, sentence(repair) + also, program.line(agent, fault.pc))


def _with_one_lane(text: str) -> str:
    guard = GUARD.match(text.lstrip())
    if guard is None:
        return _ONE_LANE.format(text)
    return _ONE_LANE.replace("@", f"and.pred %only, %only, {guard[0].strip()[1:]}; @").format(GUARD.sub("", text))


_ONE_LANE = "{{ .reg .pred %only; .reg .b32 %lane; mov.u32 %lane, %laneid; setp.eq.u32 %only, %lane, 0; @%only {} }}"


def for_groups(kernel: KernelLines, program: Program, repair: Repair) -> Iterator[Mapping[int, str]]:
    """The lines with which a role waits for groups of transfers where or as the correction has it; none of others.

    A wait that all lanes execute does not stand at an instruction of one lane: also after the one before it.
    """
    if repair.kind not in (RepairKind.DEPTH, RepairKind.GROUP_WAIT) or not repair.group.isdecimal():
        return  # of another kind a number may be that of a barrier
    engine = Engine(int(repair.group))
    wait = _WAIT_FOR_GROUPS.get(engine)
    if wait is not None and repair.kind is RepairKind.DEPTH:
        lines = kernel.lines_at(
            program,
            repair.role,
            lambda op, _: op[0] == Op.WAIT_GROUP and operands(op, "engine", "groups") == (engine, repair.was),
        )
        yield {line: _with_last(kernel, line, repair.value) for line in lines}
    elif wait is not None:
        lines, new = kernel.lines_at(program, repair.role, lambda _, site: site == repair.at), f"{wait} {repair.value};"
        yield {line: f"{new} {kernel.text(line)}" for line in lines}
        yield {line: f"{kernel.text(line)} {new}" for line in kernel.always_before(lines, program, repair.role)}


def with_masks(kernel: KernelLines, program: Program, repair: Repair) -> Iterator[Mapping[int, str]]:
    """The lines of a role's copies that go to the CTAs of another mask; none of others."""
    if repair.kind is not RepairKind.MASK or repair.value < 0:
        return

    def copies(op: Operation, site: SourceInstruction) -> bool:
        mine = site == repair.at if repair.at.op else site.about == repair.group
        return op[0] == Op.TMA_LOAD and mine and bool(operand(op, "cta_mask")) == (repair.was > 0)

    lines = kernel.lines_at(program, repair.role, copies)
    if not repair.was:
        new = {line: kernel.text(line).replace("::bytes ", "::bytes.multicast::cluster ") for line in lines}
        yield {line: text.replace(";", f", {repair.value};") for line, text in new.items()}
        return
    yield {line: _with_last(kernel, line, repair.value) for line in lines}


_WAIT_FOR_GROUPS = {
    Engine.WGMMA: "wgmma.wait_group.sync.aligned",
    Engine.BULK: "cp.async.bulk.wait_group",
    Engine.CP_ASYNC: "cp.async.wait_group",
}


def tensor_waits(kernel: KernelLines) -> Iterator[LineChange]:
    """The waits that are missing after loads of tensor memory, or stores to it, before the warp synchronises."""
    for access, does in (("ld", "loads"), ("st", "stores")):
        lines = kernel.without_wait(access)
        if lines:
            role = " and ".join(dict.fromkeys(filter(None, map(kernel.who, lines.values()))))
            role = f"each of {role}" if " and " in role else role
            wait = f"tcgen05.wait::{access}"
            said = f"{role or 'the warp'} executes {wait} after its {does} of tensor memory ({kernel.places(lines)})"
            new = {line: f"{kernel.text(line)} {wait}.sync.aligned;" for line in lines}
            yield LineChange(new, Repair(RepairKind.TENSOR_WAIT, role, ""), said)
