"""Values of a word at which the kernel may begin to do something else, far beyond those that were looked at.

A run asks about a word where it compares it, and where a register cuts off what is computed from it. The first value
for which the answer is another one is worked out from the expression: ``n > 4096`` gives 4,097, a byte count
``16 * n`` of 32 bits 268,435,456. Nothing is claimed of them: each is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.ptx.free.forms import NO_BOUND, Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

_MOST_FORMS = 128  #: expressions of one run that are looked at
_NEAREST = 8  #: numbers with which an expression was compared, on either side of what it is now
_AT_ONCE = 64  #: values for which an expression is evaluated together
_FEW_PLACES = 4  #: clusters for each of which it is evaluated


class Asked(NamedTuple):
    """A run that was looked at: the word is ``at`` and as many times ``step`` as each of some free inputs says."""

    inputs: FreeInputs
    names: tuple[str, ...]
    at: int
    step: int


def boundary_values(asked: Asked, most: int, places: Mapping[str, np.ndarray]) -> set[int]:
    """The values up to ``most`` at which, in some of the first clusters, the run would first get another answer."""
    inputs, names, at, step = asked
    found, end = set[int](), (most - at) // step
    now = max(inputs.now[name] for name in names)
    for cluster in range(min(_FEW_PLACES, len(next(iter(places.values()))))):
        here = {name: values[cluster : cluster + 1] for name, values in places.items()}
        for form, threshold in list(_thresholds(inputs, names, here, now))[:_MOST_FORMS]:
            if (first := _first_across(form, threshold, asked, here, now, end)) is not None:
                found.add(at + step * first)
    return found


def _thresholds(
    inputs: FreeInputs, names: tuple[str, ...], here: Mapping[str, np.ndarray], now: int
) -> Iterator[tuple[Form, int]]:
    """Expressions that depend on the word, each with a number for which it matters whether they are below it."""
    seen, evaluation = dict[tuple[Form, int], None](), _at(inputs, names, here, np.array([now]))
    depends = _depends_on(names)

    def inside(form: Form) -> None:
        for atom, _ in form.terms:
            if atom.function is None or atom.in_memory or not any(map(depends, atom.arguments)):
                continue
            first = atom.arguments[0]
            if atom.operation in ("negative", "zero"):
                seen.setdefault((first, 0))
            if atom.operation == "zero":
                seen.setdefault((first, 1))
            if atom.operation == "remainder":
                size = atom.arguments[1].constant
                seen.setdefault((first, (evaluation.number(first) // size + 1) * size))
            for each in atom.arguments:
                inside(each)

    for terms, bounds in inputs.looser.items():
        form = Form(0, terms)
        if not form.in_memory and depends(form):
            inside(form)
            here_now, ends = evaluation.number(form), sorted(each for each in bounds if abs(each) < NO_BOUND)
            above = [each for each in ends if each > here_now][:_NEAREST]
            below = [each for each in ends if each <= here_now]
            seen.update(dict.fromkeys((form, each) for each in (*above, *below[:1], *below[-_NEAREST:])))
    yield from seen


def _depends_on(names: tuple[str, ...]) -> Callable[[Form], bool]:
    def depends(form: Form) -> bool:
        return any(
            atom.name in names if atom.function is None and not atom.arguments else any(map(depends, atom.arguments))
            for atom, _ in form.terms
        )

    return depends


def _at(inputs: FreeInputs, names: tuple[str, ...], here: Mapping[str, np.ndarray], values: np.ndarray) -> Evaluation:
    """With these values of the word in one cluster."""
    places = {name: np.repeat(place, len(values)) for name, place in here.items()}
    return Evaluation(completed(inputs, places | dict.fromkeys(names, values)))


def _first_across(
    form: Form, threshold: int, asked: Asked, here: Mapping[str, np.ndarray], now: int, end: int
) -> int | None:
    """The first value found beyond the one now where an expression is on the other side of a number."""

    def side(values: list[int]) -> list[bool]:
        found = _at(asked.inputs, asked.names, here, np.array(values, dtype=np.int64)).sum(form)
        return [bool(each) for each in found >= threshold]

    tried = [now, *sorted({min(now + (1 << n), end) for n in range(max(end - now, 1).bit_length() + 1)} - {now})]
    while True:
        sides = side(tried)
        n = next((n for n, each in enumerate(sides) if each is not sides[0]), 0)
        if not n or tried[n] - tried[n - 1] <= 1:
            return tried[n] if n else None
        low, high = tried[n - 1], tried[n]
        tried = [*range(low, high, max(1, (high - low) // _AT_ONCE)), high]
