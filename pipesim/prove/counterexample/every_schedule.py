"""What fails in every schedule: what no order of operations prevents."""

from collections import Counter

from pipesim.model.finding import FaultKind
from pipesim.model.groups import ASYNC_BYTES, BARRIER, CHANGES_PHASE, DELAYED_ARRIVALS, MEETING_WAITS, PLAIN_WAITS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.refutation import Refutation


def in_every_schedule(program: Program, found: tuple[Refutation, ...]) -> tuple[Refutation, ...]:
    """Those that no order prevents: a hang in each, and an instruction that arrives more often than its barrier counts.

    The run that was read has executed this instruction.
    """
    hangs = hangs_in_every_schedule(program)
    return tuple(each for each in found if (hangs and each.deadlock is not None) or _exceeds_the_count(program, each))


def _exceeds_the_count(program: Program, found: Refutation) -> bool:
    fault = found.fault
    if fault is None or fault.kind is not FaultKind.OVER_ARRIVAL:
        return False
    op = program.code[fault.agent][fault.pc]
    on_it = [each for code in program.code for each in code if each[BARRIER] == op[BARRIER]]
    if op[0] != Op.ARRIVE or any(each[0] == Op.CP_ASYNC_ARRIVE for each in on_it):
        return False  # a cp.async may add to what is pending
    return 0 < max((operand(each, "count") for each in on_it if each[0] == Op.INIT), default=0) < operand(op, "count")


def hangs_in_every_schedule(program: Program) -> bool:
    """Whether some agent waits without end in every schedule, in whatever order operations are made.

    A kernel that has more order than its program has some of the program's schedules and no others. Agents continue
    here as soon as all that any agent has executed could be enough: an arrival counts for any phase of its barrier,
    and so do bytes. So no schedule leads an agent further, and who stops here hangs in each. Where what follows the
    waits was not read, nothing is known as soon as one of these agents passes its last one.
    """
    reach = _Reach(program)
    while any(reach.advance(agent) for agent in range(len(program.agents))):
        pass
    ends = [agent for agent, code in enumerate(program.code) if reach.pcs[agent] == len(code)]
    if (program.coverage.blocked or program.cut) and any(_may_go_on(program, agent) for agent in ends):
        return False
    return len(ends) < len(program.agents)


def _may_go_on(program: Program, agent: int) -> bool:
    """Whether the kernel may have more than was read of this agent."""
    code = program.code[agent]
    return agent in program.cut or bool(code and code[-1][0] in PLAIN_WAITS | MEETING_WAITS)


class _Reach:
    """How far each agent can come at most."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.pcs = [0] * len(program.agents)
        self._count: dict[int, int] = {}
        self._open: set[int] = set()  # barriers of which it is not known how many phases complete at most
        self._arrivals, self._bytes, self._threads = Counter[int](), Counter[int](), Counter[int]()
        self._least: dict[int, int] = {}  # bytes that an arrival expects at least
        self._complete = Counter[tuple[int, int]]()  # by agent and barrier: phases that are complete at its operation
        self._met = Counter[tuple[int, int]]()
        self._jumps = [any(op[0] == Op.JUMP_IF for op in code) for code in program.code]

    def advance(self, agent: int) -> bool:
        """Let an agent continue as far as it can; True if it moved."""
        code, began = self._program.code[agent], self.pcs[agent]
        while self.pcs[agent] < len(code) and self._passes(agent, code[self.pcs[agent]]):
            self._signal(code[self.pcs[agent]])
            self.pcs[agent] += 1
        return self.pcs[agent] > began

    def _passes(self, agent: int, op: Operation) -> bool:
        if self._jumps[agent]:  # which may lead past a wait
            return True
        if op[0] in PLAIN_WAITS:
            return self._passes_wait(agent, op[BARRIER], operand(op, "parity"))
        if op[0] == Op.BAR_SYNC:
            return self._passes_sync(agent, op)
        return True

    def _passes_wait(self, agent: int, barrier: int, parity: int) -> bool:
        complete = self._complete[agent, barrier]
        if complete & 1 != parity:
            return True
        if barrier not in self._open and self._most(barrier) <= complete:
            return False
        self._complete[agent, barrier] += 1
        return True

    def _most(self, barrier: int) -> int:
        """The phases that can have completed at most."""
        count = max(self._count.get(barrier, 1), 1)
        phases, least = self._arrivals[barrier] // count, self._least.get(barrier, 0)
        return min(phases, self._bytes[barrier] // (count * least)) if least else phases

    def _passes_sync(self, agent: int, op: Operation) -> bool:
        barrier, threads, lanes = operand(op, "named_barrier"), operand(op, "threads"), operand(op, "lanes")
        needed = (self._met[agent, barrier] + 1) * threads
        if self._threads[barrier] + lanes < needed - self._others_waiting(agent, barrier):
            return False
        self._met[agent, barrier] += 1
        return True

    def _others_waiting(self, agent: int, barrier: int) -> int:
        """Threads that stand at the same barrier now, and have not been counted yet."""
        standing = (
            code[pc] for other, (code, pc) in enumerate(zip(self._program.code, self.pcs, strict=True))
            if other != agent and pc < len(code)
        )  # fmt: skip
        return sum(
            operand(op, "lanes") for op in standing if op[0] == Op.BAR_SYNC and operand(op, "named_barrier") == barrier
        )

    def _signal(self, op: Operation) -> None:
        """What an operation gives to others, whenever it takes effect."""
        match op[0]:
            case Op.INIT:
                self._open |= {op[BARRIER]} & self._count.keys()
                self._count[op[BARRIER]] = operand(op, "count")
            case Op.ARRIVE:
                self._arrivals[op[BARRIER]] += operand(op, "count")
                self._expects(op[BARRIER], operand(op, "expect") // max(operand(op, "count"), 1))
            case Op.COMMIT | Op.COMMIT_MULTICAST:
                for barrier in self._program.commit_barriers(op):
                    self._arrivals[barrier] += 1
                    self._expects(barrier, 0)
            case Op.TMA_LOAD:
                for barrier, _ in self._program.landings(op):
                    self._bytes[barrier] += op[ASYNC_BYTES]
            case Op.BAR_SYNC | Op.BAR_ARRIVE:
                self._threads[operand(op, "named_barrier")] += operand(op, "lanes")
            case _ if op[0] in CHANGES_PHASE or op[0] in DELAYED_ARRIVALS:
                self._open.add(op[BARRIER])

    def _expects(self, barrier: int, nbytes: int) -> None:
        self._least[barrier] = min(nbytes, self._least.get(barrier, nbytes))
