"""The formula of a program's times: a list of instructions over numbered values, the same for every profile.

A value is a time in cycles, or an array of times, one for each of many profiles. The first values are the agents' own
times: when each executes its next operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from pipesim.model.ops import Operation


class Do(IntEnum):
    """What an instruction does; its operands are values (v), prices (p) or flags, in this order."""

    ADD = 0  #: v += busy cycles of the sum p
    SAVE = 1  #: v = v
    LATER = 2  #: v = the later of v and v
    SEEN = 3  #: v = v + visible cycles of p
    WAIT = 4  #: agent v waits for what is seen at v (-1: long ago); p; flags: woken by a landing, recorded
    LEAVE = 5  #: agent v goes on at v, from a meeting
    AFTER = 6  #: v must be after v, or the formula says nothing
    COPY = 7  #: agent v issues a copy on the engine v; its landing is v; p; flag: the first, which is cold
    ENGINE_WORK = 8  #: agent v gives work to the engine v, which ends with it at v; p
    FLIGHT = 9  #: v = v + flight of p
    GROUP = 10  #: agent v waits for groups that are finished at v (-1: none); p
    WAIT_UNLESS = 11  #: as WAIT, but for nothing if a try at v has seen it
    TRY = 12  #: agent v is suspended in a try until it has seen what is seen at v; p; flag: woken by a landing
    IN_TURN = 13  #: v uses an engine after v, or the formula says nothing; flags: it has the higher number, it copies
    TRY_AGAIN = 14  #: agent v, whose try fails if it comes before what is seen at v (-1: it does), makes one more


#: Places of the operands that are values which an instruction reads, and which it writes.
READ: dict[Do, tuple[int, ...]] = {
    Do.ADD: (0,), Do.SAVE: (1,), Do.LATER: (1, 2), Do.SEEN: (1,), Do.WAIT: (0, 1), Do.LEAVE: (0, 1), Do.AFTER: (0, 1),
    Do.COPY: (0, 1), Do.ENGINE_WORK: (0, 1), Do.FLIGHT: (0,), Do.GROUP: (0, 1), Do.WAIT_UNLESS: (0, 1, 5),
    Do.TRY: (0, 1), Do.IN_TURN: (0, 1), Do.TRY_AGAIN: (0, 1),
}  # fmt: skip
WRITTEN: dict[Do, tuple[int, ...]] = {
    **dict.fromkeys(Do, (0,)), Do.AFTER: (), Do.IN_TURN: (), Do.COPY: (1, 2), Do.ENGINE_WORK: (0, 1, 2),
}  # fmt: skip
_ONLY_WRITES = frozenset({Do.SAVE, Do.LATER, Do.SEEN})  #: nothing is checked by these
#: Places of all operands that are values; -1 there is none.
VALUES = {what: tuple(sorted({*READ[what], *WRITTEN[what]})) for what in Do}

Instruction = tuple[int, ...]


@dataclass(frozen=True)
class Priced:
    """An operation whose cost the formula uses, and the line that says what work it does (-1: none).

    ``recorded``: the cost of a record is part of it.
    """

    op: Operation
    line: int
    recorded: bool


@dataclass
class Formula:
    """The times of one program.

    ``sums``: numbers of the priced operations of each sum. ``alike``: pairs of prices whose visible cycles must be
    equal. ``queued``: prices of copies that must take some time on their engine. ``quartered``: prices of
    multiplications that only the tensor core of a quarter makes, whose instructions must take the time of each other's
    in pairs that are ``paced``. ``tries``: prices of tries that can be suspended.
    ``used``: prices of whatever uses an engine.
    ``landings``: all of them, with the CTA of their issuer and whether they hold memory open.
    """

    ctas: tuple[int, ...]  #: of each agent
    values: int = 0
    instructions: list[Instruction] = field(default_factory=list)
    priced: list[Priced] = field(default_factory=list)
    sums: list[tuple[int, ...]] = field(default_factory=list)
    alike: set[tuple[int, int]] = field(default_factory=set)
    queued: set[int] = field(default_factory=set)
    tries: set[int] = field(default_factory=set)
    quartered: set[int] = field(default_factory=set)
    paced: set[tuple[int, int]] = field(default_factory=set)
    used: set[int] = field(default_factory=set)
    landings: list[tuple[int, int, bool]] = field(default_factory=list)

    def drop_unread(self) -> None:
        """Leave out what writes only values that nothing reads: most are saved in case a time must be compared."""
        self.instructions = self.all_read(self.instructions)

    def all_read(self, instructions: Sequence[Instruction], also: Iterable[int] = ()) -> list[Instruction]:
        """Those of the instructions that check something, or write values that others, the result or ``also`` read."""
        read = self.results | set(also)
        reads = [READ[what] for what in Do]
        kept = []
        for each in reversed(instructions):
            what = each[0]
            if what in _ONLY_WRITES:
                if each[1] not in read:
                    continue
                read.discard(each[1])
            read.update([each[1 + place] for place in reads[what]])
            kept.append(each)
        return kept[::-1]

    @property
    def results(self) -> set[int]:
        """The values that say when agents and the run end."""
        return {value for value, _, _ in self.landings} | set(range(self.agents))

    @cached_property
    def orders_copies(self) -> bool:
        """Whether it holds for one order of copies only, which depends on times."""
        return any(each[0] == Do.IN_TURN and each[4] for each in self.instructions)

    @property
    def agents(self) -> int:
        """How many there are."""
        return len(self.ctas)
