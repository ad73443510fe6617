"""How exactly observations determine values: confidence intervals from slopes, and which values go only together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipesim.conform.fit.observation import Vector

LEAST_WIDTH = 5.0  #: an interval within which any value counts as determined
_MIXED = 0.9  #: a correlation above which two values are only determined together
_CONFIDENCE = 0.975  #: of a two-sided interval of 95 %

#: Half of each value's 95 % interval (None: nothing depends on it), what it is mixed up with, and the scale.
Spread = tuple[list[float | None], list[tuple[str, ...]], float]


def is_wide(half_width: float, value: float) -> bool:
    """Whether an interval is too wide to say that the value is determined."""
    return half_width > max(abs(value), LEAST_WIDTH)


def spread(slopes: Sequence[Vector], off: Vector, names: Sequence[str], *, known: bool) -> Spread:
    """Intervals from slopes, of which there may be several (the wider interval counts), and deviations.

    ``known``: sigmas are taken at their word, as before a fit, when deviations are those of wrong values.
    """
    each = [_spread(one, off, names, known=known) for one in slopes]
    widths = [
        None if None in of else max(width for width in of if width is not None)
        for of in zip(*(e[0] for e in each), strict=True)
    ]
    return widths, each[0][1], each[0][2]


def _spread(slopes: Vector, off: Vector, names: Sequence[str], *, known: bool) -> Spread:
    from scipy.stats import t

    weights = np.ones(len(off)) if known else 1 / np.sqrt(1 + off**2)  # those of the loss: outliers say little
    weighted = slopes * weights[:, None] ** 0.5
    free = max(1, len(off) - len(names))
    scale = float(np.sqrt(np.sum(weights * off**2) / free))
    sizes = np.sqrt((weighted**2).sum(axis=0))
    moved = sizes > 0
    covariance = np.full((len(names), len(names)), np.inf)
    if moved.any():
        scaled = weighted[:, moved] / sizes[moved]
        information = scaled.T @ scaled
        inverse = np.linalg.pinv(information + 1e-9 * np.eye(len(information)), hermitian=True)
        covariance[np.ix_(moved, moved)] = inverse / np.outer(sizes[moved], sizes[moved])
    factor = float(t.ppf(_CONFIDENCE, free)) * (1.0 if known else max(scale, 1.0))
    widths = [factor * float(np.sqrt(covariance[n, n])) if moved[n] else None for n in range(len(names))]
    return widths, _correlated_values(names, moved, covariance), scale


def _correlated_values(names: Sequence[str], moved: NDArray[np.bool_], covariance: Vector) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for n in range(len(names)):
        others = [
            names[m]
            for m in range(len(names))
            if m != n and moved[n] and moved[m]
            and abs(covariance[n, m]) > _MIXED * np.sqrt(covariance[n, n] * covariance[m, m])
        ]  # fmt: skip
        found.append(tuple(others))
    return found


def determined_values(
    slopes: Sequence[Vector], off: Vector, names: Sequence[str], x: Vector, *, known: bool
) -> list[int]:
    """The numbers of the names that are determined: the others are given up one by one."""
    kept = list(range(len(names)))
    while kept:
        widths, _, _ = spread([one[:, kept] for one in slopes], off, [names[n] for n in kept], known=known)
        excess = [
            np.inf if width is None else width / max(abs(float(x[n])), LEAST_WIDTH)
            for width, n in zip(widths, kept, strict=True)
        ]
        worst = int(np.argmax(excess))
        if excess[worst] <= 1:
            break
        del kept[worst]
    return kept
