"""For which values of the free inputs a run holds: its conditions, evaluated for many values together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pipesim.ptx.free.forms import Atom, Form, Terms
from pipesim.ptx.free.varying import Condition, FreeInputs

if TYPE_CHECKING:
    import numpy as np  # which few checks need

_SAFE = 1 << 62  #: integers below it, and sums of two, fit 64 bits


def covered(inputs: FreeInputs, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where all conditions hold. ``values``: of each free input, by its name, an array of integers of one length."""
    import numpy as np

    evaluation = _Evaluation(values)
    found = np.ones(len(next(iter(values.values()))), dtype=bool)
    for terms, condition in inputs.conditions.items():
        found &= _holds(condition, evaluation.sum(Form(0, terms)), Form(0, terms))
    return found


class Broken(NamedTuple):
    """A condition that some inputs break: where the run depends on it, and what is so instead, "" if that is long."""

    position: int
    words: str


def broken(inputs: FreeInputs, values: Mapping[str, np.ndarray]) -> Broken | None:
    """The first condition that does not hold for one set of values; None if all do."""
    evaluation = _Evaluation(values)
    for terms, condition in inputs.conditions.items():
        form = Form(0, terms)
        value = evaluation.sum(form)
        if not _holds(condition, value, form):
            return Broken(condition.position, _words(form, condition, int(value[0])))
    return None


def _words(form: Form, condition: Condition, value: int) -> str:
    if any(atom.function is not None for atom, _ in form.terms):
        return ""
    said = " + ".join(f"{factor} * {atom.name}" if factor > 1 else atom.name for atom, factor in form.terms)
    if value > condition.high:
        return f"{said} > {condition.high:,}"
    return f"{said} < {condition.low:,}" if value < condition.low else f"{said} = {value:,}"


def _holds(condition: Condition, value: Any, form: Form) -> Any:
    found: Any = True
    if condition.low > form.low:
        found = found & (value >= condition.low)
    if condition.high < form.high:
        found = found & (value <= condition.high)
    for never in condition.never:
        found = found & (value != never)
    return found


class _Evaluation:
    """The values of atoms and expressions, each worked out once."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._atoms: dict[Atom, Any] = {}
        self._sums: dict[Terms, Any] = {}

    def sum(self, form: Form) -> Any:
        """An array of an expression's values; a plain integer of a constant. Of Python's integers where 64 bits are
        too few.
        """
        wide = _is_wide(form)
        total: Any = form.constant
        for atom, factor in form.terms:
            value = self._atom(atom)
            total = total + (value.astype(object) if wide and value.dtype != object else value) * factor
        return total

    def _atom(self, atom: Atom) -> Any:
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = self._compute(atom)
        return found

    def _compute(self, atom: Atom) -> Any:
        import numpy as np

        if atom.function is None:
            return self._values[atom.name]
        arguments = [self.sum(each) for each in atom.arguments]
        if not atom.elementwise:
            found = np.frompyfunc(atom.function, len(arguments), 1)(*arguments)
        else:
            wide = any(map(_is_wide, atom.arguments)) or _is_wide(Form(0, ((atom, 1),)))
            found = atom.function(*[_as_objects(each) if wide else each for each in arguments])
        if max(-atom.low, atom.high) < _SAFE and found.dtype == object:
            found = found.astype(np.int64)
        return found


def _as_objects(value: Any) -> Any:
    return value if isinstance(value, int) else value.astype(object)


def _is_wide(form: Form) -> bool:
    """Whether a part of a sum may need more than 64 bits."""
    most = sum(abs(f) * max(abs(a.low), abs(a.high)) for a, f in form.terms)
    return abs(form.constant) + most >= _SAFE
