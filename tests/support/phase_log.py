"""What completed each phase of each mbarrier in one run, and which waits saw it."""

from pipesim.model.barrier import passes
from pipesim.model.groups import BARRIER, BLOCKING_WAITS, PARITY_TRIES, SIGNALS
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


class PhaseLog:
    """Watches any driver. Phases are counted over a barrier's whole life, by barrier and number.

    ``completed``: agent and operation of the last part, and whether it landed. ``seen``: agent and operation of waits
    and tries that passed because of a phase.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._done = [0] * len(program.barriers)
        self._base = [0] * len(program.barriers)  # phases before the last init
        self.completed: dict[tuple[int, int], tuple[int, int, bool]] = {}
        self.seen: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def on_step(self, before: State, agent: int, result: Step) -> None:
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if result.state.pcs[agent] == pc or any(fault.kind.traps for fault in result.faults):
            return
        if op[0] == Op.INIT:
            self._base[op[BARRIER]] = self._done[op[BARRIER]]
        elif op[0] in SIGNALS:
            self._part(op[BARRIER], (agent, pc, False), result)
        elif op[0] in BLOCKING_WAITS | PARITY_TRIES:
            word = before.barriers[op[BARRIER]]
            spared = op[0] == Op.WAIT_UNLESS and operand(op, "register") >= 0
            spared = spared and before.registers[agent][operand(op, "register")] > 0  # its try saw the phase
            if word.done and not spared and (op[0] in BLOCKING_WAITS or passes(word, operand(op, "parity"))):
                phase = op[BARRIER], self._base[op[BARRIER]] + word.done - 1
                self.seen.setdefault(phase, []).append((agent, pc))

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        if flight.barrier >= 0:
            self._part(flight.barrier, (flight.agent, flight.pc, True), result)

    def _part(self, barrier: int, part: tuple[int, int, bool], result: Step) -> None:
        if result.signalled == barrier:
            self.completed[barrier, self._done[barrier]] = part
            self._done[barrier] += 1
