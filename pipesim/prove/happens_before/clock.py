"""What *occurs before* a moment of one run, as two rows of counters: the clock of the certificate."""

from __future__ import annotations

from typing import NamedTuple

_new = tuple.__new__  # of a named tuple: its own constructor, a function of Python's, takes twice as long


class Clock(NamedTuple):
    """``seen``: how many operations of each agent were carried out before; ``known``: how many phases of each channel.

    A channel is an mbarrier, a named barrier or the cluster barrier, as the machine numbers them.
    """

    seen: tuple[int, ...]
    known: tuple[int, ...]

    def join(self, other: Clock) -> Clock:
        """What occurs before either moment."""
        if self is other:
            return self
        return _new(Clock, (_highest(self.seen, other.seen), _highest(self.known, other.known)))

    def after(self, agent: int, pc: int) -> Clock:
        """The moment after the agent's operation at ``pc``, of which this is the one before."""
        seen = self.seen
        return _new(Clock, ((*seen[:agent], pc + 1, *seen[agent + 1 :]), self.known))

    def knowing(self, channel: int, phases: int) -> Clock:
        """The same, and this many phases of the channel are known to be complete."""
        if self.known[channel] >= phases:
            return self
        return _new(Clock, (self.seen, (*self.known[:channel], phases, *self.known[channel + 1 :])))

    def covers(self, agent: int, pc: int) -> bool:
        """True if the agent's operation at ``pc`` occurs before this moment."""
        return self.seen[agent] > pc


def _highest(mine: tuple[int, ...], its: tuple[int, ...]) -> tuple[int, ...]:
    """The higher of each two counters: written out, since a call of ``max`` for each takes three times as long."""
    return mine if mine == its else tuple([a if a > b else b for a, b in zip(mine, its, strict=True)])  # noqa: FURB136
