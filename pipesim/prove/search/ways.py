"""What an agent does from where it is up to each operation at which it may have to stay, read off its code once.

A way is cut into legs. A leg ends before an operation that can hold the agent up, and says what the agent has touched
by then and what it brings on this leg: so whoever asks how far agents come adds up legs, not operations.
"""

from typing import NamedTuple

from pipesim.model.groups import (
    ANSWER,
    ARRIVALS,
    AWAITED_TOKEN,
    BARRIER,
    COMMIT_BARRIER,
    COUNT,
    CP_ASYNC_LANES,
    ENGINE,
    EXPECT,
    GROUPS,
    JUMP_REGISTER,
    LIFE,
    NAMED_BARRIER,
    NAMED_LANES,
    ON_NAMED_BARRIER,
    PARITY,
    PARITY_TRIES,
    PARITY_WAITS,
    PLAIN_WAITS,
    SKIP,
    THREADS,
    TRANSACTIONS,
    VALUE,
    WRITES_REGISTER,
)
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.search.footprint import NOTHING, Footprints, Touch, signals
from pipesim.prove.search.parts import Local, Parts


class Gives(NamedTuple):
    """What one operation brings: ``counts`` are arrivals, or threads of named barriers, by part.

    ``landing``: the parts whose bytes change. ``free``: the parts of which nothing can be said after it.
    """

    touch: Touch
    counts: tuple[tuple[int, int], ...]
    landing: int
    free: int


class Supplies:
    """What the operations of one program bring; ``rest`` is all that an agent touches from each of them on.

    ``threads`` is the least number for which a named barrier is ever used, by part.
    """

    def __init__(self, program: Program, parts: Parts, footprints: Footprints) -> None:
        self._program = program
        self._parts = parts
        self.threads: dict[int, int] = {}
        self.gives = [
            [
                self._gives_of(op, footprints.operations[agent][pc].join(footprints.issued[agent][pc]))
                for pc, op in enumerate(code)
            ]
            for agent, code in enumerate(program.code)
        ]
        self.rest = [_suffixes(given) for given in self.gives]

    def _gives_of(self, op: Operation, touch: Touch) -> Gives:
        parts = self._parts
        if op[0] in ON_NAMED_BARRIER:
            named = parts.named[op[NAMED_BARRIER]]
            self.threads[named] = max(1, min(self.threads.get(named, op[THREADS]), op[THREADS]))
            return Gives(touch, ((named, op[NAMED_LANES]),), 0, 0)
        if op[0] == Op.CLUSTER_ARRIVE:
            return Gives(touch, ((parts.cluster, 1),), 0, 0)
        if op[0] in LIFE or op[0] == Op.ARRIVE_DROP:
            return Gives(touch, (), 0, 1 << parts.barriers[op[BARRIER]])
        if op[0] in TRANSACTIONS:
            return Gives(touch, (), 1 << parts.barriers[op[BARRIER]], 0)
        if op[0] in ARRIVALS:
            barrier = parts.barriers[op[BARRIER]]
            expects = op[0] == Op.ARRIVE and op[EXPECT] != 0
            return Gives(touch, ((barrier, max(op[COUNT], 0)),), int(expects) << barrier, 0)
        signalled = [parts.barriers[barrier] for barrier in signals(self._program, op)]
        if op[0] == Op.TMA_LOAD:
            return Gives(touch, (), sum({1 << barrier for barrier in signalled}), 0)
        arrivals = op[CP_ASYNC_LANES] if op[0] == Op.CP_ASYNC_ARRIVE else 1
        return Gives(touch, tuple((barrier, arrivals) for barrier in signalled), 0, 0)


def _suffixes(given: list[Gives]) -> list[Touch]:
    rest = [Touch()]
    for gives in reversed(given):
        rest.append(rest[-1].join(gives.touch))
    return rest[::-1]


_FAR = 256  #: operations that an agent's way is followed; beyond, it may do all that it still has to do


class Try(NamedTuple):
    """Of a phase of a barrier (its ``part``), by parity; the register has the answer."""

    register: int
    part: int
    parity: int


class PhaseWait(NamedTuple):
    """For a phase of a barrier, by parity. ``told``: the try by which it may be skipped, None if it always waits."""

    part: int
    parity: int
    told: Try | None


class StateWait(NamedTuple):
    """For the phase of a token, None if it is not known."""

    part: int
    token: int | None


class Sync(NamedTuple):
    """At a named barrier, where the agent has arrived. ``now``: already in the state from which the way begins."""

    part: int
    now: bool
    loose: bool


class ClusterArrive(NamedTuple):
    """An arrival at the cluster barrier: holds no agent up, but decides which generation the next wait is for."""


class ClusterWait(NamedTuple):
    """At the cluster barrier."""

    loose: bool


class GroupWait(NamedTuple):
    """For all but ``groups`` of the groups of an engine, ``closed`` more of which the agent has closed on its way."""

    engine: int
    groups: int
    closed: int


class End(NamedTuple):
    """Nothing more: the agent has ended, or is taken to do all that it has left to do."""


Stop = PhaseWait | StateWait | Sync | ClusterArrive | ClusterWait | GroupWait | End

_END = End()


class Leg(NamedTuple):
    """What comes before ``stop``: all that was touched on the way so far, and what the operations of this leg bring.

    ``tries``: those that this leg made.
    """

    reads: int
    writes: int
    adds: int
    counts: tuple[tuple[int, int], ...]
    landing: int
    free: int
    tries: tuple[Try, ...]
    stop: Stop


class Way:
    """The way of one agent from one place on; its ``legs`` are found as far as :meth:`longer` was asked for them.

    ``for_groups``: with the waits for groups of transfers, which hold no agent up if no transfer is held still.
    """

    def __init__(
        self, program: Program, parts: Parts, supplies: Supplies, agent: int, local: Local, *, for_groups: bool
    ) -> None:
        self.agent = agent
        self.local = local
        self.legs: list[Leg] = []
        self._for_groups = for_groups
        self._parts = parts
        self._code = program.code[agent]
        self._gives = supplies.gives[agent]
        self._rest = supplies.rest[agent]
        self._at = local.pc
        self._arrived = local.hold > 0  # at the named barrier where it is
        self._registers: list[int | None] = list(local.registers)
        self._tries: dict[int, Try] = {}
        self._closed: dict[int, int] = {}  # groups, by engine
        self._sure_from = -1  # before this operation a jump may have left everything out
        self._loose = False  # after such a jump only mbarriers are known to hold it up
        self._touch = NOTHING
        self._brought = _LegEffects()
        self.longer()

    def longer(self) -> None:
        """Add the next leg. There is one, as long as the last does not stop at an :class:`End`."""
        self._brought = _LegEffects()
        if self.legs:
            self._pass()
        while (stop := self._stop()) is None:
            self._pass()
        brought = self._brought
        counts, tries = tuple(brought.counts.items()), tuple(brought.tries)
        self.legs.append(Leg(*self._touch[:3], counts, brought.landing, brought.free, tries, stop))

    def _stop(self) -> Stop | None:
        """What may hold the agent up where it is, None if nothing."""
        if self._at >= len(self._code):
            return _END
        if self._at - self.local.pc >= _FAR:
            rest = self._rest[self._at]
            self._give(Gives(rest, (), 0, rest.reads | rest.writes | rest.adds))
            return _END
        op = self._code[self._at]
        if op[0] == Op.BAR_SYNC and not self._arrived:
            self._arrived = True
            self._give(self._gives[self._at])
        return self._stop_at(op) if self._is_sure else None

    def _stop_at(self, op: Operation) -> Stop | None:
        match op[0]:
            case code if code in PARITY_WAITS:
                return self._wait(op, plain=code in PLAIN_WAITS)
            case Op.WAIT_STATE:
                return StateWait(self._parts.barriers[op[BARRIER]], self._registers[op[AWAITED_TOKEN]])
            case Op.BAR_SYNC:
                now = self._at == self.local.pc and self.local.hold > 0
                return Sync(self._parts.named[op[NAMED_BARRIER]], now, self._loose)
            case Op.CLUSTER_ARRIVE:
                return ClusterArrive()
            case Op.CLUSTER_WAIT:
                return ClusterWait(self._loose)
            case Op.WAIT_GROUP if self._for_groups and not self._loose:
                return GroupWait(op[ENGINE], op[GROUPS], self._closed.get(op[ENGINE], 0))
            case _:
                return None

    def _wait(self, op: Operation, *, plain: bool) -> PhaseWait | None:
        """For a phase, unless a register may say that there is no need to; what another try said is not known."""
        wait = PhaseWait(self._parts.barriers[op[BARRIER]], op[PARITY], None)
        if plain or op[ANSWER] < 0 or self._registers[op[ANSWER]] == 0:
            return wait
        told = self._tries.get(op[ANSWER])
        if told is None or (told.part, told.parity) != (wait.part, wait.parity):
            return None
        return wait._replace(told=told)

    def _pass(self) -> None:
        """To the next operation, or past a jump."""
        op, here = self._code[self._at], self._gives[self._at]
        if op[0] == Op.BAR_SYNC:  # it has arrived, and may end here
            here = Gives(Touch(1 << self._parts.named[op[NAMED_BARRIER]], here.touch.writes), (), 0, 0)
        elif op[0] == Op.COMMIT and op[COMMIT_BARRIER] < 0 and self._is_sure:
            self._closed[op[ENGINE]] = self._closed.get(op[ENGINE], 0) + 1
        self._give(here)
        self._write_register(op)
        self._arrived = False
        self._at += 1
        if op[0] == Op.JUMP_IF:
            self._jump(op)

    def _jump(self, op: Operation) -> None:
        known = self._registers[op[JUMP_REGISTER]]
        if known is not None and self._at > self._sure_from:
            self._at += op[SKIP] if known == op[VALUE] else 0
            return
        self._sure_from = max(self._sure_from, self._at + op[SKIP])
        self._registers = [None] * len(self._registers)
        self._tries = {}
        self._loose = True

    @property
    def _is_sure(self) -> bool:
        return self._at >= self._sure_from

    def _give(self, given: Gives) -> None:
        self._touch = self._touch.join(given.touch)
        brought = self._brought
        for part, count in given.counts:
            brought.counts[part] = brought.counts.get(part, 0) + count
        brought.landing |= given.landing
        brought.free |= given.free

    def _write_register(self, op: Operation) -> None:
        """Forget what the operation overwrites, and remember a try."""
        if op[0] not in WRITES_REGISTER:
            return
        register = operand(op, "register")
        if register < 0:
            return
        self._registers[register] = None
        self._tries.pop(register, None)
        if op[0] in PARITY_TRIES and self._is_sure:
            told = self._tries[register] = Try(register, self._parts.barriers[op[BARRIER]], op[PARITY])
            self._brought.tries.append(told)


class _LegEffects:
    """What the operations of one leg bring."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.landing = 0
        self.free = 0
        self.tries: list[Try] = []
