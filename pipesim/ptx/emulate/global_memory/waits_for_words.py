"""Which values of a word of global memory end the loop that loads it."""

from typing import Protocol

from pipesim.ptx.emulate.code import Code, DecodedStep, RunEnd, StraightRun
from pipesim.ptx.emulate.values import Value, are_known, lanes_in, of_lane, same
from pipesim.ptx.flow.voted_waits import HandedWait
from pipesim.ptx.text.instruction import Sink, Vector

_MOST_RUNS = 400  #: of straight code, on all ways through a loop
_WRITES = ("st", "red", "atom", "cp")


class LoopingWarp(Protocol):
    """What straight code needs of a warp."""

    K: list[Value]


class LoopOfWait:
    """The loop around a load or an atomic, from these registers on: that is the innermost one.

    ``left``: what it leaves in registers that each iteration changes, as the number of tries is: nothing is known of
    that, since any number of iterations may come before the last one.
    """

    def __init__(
        self, code: Code, step: DecodedStep, registers: list[Value], lanes: int, warp: LoopingWarp
    ) -> None:  # fmt: skip
        here = step.instruction.position
        self._code, self._step, self._warp, self._here = code, step, warp, here
        self._again = {here, code.regions.loops.looks_before.get(here, here)}
        self._loop, self._lanes = code.regions.loops.innermost_loop_around(here), lanes_in(lanes)
        self._first = _of_every_iteration(code, step, registers, self._loop, warp, self._again)
        changed = (r for r, value in enumerate(self._first) if value is not registers[r] and r not in step.results)
        self.left = {r: self._first[r] for r in changed}

    def ends(self, value: Value) -> bool | None:
        """Whether it is left with this result.

        None where it depends on more than the result: on the lane, on what an iteration leaves to the next one, as the
        number of tries is, or where the loop writes memory before it loads again.
        """
        code, mine, pc, writes = self._code, list(self._first), self._here + 1, False
        for register, part in zip(self._step.results, parts_of_value(self._step, value), strict=True):
            mine[register] = part
        for _ in range(_MOST_RUNS):
            segment = code.segments.get(pc) or code.segment(pc)
            if pc not in self._loop or (segment.position not in self._loop and pc != segment.position):
                return True
            if segment.run is not None:
                segment.run(mine, self._warp.K, self._warp)
            if segment.position in self._again:
                return None if writes else False
            if segment.after is RunEnd.EXIT:
                return True
            writes |= _does(segment, mine, code, self._here)
            guard = segment.guard if segment.after is RunEnd.BRANCH else -1
            taken = {of_lane(mine[guard], lane) for lane in self._lanes} if guard >= 0 else {1 - segment.negated}
            said = {bool(p) if isinstance(p, int) else None for p in taken}
            if len(said) > 1 or None in said:  # where some lanes are to continue, the warp waits for the others
                return None if None in said else False
            jumps = segment.after is RunEnd.BRANCH and (guard < 0 or said == {not segment.negated})
            pc = segment.target if jumps else segment.next
        return None


def parts_of_value(step: DecodedStep, value: Value) -> list[Value]:
    """What a load writes to each of its registers; elements of a vector are one after the other in the value."""
    first = step.instruction.operands[0]
    if not isinstance(first, Vector):
        return [value] * len(step.results)
    width = int(step.instruction.modifiers[-1][1:])
    mask = (1 << width) - 1
    return [value >> width * n & mask for n, part in enumerate(first.parts) if not isinstance(part, Sink)]


def _of_every_iteration(
    code: Code, step: DecodedStep, registers: list[Value], loop: frozenset[int], warp: LoopingWarp, again: set[int]
) -> list[Value]:
    """The registers before the load, as far as each iteration of the loop leaves them the same; others are not known.

    What an iteration computes is run from registers of which nothing is known that the loop writes, on all ways: what
    is known after that holds of every iteration but the first.
    """
    here, writes = step.instruction.position, code.regions.uses.writes
    changed = {code.register(name) for p in loop for name in writes[p]}
    unknown = list(registers)
    for register in changed:
        unknown[register] = code.unknown_value(None)
    kept, open_ = set(changed), [(here + 1, list(unknown))]
    for _ in range(_MOST_RUNS):
        if not open_ or not kept:
            break
        pc, mine = open_.pop()
        segment = code.segments.get(pc) or code.segment(pc)
        if pc not in loop or (segment.position not in loop and pc != segment.position):
            continue
        if segment.run is not None:
            segment.run(mine, warp.K, warp)
        if segment.position in again:
            kept = {r for r in kept if are_known([mine[r]]) and same(mine[r], registers[r])}
            continue
        if segment.after is RunEnd.EXIT:
            continue
        _does(segment, mine, code, here)
        if segment.after is RunEnd.BRANCH:
            p: Value = not segment.negated if segment.guard < 0 else mine[segment.guard]
            jumps = bool(p) is not segment.negated if isinstance(p, int) else None
            if jumps is not False:
                open_.append((segment.target, list(mine)))
            if jumps is not True:
                open_.append((segment.next, mine))
        else:
            open_.append((segment.next, mine))
    if open_ and kept:
        return unknown
    return [unknown[r] if r in changed - kept else value for r, value in enumerate(registers)]


def _does(segment: StraightRun, registers: list[Value], code: Code, load: int) -> bool:
    """Whether what ends a straight run writes memory; what it loads is not known. A vote on the end of the wait is that
    of the thread that loads, and what it gives to others is what it has loaded.
    """
    effect, wait = segment.step, code.regions.loops.voted.get(load)
    if effect is None:
        return False
    if wait is not None and effect.instruction.position == wait.learns:
        registers[code.register(wait.result)] = registers[code.register(wait.given)]
        return False
    if isinstance(wait, HandedWait) and effect.instruction.position == wait.store:
        return False
    for register in effect.results:
        registers[register] = code.unknown_value(None)
    p = True if effect.guard < 0 else registers[effect.guard]
    return effect.instruction.opcode in _WRITES and not (isinstance(p, int) and bool(p) is effect.negated)
