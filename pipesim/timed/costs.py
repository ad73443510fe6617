"""What each operation of a program costs under a profile: computed once, before the clock starts."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.model.groups import (
    BLOCKING_WAITS,
    DELAYED_ARRIVALS,
    ENGINE_ACCESSES,
    ISSUE_ONLY,
    MEETINGS,
    SIGNALS,
    TRIES,
)
from pipesim.model.ops import IN_ORDER, OPERANDS, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.timed.outline import PRICED
from pipesim.timed.profile import Profile, scaled
from pipesim.trace.sites import kinds


@dataclass(frozen=True)
class Cost:
    """Cycles of one operation.

    ``busy``: until its agent continues. ``visible``: until others see its effect (of a wait: until it returns once it
    is woken). ``engine``: until the copy engine may start the next. ``flight``: from the start to the last byte, -1 for
    an operation that puts nothing under way.
    """

    busy: int
    visible: int = 0
    engine: int = 0
    flight: int = -1


class Prices:
    """The price list of a program under a profile, ``program.grid`` CTAs sharing the device's bandwidth."""

    def __init__(self, program: Program, profile: Profile, *, traced: bool) -> None:
        self._program = program
        self._profile = profile
        self._record = profile["record.issue"] if traced else 0
        self._known: dict[Operation, Cost] = {}

    def __call__(self, op: Operation) -> Cost:
        """The cost of one operation."""
        key = op[: PRICED.get(op[0], len(op))]
        cost = self._known.get(key)
        if cost is None:
            cost = self._known[key] = _cost(self._program, op, self._profile, self._record)
        return cost


_NAMES_ONLY = frozenset({"parity", "register", "state_register", "item", "named_barrier"})  #: of operands


def form(program: Program, op: Operation) -> tuple[int, ...]:
    """What of an operation decides its price: operations of one form cost the same under every profile.

    Which barrier, stage, register or item it names does not; of memory its space and size do.
    """
    found: list[int] = [op[0]]
    for name, value in zip(OPERANDS[Op(op[0])], op[1:], strict=True):
        if name == "access":
            found += [program.accesses[value].space, program.accesses[value].nbytes]
        elif name == "barrier":
            found.append(value >= 0)
        elif name not in _NAMES_ONLY:
            found.append(value)
    return tuple(found)


def resident(program: Program, profile: Profile) -> int:
    """CTAs of the launch that load at the same time: at most one for each SM."""
    return min(program.grid * program.ctas, profile.sms)


def _cost(program: Program, op: Operation, profile: Profile, record: int) -> Cost:
    extra = record * len(kinds(op))
    match op[0]:
        case code if code in BLOCKING_WAITS:  # the engine adds their records: it knows which are left
            return Cost(profile["wait.issue"], profile["wait.wake_up"])
        case code if code in TRIES:
            return Cost(profile["wait.issue"] + extra)
        case Op.ARRIVE if operand(op, "expect"):
            return Cost(profile["expect.issue"] + extra, profile["arrive.latency"] + extra)
        case code if code in SIGNALS:
            return Cost(profile["arrive.issue"] + extra, profile["arrive.latency"] + extra)
        case Op.TMA_LOAD:
            return _copy(program, op, profile, extra)
        case Op.READ:
            return _read(program, op, profile)
        case Op.WORK:
            cycles = operand(op, "cycles")
            return Cost((cycles + profile["work.issue"] if cycles else 0) + extra)
        case Op.LOOP_NEXT:
            return Cost(profile["loop.issue"])
        case Op.LOOP_BEGIN | Op.LOOP_END | Op.JUMP_IF:
            return Cost(0)
        case code if code in MEETINGS:
            return Cost(0, profile["sync.latency"])
        case code if code in ENGINE_ACCESSES:
            return _transfer(program, op, profile)
        case Op.ENGINE_WORK:
            return Cost(profile["other.issue"], engine=operand(op, "cycles"), flight=0)
        case code if code in DELAYED_ARRIVALS and operand(op, "barrier") >= 0:  # a commit of no group on a barrier
            return Cost(profile["other.issue"], flight=0)
        case code:
            assert code in ISSUE_ONLY, f"{Op(code).name} has no price"
            return Cost(profile["other.issue"])


def _read(program: Program, op: Operation, profile: Profile) -> Cost:
    """Registers are read by whatever computes with them."""
    source = program.accesses[operand(op, "access")]
    if source.space == Space.REGISTERS:
        return Cost(0)
    return Cost(profile["read.issue"] + scaled(source.nbytes, profile["read.bytes_per_kcycle"]))


def _transfer(program: Program, op: Operation, profile: Profile) -> Cost:
    """A result in registers is named by the instruction whose other operands are priced."""
    size = scaled(operand(op, "bytes"), profile["copy.bytes_per_kcycle"])
    late = profile["matrix.latency"] if operand(op, "engine") in IN_ORDER else profile["transfer.latency"] + size
    in_registers = program.accesses[operand(op, "access")].space == Space.REGISTERS
    return Cost(0 if in_registers else profile["other.issue"], flight=late)


def _copy(program: Program, op: Operation, profile: Profile, extra: int) -> Cost:
    """A copy moves at its SM's rate; how soon the next may start is set by its share of what the device can load."""
    sharing = resident(program, profile)
    rate = profile["copy.bytes_per_kcycle"]
    near, far = profile["copy.latency"], profile["copy.latency_loaded"]
    latency = near + (far - near) * (sharing - 1) // max(1, profile.sms - 1)
    share = max(1, min(rate, profile["copy.device_bytes_per_kcycle"] // sharing))
    return Cost(
        profile["copy.issue"] + extra,
        0,
        scaled(operand(op, "bytes"), share),
        extra + latency + scaled(operand(op, "bytes"), rate),
    )
