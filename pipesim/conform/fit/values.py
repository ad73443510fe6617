"""What a fit finds, as data: values with their intervals, and the captures that would determine more of them."""

from dataclasses import dataclass
from enum import Enum


class ValueState(Enum):
    """What a calibration says about a value of the profile. The value is the word of a report."""

    MEASURED = "measured"  #: by a micro-kernel
    FITTED = "fitted"  #: to the recordings, which determine it
    ASSUMED = "assumed"  #: kept from the base profile: nothing determines it


@dataclass(frozen=True)
class CalibratedValue:
    """One value: the base's, the new one, half of its 95 % interval (None: nothing depends on it), its state.

    ``with_others``: values that it cannot be distinguished from, so that only all of them together have an effect.
    """

    name: str
    base: int
    value: int
    half_width: float | None
    state: ValueState
    with_others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A capture by the label of its candidate, and the values that become determined with it."""

    label: str
    determines: tuple[str, ...]
