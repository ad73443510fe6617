"""What comes before a moment of one run, under each relation that the memory model knows.

*Occurs-before* has every edge of the run. *Ordered-before* has those that a release and an acquire make, whatever their
scope; *synchronised-before* those whose scope reaches the other side, too. Of what is synchronised before,
``fence.proxy.async`` hands the writes to the asynchronous proxy, and ``fence.mbarrier_init`` the inits to everybody.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.prove.happens_before.clock import Clock

_new = tuple.__new__  # of a named tuple: its own constructor, a function of Python's, takes twice as long


class Knowledge(NamedTuple):
    """One clock for each relation; ``proxied`` and ``published``: what a fence has passed on."""

    occurs: Clock
    ordered: Clock
    synced: Clock
    proxied: Clock
    published: Clock

    def join(self, other: Knowledge) -> Knowledge:
        """What comes before either moment. Relations that are the same in both stay one object, and cost once."""
        if self is other:
            return self
        occurs = self.occurs.join(other.occurs)
        same = self.ordered is self.occurs and other.ordered is other.occurs
        ordered = occurs if same else self.ordered.join(other.ordered)
        same = self.synced is self.ordered and other.synced is other.ordered
        synced = ordered if same else self.synced.join(other.synced)
        proxied, published = _join(self.proxied, other.proxied), _join(self.published, other.published)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published))

    def after(self, agent: int, pc: int) -> Knowledge:
        """The moment after the agent's operation at ``pc``. A fence alone hands anything on."""
        before, before_ordered, before_synced, proxied, published = self
        occurs = before.after(agent, pc)
        ordered = occurs if before_ordered is before else before_ordered.after(agent, pc)
        synced = ordered if before_synced is before_ordered else before_synced.after(agent, pc)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published))

    def knowing(self, channel: int, phases: int) -> Knowledge:
        """The same, and this many phases of the channel are known to be complete."""
        before, before_ordered, before_synced, proxied, published = self
        occurs = before.knowing(channel, phases)
        ordered = occurs if before_ordered is before else before_ordered.knowing(channel, phases)
        synced = ordered if before_synced is before_ordered else before_synced.knowing(channel, phases)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published))


def _join(one: Clock, other: Clock) -> Clock:
    return one if one is other else one.join(other)


class PhaseKnowledge(NamedTuple):
    """What the parts of a phase hand to those who wait for it; ``near``: without what other CTAs' agents pass on."""

    wide: Knowledge
    near: Knowledge

    def join(self, other: PhaseKnowledge) -> PhaseKnowledge:
        """Both phases' parts."""
        wide = self.wide.join(other.wide)
        return PhaseKnowledge(
            wide, wide if self.wide is self.near and other.wide is other.near else self.near.join(other.near)
        )

    def knowing(self, channel: int, phases: int) -> PhaseKnowledge:
        """The same, and this many phases of the channel are known to be complete."""
        wide = self.wide.knowing(channel, phases)
        return PhaseKnowledge(wide, wide if self.wide is self.near else self.near.knowing(channel, phases))
