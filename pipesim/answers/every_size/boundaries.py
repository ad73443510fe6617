"""Values of a word at which the kernel may begin to do something else, far beyond those that were looked at.

A run asks about a word where it compares it, and where a register cuts off what is computed from it. The first value
for which the answer is another one is worked out from the expression: ``n > 4096`` gives 4,097, a byte count
``16 * n`` of 32 bits 268,435,456. Nothing is claimed of them: each is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.ptx.free.forms import NO_BOUND, Atom, Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

_MOST_FORMS = 128  #: expressions of one run that are looked at
_NEAREST = 8  #: numbers with which an expression was compared, on either side of what it is now
_AT_ONCE = 64  #: values for which an expression is evaluated together
_FEW_PLACES = 4  #: clusters for each of which it is evaluated

_Places = Mapping[str, np.ndarray]  #: the free inputs of clusters


class Asked(NamedTuple):
    """A run that was looked at: the word is ``at`` and as many times ``step`` as each of some free inputs says."""

    inputs: FreeInputs
    names: tuple[str, ...]
    at: int
    step: int

    def boundaries(self, most: int, places: _Places) -> set[int]:
        """The values up to ``most`` at which, in some of the first clusters, it would first get another answer."""
        found, end = set[int](), (most - self.at) // self.step
        now = max(self.inputs.now[name] for name in self.names)
        for cluster in range(min(_FEW_PLACES, len(next(iter(places.values()))))):
            here = {name: values[cluster : cluster + 1] for name, values in places.items()}
            for form, threshold in list(self._thresholds(here, now))[:_MOST_FORMS]:
                if (first := self._first_across(form, threshold, here, now, end)) is not None:
                    found.add(self.at + self.step * first)
        return found

    def _thresholds(self, here: _Places, now: int) -> Iterator[tuple[Form, int]]:
        """Expressions that depend on the word, each with a number for which it matters whether they are below it."""
        seen, evaluation = dict[tuple[Form, int], None](), self._with(here, [now])

        @cache
        def computed(atom: Atom) -> bool:
            return atom.function is not None and not atom.in_memory and any(map(self._depends, atom.arguments))

        def inside(form: Form) -> None:
            for atom in filter(computed, form.atoms(computed)):
                first = atom.arguments[0]
                if atom.operation in ("negative", "zero"):
                    seen.setdefault((first, 0))
                if atom.operation == "zero":
                    seen.setdefault((first, 1))
                if atom.operation == "remainder":
                    size = atom.arguments[1].constant
                    seen.setdefault((first, (evaluation.number(first) // size + 1) * size))

        for terms, bounds in self.inputs.looser.items():
            form = Form(0, terms)
            if not form.in_memory and self._depends(form):
                inside(form)
                here_now, ends = evaluation.number(form), sorted(each for each in bounds if abs(each) < NO_BOUND)
                above = [each for each in ends if each > here_now][:_NEAREST]
                below = [each for each in ends if each <= here_now]
                seen.update(dict.fromkeys((form, each) for each in (*above, *below[:1], *below[-_NEAREST:])))
        yield from seen

    def _depends(self, form: Form) -> bool:
        """Whether an expression does on the word."""
        return any(atom.name in self.names for atom in form.atoms() if not atom.arguments)

    def _with(self, here: _Places, values: list[int]) -> Evaluation:
        """With these values of the word in one cluster."""
        places = {name: np.repeat(place, len(values)) for name, place in here.items()}
        return Evaluation(completed(self.inputs, places | dict.fromkeys(self.names, np.array(values, dtype=np.int64))))

    def _first_across(self, form: Form, threshold: int, here: _Places, now: int, end: int) -> int | None:
        """The first value found beyond the one now where an expression is on the other side of a number."""
        tried = [now, *sorted({min(now + (1 << n), end) for n in range(max(end - now, 1).bit_length() + 1)} - {now})]
        while True:
            sides = [bool(each) for each in self._with(here, tried).sum(form) >= threshold]
            n = next((n for n, each in enumerate(sides) if each is not sides[0]), 0)
            if not n or tried[n] - tried[n - 1] <= 1:
                return tried[n] if n else None
            low, high = tried[n - 1], tried[n]
            tried = [*range(low, high, max(1, (high - low) // _AT_ONCE)), high]
