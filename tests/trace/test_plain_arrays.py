"""The part of NumPy in Python alone: the same as NumPy's, and the kinds of CTAs and races that are found with it."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as real  # noqa: ICN001  # np is either
import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.ptx.extract import extract
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import check_sentence
from pipesim.trace import arrays, plain_arrays
from tests.support.random_cta_kernels import random_cta_kernel
from tests.support.random_global_kernels import random_kernel

#: Of the module, two arrays of small integers, and one of truths.
ASKED: dict[str, Any] = {
    "arithmetic": lambda np, a, b, t: [3 - a * b + 2, a // 3 % 2, a // b, 7 % b, -a, (a << 1) ^ (b & 3) | 1, a >> 1],
    "comparisons": lambda np, a, b, t: [a < b, a <= 2, ~t, t & (a == b), t | False, ~a, (a != 1) * a, sum([t, t])],
    "parts": lambda np, a, b, t: [a[t], a[1:], a[np.argsort(b, kind="stable")], a[2], list(a), len(a), 3 in a],
    "wholes": lambda np, a, b, t: [a.sum(), a.min(), a.max(), t.any(), t.all(), np.all(a == a), a.tolist(), t.sum()],
    "made": lambda np, a, b, t: [np.arange(3, 7), np.full(2, 5), np.zeros(2, dtype=bool), np.ones(3), np.resize(a, 9)],
    "repeated": lambda np, a, b, t: [np.repeat(a, 3), np.broadcast_to(np.asarray(4), 3)],
    "joined": lambda np, a, b, t: [np.concatenate((a, [1], b)), np.stack([a, b], axis=1), np.cumsum(t)],
    "places": lambda np, a, b, t: [np.flatnonzero(t), np.argmin(a), np.argmax(t), np.lexsort((a, b))],
    "searched": lambda np, a, b, t: [np.searchsorted(np.cumsum(t), b, side=side) for side in ("left", "right")],
    "different": lambda np, a, b, t: [*np.unique(a, return_index=True, return_inverse=True), np.unique(a % 2)],
    "rows": lambda np, a, b, t: np.unique(np.stack([t, a % 2], axis=1), axis=0, return_index=True),
    "extremes": lambda np, a, b, t: [np.maximum(a, b), np.minimum(2, a), np.maximum.accumulate(a), np.where(t, a, 0)],
    "segments": lambda np, a, b, t: [np.minimum.reduceat(a, np.array([0, 2])), np.maximum.reduceat(a, np.array([0]))],
    "grids": lambda np, a, b, t: [each.ravel() for each in np.meshgrid(a, b, indexing="ij")],
    "axes": lambda np, a, b, t: [np.stack([a, b]) == a, np.argmax(np.stack([a, b]) == b, axis=0)],
    "truths": lambda np, a, b, t: [np.resize(t, 12).reshape((2, 3, 2)).any(axis=axis) for axis in ((0,), (1, 2), ())],
    "objects": lambda np, a, b, t: [np.frompyfunc(lambda x, y: x - y, 2, 1)(a, b), a.astype(object) * (1 << 70)],
    "types": lambda np, a, b, t: [each.dtype == object for each in (a, a.astype(object), a.astype(object) + 1)],
}  # fmt: skip


NUMPYS: tuple[Any, ...] = (real, plain_arrays)


def plain(value: Any) -> Any:
    """Lists and shapes of what either module has made."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, plain_arrays.ndarray):
        return value.shape, list(value.flat)
    return (value.shape, value.ravel().tolist()) if isinstance(value, real.ndarray) else value


@pytest.mark.parametrize("name", ASKED)
def test_it_does_what_numpy_does(name: str) -> None:
    rng = random.Random(name)
    for _ in range(20):
        values = [[rng.randint(low, 5) for _ in range(6)] for low in (-4, 1)]
        truths = [rng.random() < 0.5 for _ in range(6)]
        made = [
            ASKED[name](np, *(np.array(each, dtype=np.int64) for each in values), np.array(truths, dtype=bool))
            for np in NUMPYS
        ]
        assert plain(made[0]) == plain(made[1])


def test_what_it_has_not_is_said() -> None:
    with pytest.raises(AttributeError, match=r"NumPy, of which numpy\.percentile is needed, is not installed"):
        plain_arrays.percentile  # noqa: B018


@contextmanager
def plain_used() -> Iterator[None]:
    """In the block pipesim uses the arrays in Python alone."""
    usual, kept = arrays.np, vars(arrays.np).copy()
    made = type(usual)("pipesim.trace.plain_arrays")
    users = [each for name, each in sys.modules.items() if name.startswith("pipesim.") and "np" in vars(each)]
    for each in users:
        vars(each)["np"] = made
    try:
        yield
    finally:
        for each in users:
            vars(each)["np"] = usual
    assert kept.keys() <= vars(usual).keys()
    assert len(vars(made)) > len(vars(ModuleType("a"))), "it was used"


def kinds_of(seed: int) -> list[object]:
    """The kinds of CTAs of a random kernel: what each has asked, and how many they are."""
    text, launch = random_cta_kernel(seed)
    first = extract(read_module(text, "random.ptx"), launch)
    every = EveryCta(first)
    runs = [each.instructions for each in every]
    return [runs, [(each.cta, each.clusters, each.differs) for each in every.kinds]]


@pytest.mark.sampled(2, 6)
@pytest.mark.parametrize("seed", range(40))
def test_the_kinds_of_ctas_and_the_races_are_the_same(seed: int) -> None:
    kernel = random_kernel(seed)
    found = kinds_of(seed), check(kernel.target(), {}, quick=True)
    with plain_used():
        again = kinds_of(seed), check(kernel.target(), {}, quick=True)
    assert found[0] == again[0]
    assert check_sentence(found[1]) == check_sentence(again[1])
    assert found[1].scope == again[1].scope
