"""The lap-counter specification: a wait by parity, compared with counters that never wrap.

The hardware distinguishes two phases of a barrier by one bit. This observer runs beside any driver of the machine; it
counts the phases of every barrier and knows, for every agent, which phase its next wait on a barrier *means*. At every
test the machine must answer ``phases completed > phase meant``. Where it does not, the parity has aliased: a phase was
missed, or a wait let its agent pass a lap early.

Which phase a wait means:

* An agent's first wait on a barrier means the phase before the first (-1, complete from the start) with parity 1, and
  phase 0 with parity 0.
* A wait whose parity differs from the one before means the next phase: a phase bit flips once a lap.
* A wait whose parity is the same means *the same* phase. A bit that did not flip is a lap counter that did not move: a
  try and the wait after it, a one-shot barrier that is looked at again, a stage acquired twice. It cannot mean two
  phases on, since no parity could distinguish that from the phase already seen.
* An agent that takes some of the phases only (two consumers that alternate on one stage) cannot be distinguished from
  one that looks twice, and is taken for that.
* An ``init`` begins a barrier's life afresh, for every agent.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import LIVE
from pipesim.model.finding import Advisory
from pipesim.model.groups import ANSWER, BARRIER, PARITY, PARITY_TRIES, PARITY_WAITS
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import OPERANDS, Engine, Op, Operation, operand
from pipesim.model.program import Program


@dataclass(frozen=True)
class Aliasing:
    """A test where parity and counters differ: the agent, the barrier, the phase meant, the phases completed.

    ``passed`` is the machine's result: True is a pass one lap early, False a missed phase.
    """

    agent: int
    pc: int
    barrier: int
    parity: int
    meant: int
    completed: int
    passed: bool

    def claim(self, program: Program) -> str:
        """What happened, in one sentence."""
        who, where = program.agent_name(self.agent), program.barrier_name(self.barrier)
        phases = "phase of it is" if self.completed == 1 else "phases of it are"
        done = f"{self.completed} {phases} complete"
        if self.passed:
            return f"{who} passes {where} with parity {self.parity} before phase {self.meant} is complete: {done}"
        return f"{who} misses phase {self.meant} of {where}: it waits with parity {self.parity} while {done}"


class Laps:
    """Watches any driver of the machine; ``disagreements`` is empty as long as parity and counters agree."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._completed = [0] * len(program.barriers)
        self._lives = [0] * len(program.barriers)
        self._meant: dict[tuple[int, int], tuple[int, int]] = {}  # (agent, barrier) → life of the barrier, phase
        self._found: dict[tuple[int, int, int], Aliasing] = {}
        self.tests = 0

    @property
    def disagreements(self) -> tuple[Aliasing, ...]:
        """Each disagreement once, in order: a wait that is tested again at the same phase says nothing new."""
        return tuple(self._found.values())

    def phase_meant(self, agent: int, barrier: int) -> int:
        """The phase that the agent's latest wait or try on this barrier means, -1 for the one before the first."""
        life, phase = self._meant.get((agent, barrier), (-1, -1))
        return phase if life == self._lives[barrier] else -1

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked: of both, a wait is a test."""
        op = self._program.code[agent][before.pcs[agent]]
        code = op[0]
        if code in PARITY_WAITS:
            if code == Op.WAIT_UNLESS and op[ANSWER] >= 0 and before.registers[agent][op[ANSWER]]:
                return  # skipped: its try was the test
            self._test(before, agent, op[BARRIER], op[PARITY], passed=result.blocked < 0)
        elif code in PARITY_TRIES:
            self._test(
                before, agent, op[BARRIER], op[PARITY], passed=mbarrier.passes(before.barriers[op[BARRIER]], op[PARITY])
            )
        elif code == Op.INIT:
            self._completed[op[BARRIER]] = 0
            self._lives[op[BARRIER]] += 1
        elif 0 <= result.signalled < len(self._completed):
            self._completed[result.signalled] += 1

    def on_landing(self, _: Flight, __: int, result: Step) -> None:
        """A transfer delivered bytes, or its arrival."""
        if 0 <= result.signalled < len(self._completed):
            self._completed[result.signalled] += 1

    def _test(self, before: State, agent: int, barrier: int, parity: int, *, passed: bool) -> None:
        if before.barriers[barrier].life != LIVE:
            return  # a fault of its own, and no answer
        meant = self._means(agent, barrier, parity)
        self._meant[agent, barrier] = (self._lives[barrier], meant)
        self.tests += 1
        completed = self._completed[barrier]
        if passed != (completed > meant):
            pc = before.pcs[agent]
            found = Aliasing(agent, pc, barrier, parity, meant, completed, passed)
            self._found.setdefault((agent, pc, completed), found)

    def _means(self, agent: int, barrier: int, parity: int) -> int:
        life, last = self._meant.get((agent, barrier), (-1, 0))
        if life != self._lives[barrier]:
            return -parity
        return last if (last & 1) == parity else last + 1


_HOPPER = ("NVIDIA H100", "NVIDIA H200", "NVIDIA H800", "NVIDIA H20", "NVIDIA GH200")


def cut_off(program: Program, late: Sequence[tuple[int, int]]) -> tuple[Advisory, ...]:
    """Transfers (agent, operation) that were under way when their CTA had ended, once for each role and line."""
    found: dict[tuple[str, str], Advisory] = {}
    for agent, pc in late:
        role, line = program.agents[agent].role, program.line(agent, pc)
        op = program.code[agent][pc]
        tile = program.access_name(operand(op, "access"))
        does = f"the {transfer_word(op)} of {role} {'from' if op[0] == Op.TRANSFER_READ else 'into'} {tile}"
        claim = f"{does} is still in flight when the last agent of its CTA exits: nothing waits for it"
        found.setdefault((role, line), Advisory(role, claim, line, "under_way_at_exit"))
    return tuple(found.values())


def transfer_word(op: Operation) -> str:
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


def unmeasured_profile(program: Program, device: str, assumed: Collection[str]) -> tuple[Advisory, ...]:
    """A program of tcgen05 on the profile of a Hopper device, whose figures for it were not measured; or words.

    ``assumed``: the values of the profile that are estimates.
    """
    if program.words_cta >= 0:
        claim = "data in global memory takes the times of shared memory, which was not measured"
        if "word.load" in assumed:
            claim = f"words of global memory take the times of an H200; {claim}"
        return (Advisory("", claim, ""),)
    if not device.startswith(_HOPPER) or not _uses_tcgen05(program):
        return ()
    claim = "the times of tcgen05, tensor memory and CLC are estimates: no device that has them was measured"
    return (Advisory("", claim, ""),)


def estimated_work(program: Program, known: Callable[[str], bool]) -> tuple[Advisory, ...]:
    """A program of a kernel's PTX whose work is estimated; ``known``: whether the length of a work was measured."""
    if not program.counts_instructions or any(known(work.name) for work in program.work if work.amounts):
        return ()
    claim = "the time of the work between operations is estimated from the kernel's instructions"
    return (Advisory("", claim, ""),)


def _uses_tcgen05(program: Program) -> bool:
    at = {int(op): names.index("engine") + 1 for op, names in OPERANDS.items() if "engine" in names}
    return any(op[0] in at and op[at[op[0]]] == Engine.TCGEN05 for op in program.operations)
