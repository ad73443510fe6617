"""For which values of the free inputs a run holds: its conditions, evaluated for many values together; in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.conditions import Condition
from pipesim.ptx.free.forms import Atom, Form, Terms, constant
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

_NO_WORDS = "?!"
_LONGEST = 60  #: characters of what is said
_MOST_ATOMS = 16  #: that it is made of
_SIGNS = {
    "mul": "*", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "floordiv": "/", "mod": "%",
    "quotient": "/", "remainder": "%",
}  # fmt: skip
_TRUTHS = {"negative": (">=", "<"), "zero": ("!=", "==")}  #: the sign where they are 0, and where they are 1
_EXTREMES = {"extreme 1": "min", "extreme -1": "max"}


def broken_words(form: Form, condition: Condition, value: int, arrays: Mapping[str, FreeArray]) -> str:
    """What holds instead of a condition, where its expression has this value; "" if that is long."""
    if len(list(islice(form.atoms(), _MOST_ATOMS))) == _MOST_ATOMS:  # what several of them share is written in each
        return ""
    said = _as_truth(form, value) or _compared(form, condition, value, arrays)
    return said if len(said) <= _LONGEST and _NO_WORDS not in said else ""


def _compared(form: Form, condition: Condition, value: int, arrays: Mapping[str, FreeArray]) -> str:
    """Of an element of an array its value, and not the value's number."""
    low, high = condition.low, condition.high
    step, add = 1, 0
    if any(atom.in_memory and atom.function is not None for atom, _ in form.terms):
        return _NO_WORDS
    if form.in_memory:
        known = [(arrays[atom.name] if atom.in_memory else None, factor) for atom, factor in form.terms]
        sizes = {each.step if each is not None else 1 for each, _ in known}
        if len(sizes) > 1:
            return _NO_WORDS
        step, add = sizes.pop(), sum(factor * each.low for each, factor in known if each is not None)
    if value > high:
        return _comparison(form, ">", high * step + add)
    return _comparison(form, "<", low * step + add) if value < low else _comparison(form, "==", value * step + add)


def _as_truth(form: Form, value: int) -> str:
    """Of a comparison alone, which is 1 or 0."""
    if len(form.terms) != 1 or form.in_memory:
        return ""
    (atom, factor), *_ = form.terms
    holds = (value - form.constant) // factor
    if atom.operation not in _TRUTHS or holds not in (0, 1):
        return ""
    inner = atom.arguments[0]
    of_truth = _as_truth(inner, 1 - holds) if atom.operation == "zero" else ""
    return of_truth or _comparison(inner, _TRUTHS[atom.operation][holds], 0)


def _comparison(form: Form, sign: str, bound: int) -> str:
    """With what is subtracted, and the number, on the other side; the rest that a division leaves as ``x % 4``."""
    for atom, factor in form.terms:
        argument, divisor = atom.arguments if atom.operation == "quotient" else (form, form)
        if atom.operation == "quotient" and -factor == divisor.constant and len(form.terms) == len(argument.terms) + 1:
            rest = form.plus(argument, -1).plus(Form(0, ((atom, 1),)), -factor)
            if not rest.terms:
                return f"{_sum(argument, grouped=True)} % {divisor.constant:,} {sign} {bound - rest.constant:,}"
    left, right = _positive(form.terms), _positive((atom, -factor) for atom, factor in form.terms)
    number = bound - form.constant
    if not left:
        left, right, sign, number = right, "", {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign), -number
    other = " + ".join(filter(None, (right, f"{number:,}" if number > 0 or not right else "")))
    return f"{left}{f' + {-number:,}' if number < 0 and right else ''} {sign} {other}"


def _positive(terms: Iterable[tuple[Atom, int]]) -> str:
    parts = [(atom, factor) for atom, factor in terms if factor > 0]
    said = " + ".join(f"{factor:,} * {_atom(atom)}" if factor > 1 else _atom(atom) for atom, factor in parts)
    whole = len(parts) == 1 and parts[0][1] == 1 and _SIGNS.get(parts[0][0].name, "") in ("*", "/", "%")
    return said[1:-1] if whole else said


def _sum(form: Form, *, grouped: bool = False) -> str:
    said = _positive(form.terms)
    first = [said] if said else []
    number = [f"{abs(form.constant):,}"] if form.constant or not form.terms else []
    added = first + number if form.constant >= 0 else first
    less = [f"{-factor:,} * {_atom(atom)}" if factor < -1 else _atom(atom) for atom, factor in form.terms if factor < 0]
    less += number if form.constant < 0 else []
    said = " - ".join((" + ".join(added), *less)).lstrip()
    alone = len(form.terms) == 1 and not form.constant and said.startswith("(")
    return f"({said})" if grouped and " " in said and not alone else said


def _atom(atom: Atom) -> str:
    if any(each.in_memory for each in atom.arguments):
        return _NO_WORDS  # whose values have numbers
    if atom.function is None:
        return f"{atom.name}[{_sum(atom.arguments[0])}]" if atom.arguments else atom.name
    a, b = (*atom.arguments, constant(0))[:2]
    if atom.operation == "remainder" and a.constant > b.constant // 2:  # what is subtracted
        a = Form(a.constant - b.constant, a.terms)
    if atom.operation in _EXTREMES:
        return f"{_EXTREMES[atom.operation]}({_sum(a)}, {_sum(b)})"
    if atom.operation in _TRUTHS:
        return f"({_comparison(a, _TRUTHS[atom.operation][1], 0)})"
    if atom.operation == "choose":
        return f"({_as_truth(a, 0) or _sum(a)} ? {_sum(b)} : {_sum(atom.arguments[2])})"
    if atom.operation in _SIGNS:
        return f"({_sum(a, grouped=True)} {_SIGNS[atom.operation]} {_sum(b, grouped=True)})"
    return _NO_WORDS  # of no operator of C


_SAFE = 1 << 62  #: integers below it, and sums of two, fit 64 bits


def covered(
    inputs: FreeInputs, values: Mapping[str, np.ndarray], contents: Mapping[tuple[str, int], np.ndarray] | None = None
) -> np.ndarray:
    """Where all conditions hold. ``values``: of each free input, by its name, an array of integers of one length.

    ``contents``: of elements of free arrays the numbers of the values, or one for all. Inputs without values are as in
    this run.
    """
    evaluation = Evaluation(completed(inputs, values), contents)
    size = max(map(len, (*values.values(), *(contents or {}).values())))
    found = np.ones(size, dtype=bool)
    for terms, condition in inputs.conditions.items():
        found &= condition.holds(evaluation.sum(Form(0, terms)))
    return found


def completed(inputs: FreeInputs, values: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """With those inputs that are as in this run."""
    length = len(next(iter(values.values())))
    return {name: np.full(length, now) for name, now in inputs.now.items() if name not in values} | dict(values)


def words_of(form: Form, evaluation: Evaluation) -> tuple[tuple[str, int], ...]:
    """The elements of free arrays that an expression depends on, for one cluster: the array and the index."""
    return tuple(dict.fromkeys((atom.name, evaluation.number(atom.arguments[0])) for atom in form.elements()))


class Broken(NamedTuple):
    """A condition that some inputs break: where the run depends on it, and what is so instead, "" if that is long."""

    position: int
    words: str


def broken(
    inputs: FreeInputs, values: Mapping[str, np.ndarray], contents: Mapping[tuple[str, int], np.ndarray] | None = None
) -> Broken | None:
    """The first condition that does not hold for one set of values; None if all do."""
    evaluation = Evaluation(completed(inputs, values), contents)
    for terms, condition in inputs.conditions.items():
        form = Form(0, terms)
        value = evaluation.sum(form)
        if not condition.holds(value):
            return Broken(condition.position, broken_words(form, condition, int(value[0]), inputs.arrays))
    return None


class Evaluation:
    """The values of atoms and expressions, each worked out once.

    ``contents``: of elements of free arrays, the numbers of their values; then ``values`` are of one cluster.
    """

    def __init__(self, values: Mapping[str, Any], contents: Mapping[tuple[str, int], Any] | None = None) -> None:
        self._values, self._contents = values, contents or {}
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

    def number(self, form: Form) -> int:
        """The value of an expression for one set of inputs."""
        found = self.sum(form)
        return found if isinstance(found, int) else int(found[0])

    def _atom(self, atom: Atom) -> Any:
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = self._compute(atom)
        return found

    def _compute(self, atom: Atom) -> Any:
        if atom.function is None:
            if atom.arguments:
                return self._contents[atom.name, self.number(atom.arguments[0])]
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
