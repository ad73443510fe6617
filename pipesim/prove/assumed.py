"""What a proof rests on where the rules of :data:`~pipesim.model.coverage.RULES` are not asked for.

One more run, of the same program under those rules, shows it (docs/memory-order.md). It follows one schedule: where
that does not represent the others, or is not followed to its end, what cannot be excluded is assumed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pipesim.findings.catalog import of_fault
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import assumed_registers
from pipesim.prove.any_size.skip_laps import LONG, phases_by_laps
from pipesim.prove.certificate.canonical import CanonicalRun, by_rules_for_commits
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.counterexample.leftovers import Leftover, assumed_at_exit, leftovers
from pipesim.prove.dependent_launch import assumed_of_earlier_kernels
from pipesim.prove.memory_order.may_fail import (
    inits_may_be_unfenced,
    reads_may_be_unfenced,
    tensor_accesses_may_be_unfenced,
)
from pipesim.prove.memory_order.order import MemoryOrder

MOST = 20_000  #: operations that are followed
_MOST_AFTER = 1_000  #: of them, after the first read without a fence: laps repeat the same pairs of lines
_NOTED = {FaultKind.UNPUBLISHED_INIT: Assumption.INIT, FaultKind.UNINITIALISED_READ: Assumption.TENSOR_MEMORY}


def assumed_by(
    program: Program, *, by_search: bool = False, left: tuple[Leftover, ...] | None = None, by_commit_order: bool = True
) -> tuple[Assumed, ...]:
    """What a proof of ``program`` assumes, place by place. ``by_search``: no one run represents the others.

    ``left``: what it leaves at its end, if that is known. ``by_commit_order``: False if the proof is known to hold
    whatever the order in which commits of one thread arrive.
    """
    commits = assumed_of_commits(program, by_search=by_search) if by_search or by_commit_order else ()
    found = (*_under_rules(program, by_search=by_search), *commits, *_registers(program), *_at_exit(program, left))
    found += tuple(assumed_of_earlier_kernels(program)) if program.coverage.dependent else ()
    return tuple(dict.fromkeys(found))


def assumed_of_commits(program: Program, *, by_search: bool = False) -> Iterator[Assumed]:
    """The doubts of one run that go if commits of one thread arrive in the order of their issue."""
    unordered, *ordered = by_rules_for_commits(program)
    if not ordered:
        return
    long = sum(map(len, program.code)) >= LONG
    if by_search or (long and phases_by_laps(unordered) is None):
        yield Assumed(Assumption.COMMITS, "commits of one thread arrive in the order of their issue")
    if by_search or long:
        return
    certificate = Certificate(unordered)
    CanonicalRun(program, [certificate]).to_end()
    certificate.close()
    for doubt in certificate.doubts:
        places = [(doubt.other_agent, doubt.other_pc), (doubt.agent, doubt.pc)]
        lines = dict.fromkeys(program.line(*place) for place in places if place[0] >= 0)
        where = f" to {program.barrier_name(doubt.where)}" if 0 <= doubt.where < len(program.barriers) else ""
        yield Assumed(Assumption.COMMITS, f"commits{where} arrive before later commits of their thread", tuple(lines))


def _at_exit(program: Program, left: tuple[Leftover, ...] | None) -> tuple[Assumed, ...]:
    """Work under way when its CTA ends."""
    if Assumption.EXIT in program.strictness:
        return ()
    return assumed_at_exit(program, leftovers(program) if left is None else left)


def _under_rules(program: Program, *, by_search: bool) -> Iterator[Assumed]:
    """What one run shows under the rules: pairs of accesses without a fence, inits and tensor memory."""
    asked = {
        kind: each for kind, each in _UNFENCED.items() if each.rule not in program.strictness and each.may(program)
    }
    noted = _NOTED if inits_may_be_unfenced(program) or program.reads_tensor_memory else {}
    if by_search:
        yield from (each.anywhere for each in asked.values())
        asked = {}
    strict = program.with_strictness(program.strictness | {each.rule for each in asked.values()} | {*noted.values()})
    if asked and not noted and sum(map(len, program.code)) >= LONG:
        asked = {} if phases_by_laps(strict, MemoryOrder(strict)) is not None else asked
    if not asked and not noted:
        return
    order = MemoryOrder(strict)
    run = CanonicalRun(strict, [order])
    most = MOST
    while not run.over and sum(run.state.pcs) < most:
        run.round()
        if most == MOST and not noted and asked.keys() <= {fault.kind for fault in order.faults}:
            most = min(MOST, sum(run.state.pcs) + _MOST_AFTER)
    found = [fault for fault in order.faults if fault.kind in asked]
    yield from (_pair(program, fault) for fault in found)
    if not run.finished:
        yield from (each.anywhere for kind, each in asked.items() if all(fault.kind is not kind for fault in found))
    yield from _each_line(program, [fault for fault in (*run.faults, *order.faults) if fault.kind in noted])


class _Unfenced(NamedTuple):
    """A rule about fences: what makes it necessary to look, and what is said where nothing could be excluded."""

    rule: Assumption
    may: Callable[[Program], bool]
    what: str

    @property
    def anywhere(self) -> Assumed:
        return Assumed(self.rule, self.what)


_UNFENCED = {
    FaultKind.READ_NOT_FENCED: _Unfenced(
        Assumption.PROXIES, reads_may_be_unfenced, "reads complete before the next arrive of their agent"
    ),
    FaultKind.TENSOR_FENCE: _Unfenced(
        Assumption.TENSOR_FENCES,
        tensor_accesses_may_be_unfenced,
        "accesses to tensor memory are ordered by synchronisation alone",
    ),
}


def _pair(program: Program, fault: Fault) -> Assumed:
    """The access and the one that follows it, each with its role and line."""
    first, second = program.agents[fault.other_agent].role, program.agents[fault.agent].role
    lines = program.line(fault.other_agent, fault.other_pc), program.line(fault.agent, fault.pc)
    rule = _UNFENCED[fault.kind].rule
    if rule is Assumption.PROXIES:
        return Assumed(rule, f"{first} reads what {second} overwrites", lines)
    return Assumed(rule, f"{second} accesses tensor memory after {first} without tcgen05.fence", lines)


def _each_line(program: Program, faults: Iterable[Fault]) -> Iterator[Assumed]:
    """What would be a fault under the rules for inits and for tensor memory, each role and line once."""
    found: dict[tuple[str, str], Assumed] = {}
    for fault in faults:
        agent, pc = (fault.agent, fault.pc) if fault.other_agent < 0 else (fault.other_agent, fault.other_pc)
        op, role, line = program.code[agent][pc], program.agents[agent].role, program.line(agent, pc)
        named = op[0] == Op.INIT
        place = program.barriers[operand(op, "barrier")].name if named else program.access_name(operand(op, "access"))
        claim = of_fault(fault.kind).note.format(role=role, place=place)
        found.setdefault((role, line), Assumed(_NOTED[fault.kind], claim, (line,)))
    yield from found.values()


def _registers(program: Program) -> Iterator[Assumed]:
    if launched := assumed_registers(program.agents, program.code, program.launch_registers):
        yield Assumed(Assumption.REGISTERS, f"{launched} registers a thread at the launch")
