"""Whether ``check`` finds the hang that a core dump shows: the same warps wait, for barriers that lack the same."""

from __future__ import annotations

from dataclasses import replace

from pipesim.answers.views.autopsy import DumpedCtas, PredictedHang
from pipesim.answers.views.check import CheckReport
from pipesim.model.finding import BlockedAgent, Deadlock
from pipesim.model.program import Program


def predicted(group: DumpedCtas, report: CheckReport, program: Program, folder: str) -> PredictedHang:
    """The hang of a check that is most like the one of these CTAs; ``folder``: of the PTX, which no line names."""
    waits = {_warp_of(each.agent): each for each in group.deadlock.blocked}
    best = PredictedHang(report.verdict, of=len(waits))
    for each in report.refutations:
        if isinstance(each.finding, Deadlock):
            same = sum(_is_same(waits, blocked, program) for blocked in each.finding.blocked)
            if best.shown is None or same > best.same:
                corrections = tuple(replace(c, line=c.line.removeprefix(folder)) for c in each.corrections)
                best = PredictedHang(report.verdict, replace(each, corrections=corrections), same, len(waits))
    return best


def _warp_of(agent: str) -> tuple[int, int]:
    """The rank of its CTA in the cluster, and the number of its warp: ``warp/3@1``."""
    name, _, rank = agent.partition("@")
    number = name.rpartition("/")[2]
    return int(rank or 0), int(number) if number.isdecimal() else -1


def _is_same(waits: dict[tuple[int, int], BlockedAgent], blocked: BlockedAgent, program: Program) -> bool:
    """Whether the warp of an agent also waits in the dump, for a barrier that lacks the same."""
    mine = next((a for n, a in enumerate(program.agents) if program.agent_name(n) == blocked.agent), None)
    theirs = waits.get((mine.cta, mine.warp)) if mine is not None else None
    return theirs is not None and _lacks(theirs) == _lacks(blocked)


def _lacks(blocked: BlockedAgent) -> tuple[int, ...]:
    return blocked.parity, blocked.count, blocked.arrivals_missing, blocked.bytes_missing
