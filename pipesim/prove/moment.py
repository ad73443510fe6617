"""What comes before a moment of one run, under each relation that the memory model knows.

*Occurs-before* has every edge of the run. *Ordered-before* has those that a release and an acquire make, whatever their
scope; *synchronised-before* those whose scope reaches the other side, too. Of what is synchronised before,
``fence.proxy.async`` hands the writes to the asynchronous proxy, and ``fence.mbarrier_init`` the inits to everybody.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.prove.clock import Clock


class Moment(NamedTuple):
    """One clock for each relation; ``proxied`` and ``published``: what a fence has handed on."""

    occurs: Clock
    ordered: Clock
    synced: Clock
    proxied: Clock
    published: Clock

    def join(self, other: Moment) -> Moment:
        """What comes before either moment."""
        return Moment(*(mine if mine is its else mine.join(its) for mine, its in zip(self, other, strict=True)))

    def after(self, agent: int, pc: int) -> Moment:
        """The moment after the agent's operation at ``pc``. A fence alone hands anything on."""
        return self._replace(
            occurs=self.occurs.after(agent, pc),
            ordered=self.ordered.after(agent, pc),
            synced=self.synced.after(agent, pc),
        )

    def knowing(self, channel: int, phases: int) -> Moment:
        """The same, and so many phases of the channel are known to be complete."""
        return self._replace(
            occurs=self.occurs.knowing(channel, phases),
            ordered=self.ordered.knowing(channel, phases),
            synced=self.synced.knowing(channel, phases),
        )


class Phase(NamedTuple):
    """What the parts of a phase hand to those who wait for it; ``near``: without what other CTAs' agents hand on."""

    wide: Moment
    near: Moment

    def join(self, other: Phase) -> Phase:
        """Both phases' parts."""
        return Phase(self.wide.join(other.wide), self.near.join(other.near))

    def knowing(self, channel: int, phases: int) -> Phase:
        """The same, and so many phases of the channel are known to be complete."""
        return Phase(self.wide.knowing(channel, phases), self.near.knowing(channel, phases))
