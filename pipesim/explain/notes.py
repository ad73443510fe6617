"""What a report says beside its findings: transfers cut off by the end of their CTA, early passes, unmeasured times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipesim.explain.lap_counters import Aliasing
from pipesim.model.finding import Advisory
from pipesim.model.ops import OPERANDS, Engine, Op, Operation, operand
from pipesim.model.program import Program

_HOPPER = ("NVIDIA H100", "NVIDIA H200", "NVIDIA H800", "NVIDIA H20", "NVIDIA GH200")


def cut_off(program: Program, late: Sequence[tuple[int, int]]) -> tuple[Advisory, ...]:
    """Transfers (agent, operation) that were under way when their CTA had ended, once for each role and line."""
    found: dict[tuple[str, str], Advisory] = {}
    for agent, pc in late:
        role, line = program.agents[agent].role, program.line(agent, pc)
        op = program.code[agent][pc]
        tile = program.access_name(operand(op, "access"))
        does = f"the {_transfer(op)} of {role} {'from' if op[0] == Op.TRANSFER_READ else 'into'} {tile}"
        claim = f"{does} is still in flight when the last agent of its CTA exits: nothing waits for it"
        found.setdefault((role, line), Advisory(role, claim, line, "transfer_in_flight"))
    return tuple(found.values())


def _transfer(op: Operation) -> str:
    """What a person calls a transfer."""
    if op[0] == Op.TMA_LOAD:
        return "copy"
    if operand(op, "engine") in (Engine.WGMMA, Engine.TCGEN05):
        return "MMA"
    return "store" if op[0] == Op.TRANSFER_READ else "copy"


def early_passes(program: Program, laps: Sequence[Aliasing]) -> tuple[Advisory, ...]:
    """Waits of a run that failed that passed a lap early, once for each role and line."""
    found: dict[tuple[str, str], Advisory] = {}
    for each in laps:
        if each.passed:
            role, line = program.agents[each.agent].role, program.line(each.agent, each.pc)
            found.setdefault((role, line), Advisory(role, f"{each.claim(program)} (one lap early)", line))
    return tuple(found.values())


def unmeasured(program: Program, device: str) -> tuple[Advisory, ...]:
    """A program of tcgen05 on the profile of a Hopper device, whose figures for it were not measured."""
    if not device.startswith(_HOPPER) or not _uses_tcgen05(program):
        return ()
    claim = "the times of tcgen05, tensor memory and CLC are estimates: no device that has them was measured"
    return (Advisory("", claim, ""),)


def estimated(program: Program, known: Callable[[str], bool]) -> tuple[Advisory, ...]:
    """A program of a kernel's PTX whose work is estimated; ``known``: whether the length of a work was measured."""
    if not program.counts_instructions or any(known(work.name) for work in program.work if work.amounts):
        return ()
    claim = "the time of the work between operations is estimated from the kernel's instructions"
    return (Advisory("", claim, ""),)


def _uses_tcgen05(program: Program) -> bool:
    at = {int(op): names.index("engine") + 1 for op, names in OPERANDS.items() if "engine" in names}
    return any(op[0] in at and op[at[op[0]]] == Engine.TCGEN05 for code in program.code for op in code)
