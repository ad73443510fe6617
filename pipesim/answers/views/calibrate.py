"""What ``calibrate`` answers: a fitted profile, value by value, how far off it is, and which captures would help."""

from dataclasses import dataclass

from pipesim.conform.fit.values import CalibratedValue, Proposal


@dataclass(frozen=True)
class ResidualRow:
    """Relative errors of one kind of quantity over all recordings, in thousandths: before and after the fit."""

    quantity: str
    count: int
    median_before: int
    worst_before: int
    median_after: int
    worst_after: int


@dataclass(frozen=True)
class CalibrationReport:
    """A profile of ``device``, made from ``base``.

    ``inputs``: the recordings by name; ``left_out``: how many were not read because the split holds them out,
    ``repeated`` because they were given already, ``not_chosen`` because enough others of their kernels were.
    ``no_proposals``: why those that were asked for are not known.
    ``ended``: what ended the fit before it was done, "" if nothing did: the values are the best so far.
    ``proposals``: captures that would determine values, and ``never``: values that none of those tried determines;
    None if they were not asked for. ``written``: the file, "" if none. ``kernel``: whose work was measured, in place of
    what its instructions are estimated at; then ``base`` of each value is the estimate.
    """

    profile: str
    device: str
    base: str
    inputs: tuple[str, ...]
    left_out: int
    values: tuple[CalibratedValue, ...]
    residuals: tuple[ResidualRow, ...]
    written: str = ""
    proposals: tuple[Proposal, ...] | None = None
    never: tuple[str, ...] = ()
    kernel: str = ""
    repeated: int = 0
    not_chosen: int = 0
    ended: str = ""
    no_proposals: str = ""
