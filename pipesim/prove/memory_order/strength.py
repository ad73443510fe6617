"""How far what an operation says about memory reaches: to nobody, inside one CTA, or to other CTAs as well.

PTX ISA, memory consistency model, *release and acquire patterns*: a relaxed arrival hands on what a fence before it
covers, a relaxed wait or try orders what it has seen from the next fence on, each as far as fence and operation reach.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from pipesim.model.ops import Order, Scope, order_of, scope_of
from pipesim.prove.happens_before.moment import Knowledge

_ACQUIRES = frozenset({Order.DEFAULT, Order.ACQUIRE, Order.ACQ_REL})


class FenceReach(IntEnum):
    """How far something orders memory: not at all, inside one CTA, or across CTAs as well."""

    NOWHERE = 0
    CTA = 1
    CLUSTER = 2


class Observation(NamedTuple):
    """What it is worth to have seen a phase: how far it orders ``now``, and how far a wide fence behind it would."""

    now: FenceReach
    fenced: FenceReach


class Fences(NamedTuple):
    """What an agent's fences cover: the last one of any scope, and the last one that reaches other CTAs."""

    near: Knowledge
    wide: Knowledge


class WeakTry(NamedTuple):
    """A try whose answer an agent holds: its order and scope, its position, and the fences since.

    ``phases`` were complete when it said yes; 0 if it said no.
    """

    written: int
    pc: int
    phases: int
    fenced: FenceReach


def is_acquire(written: int) -> bool:
    """True of an order and scope, as an operand has them, that takes over what was handed on."""
    return order_of(written) in _ACQUIRES


def observation(written: int) -> Observation:
    """What a wait or try of this order and scope is worth once it has seen its phase."""
    reach = FenceReach.CTA if scope_of(written) == Scope.CTA else FenceReach.CLUSTER
    return Observation(reach if is_acquire(written) else FenceReach.NOWHERE, reach)
