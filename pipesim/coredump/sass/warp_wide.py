"""Instructions by which the lanes of a warp learn of each other: votes, shuffles, uniform and special registers."""

from __future__ import annotations

from pipesim.coredump.sass.lanes import LANES, LaneState, Value, lift, of_lane, together
from pipesim.coredump.sass.operands import SassParts, Step, predicate
from pipesim.coredump.sass.word import PT, RZ


def special(parts: SassParts) -> Step:
    """S2R, S2UR, CS2R: the last one may be of two words."""
    number, both = parts.word.high >> 8 & 0xFF, parts.word.opcode == 0x805 and parts.word.high >> 16 & 1

    def step(lanes: LaneState, condition: Value) -> None:
        value = 0 if number == RZ else parts.around.special(number)
        parts.put(lanes, of_lane(value, lanes.first()) if parts.uniform else value, condition)
        if both:
            parts.put(lanes, 0 if number == RZ else None, condition, 1)

    return step


def to_uniform(parts: SassParts) -> Step:
    """R2UR: the value of the first lane. The predicate that it gives is true in lanes that have another (.OR: also)."""
    says, source, joins = parts.field(17), parts.word.ra, parts.word.high >> 20 & 1

    def step(lanes: LaneState, condition: Value) -> None:
        value, (yes, _) = lanes.registers[source], lanes.lanes_where(condition)
        chosen = of_lane(value, (yes & -yes).bit_length() - 1) if yes else None
        parts.put(lanes, chosen, True)
        if says != PT:
            before = lanes.predicates[says] if joins else False
            lanes.put(lanes.predicates, says, lift(lambda v, c, b: v != c or b, value, chosen, before), condition)

    return step


def vote(parts: SassParts) -> Step:
    """VOTE: which lanes say so, and whether all, or any of them, do (bits 72 and 73)."""
    asked, anyone = predicate(parts.word.high >> 23 & 0xF), parts.word.high >> 8 & 3 == 1

    def step(lanes: LaneState, condition: Value) -> None:
        (asking, _), (yes, unknown) = lanes.lanes_where(condition), lanes.lanes_where(asked(lanes))
        ballot = None if unknown else yes & asking
        parts.put(lanes, ballot, True if parts.uniform else condition)
        said = None if ballot is None else bool(ballot) if anyone else ballot == asking
        parts.say(lanes, parts.field(17), said, condition)

    return step


def elect(parts: SassParts) -> Step:
    """ELECT: true in the first of the lanes."""

    def step(lanes: LaneState, condition: Value) -> None:
        yes, _ = lanes.lanes_where(condition)
        first, says = (yes & -yes).bit_length() - 1, parts.field(17)
        if says != PT:
            lanes.put(lanes.predicates, says, together([n == first for n in range(LANES)]), condition)
        parts.put(lanes, yes, True)

    return step


def shuffle(parts: SassParts) -> Step:
    """SHFL: what all lanes have stays; .IDX gives that of one lane, and the result of the others is not known."""
    word, indexed = parts.word, not parts.word.low >> 58 & 3

    def step(lanes: LaneState, condition: Value) -> None:
        value = lanes.registers[word.ra]
        if type(value) is tuple:
            lane = {0x589: lanes.registers[word.rb], 0xF89: word.low >> 53 & 31}.get(word.opcode) if indexed else None
            value = lift(lambda n, value=value: of_lane(value, n & 31), lane)
        parts.put(lanes, value, condition)

    return step


def to_predicates(parts: SassParts) -> Step:
    """R2P: the predicates in the mask from the low bits of a register."""
    a, mask, _ = parts.plain

    def step(lanes: LaneState, condition: Value) -> None:
        chosen = mask(lanes)
        for n in range(PT):
            if type(chosen) is not int or chosen >> n & 1:
                lanes.put(lanes.predicates, n, lift(lambda v, n=n: bool(v >> n & 1), a(lanes)), condition)

    return step
