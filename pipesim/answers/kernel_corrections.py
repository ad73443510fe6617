"""Corrections of a kernel that hangs while it is read: a line of its PTX is written otherwise, and it is read again.

A kernel is followed as far as its warps go. Where they hang, what comes after is not known, so that no change of the
flat program can be proved; here the file is changed, followed again to its end, and checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

from pipesim.answers.budget import Unit
from pipesim.answers.kernel_lines import HungKernel, LineChange
from pipesim.errors import PipesimError
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.finding import Verdict
from pipesim.model.groups import BY_PARITY, ON_NAMED_BARRIER, SIGNALS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.arithmetic import arrivals_of, count_of, counts, expects, threads
from pipesim.prove.repair.correction import Correction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sentences import sentence
from pipesim.prove.repair.sites import barriers_of, number_of
from pipesim.ptx.kernel import EditableKernel

_MOST_READ = 24  #: changes with which the kernel is read again
_LAST_OPERAND = re.compile(r"[%\w]+(?=\s*;)")
_ADDRESS = re.compile(r"\[\s*(%\w+)\s*(?:\+\s*(-?\d+)\s*)?\]")
_PARITY = re.compile(r"(mbarrier\.(?:try|test)_wait[^;]*,\s*)(%\w+|\d+)(\s*[,;])")


def corrections_of_kernel(
    kernel: EditableKernel, program: Program, refuted: Refutation, unit: Unit
) -> tuple[Correction, ...]:
    """The first change of lines with which the whole kernel is proved; () if there is none among those that are tried.

    Only where ``program`` ends with agents that wait: its coverage says so.
    """
    found = refuted.deadlock
    blocked = () if found is None else tuple(dict.fromkeys(each.barrier for each in found.blocked))
    hung = HungKernel(kernel, kernel.read())
    for tried, change in enumerate(islice(_changes(hung, blocked), _MOST_READ)):
        unit(tried, 0)
        try:
            again = kernel.read(change.lines).program.judged(program.strictness)
        except PipesimError:
            continue
        if check(again, max_states=1).verdict is Verdict.PROVED:
            return (Correction(change.repair, change.said, f"{kernel.ptx}:{min(change.lines)}"),)
    return ()


def _changes(hung: HungKernel, blocked: Collection[str]) -> Iterator[LineChange]:
    """What is tried: numbers that contradict what the kernel did, arrives of too many or too few, a parity."""
    yield from _numbers(hung)
    yield from _guards(hung)
    groups = [group for group in hung.groups() if any(hung.barrier_name(n) in blocked for n in group)]
    silent = [group for group in groups if not hung.is_signalled(group)]
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
            new = {line: _with_last(hung, line, repair.value) for line in hung.lines_of({Op.INIT}, mine)}
        elif repair.kind is RepairKind.EXPECT:
            lines = hung.lines_of(SIGNALS, mine)
            new = {line: _with_last(hung, line, repair.value) for line in lines if "expect_tx" in hung.text(line)}
        elif repair.kind is RepairKind.THREADS:
            new = dict(_with_threads(hung, repair))
        else:
            continue
        if new:
            yield LineChange(new, repair, f"{sentence(repair)} ({hung.places(new)})")


def _with_last(hung: HungKernel, line: int, value: int) -> str:
    return _LAST_OPERAND.sub(str(value), hung.text(line), count=1)


def _with_threads(hung: HungKernel, repair: Repair) -> Iterator[tuple[int, str]]:
    """The lines at the named barriers that say a number of threads, with another."""
    numbers, program = repair.group.split(","), hung.program
    named = {
        operand(op, "named_barrier")
        for code in program.code
        for op in code
        if op[0] in ON_NAMED_BARRIER and str(number_of(program, op)) in numbers
    }
    for line in hung.lines_of(ON_NAMED_BARRIER, named):
        if "," in hung.text(line):
            yield line, re.sub(r",\s*[%\w]+(?=\s*;)", f", {repair.value}", hung.text(line))


def _counts(program: Program) -> Iterator[Repair]:
    """The counts that the arrivals ask for, and where only a part of them has come, one."""
    found = dict.fromkeys(counts(program))
    for group in dict.fromkeys(barrier.name for barrier in program.barriers):
        was = count_of(program, group)
        for value in (1, arrivals_of(program, group)):
            if was > 0 and 0 < value <= MAX_COUNT and value != was:
                found[Repair(RepairKind.COUNT, "", group, value, was)] = None
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
        said = f"{role} waits for {name} with the other parity ({hung.places([line])}: {parity[2]} inverted)"
        yield LineChange({line: new}, Repair(RepairKind.PHASES, role, name), said)


# arrives


def _guards(hung: HungKernel) -> Iterator[LineChange]:
    """An arrive that all threads execute at a line, by as many as its barrier counts."""
    for group in hung.groups():
        for line in hung.lines_of({Op.ARRIVE}, group):
            if hung.text(line).lstrip().startswith("mbarrier.arrive"):
                said, predicate = hung.counted(group, hung.agents_at(line))
                if predicate:
                    repair = Repair(RepairKind.LANES, hung.who(line), hung.name(group), 1, 32)
                    words = f"only {said} executes the arrive on {hung.name(group)}, by a predicate"
                    new = {line: hung.guarded(hung.text(line), predicate)}
                    yield LineChange(new, repair, f"{words} ({hung.places(new)})")


def _arrives(hung: HungKernel, group: Collection[int]) -> Iterator[LineChange]:
    """An arrive after an instruction that follows a wait for another group, on the same stage, by as many as count."""
    for agents in hung.roles().values():
        said, predicate = hung.counted(group, agents)
        for wait, (barrier, lines) in hung.after_waits(agents[0], group).items():
            address, delta = _ADDRESS.search(hung.text(wait)), hung.distance(barrier, group)
            if address is None or delta is None:
                continue
            arrive = f"mbarrier.arrive.shared::cta.b64 _, [{address[1]}+{delta + int(address[2] or 0)}];"
            for line in lines:
                words = f"{said} arrives on {hung.name(group)} for every stage, after {hung.places([line])}"
                new = f"{hung.text(line)} {hung.guarded(arrive, predicate)}"
                repair = Repair(RepairKind.ARRIVE, hung.program.agents[agents[0]].role, hung.name(group))
                yield LineChange({line: new}, repair, words)
