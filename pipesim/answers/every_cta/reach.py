"""How far one free input may be raised with which a run holds."""

from collections.abc import Mapping

from pipesim.answers.every_cta.boxes import Box, Ends
from pipesim.answers.every_cta.conditions import Evaluation, completed, holds
from pipesim.ptx.free.conditions import Condition
from pipesim.ptx.free.forms import Atom, Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

_FEW, _MOST_TRIED = 1 << 8, 1 << 14  #: values that are evaluated at first, and in all


def holds_to(inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]) -> int:
    """The last value of an input, from that of the run on and up to ``most``, to which all conditions hold.

    ``places``: other inputs, for each of whose values they are to hold. Of an expression that neither rises nor falls
    with the input a limited number of values is evaluated; of the others its bounds may tell.
    """
    now = inputs.now.get(name)
    if now is None:
        return most
    for terms, condition in inputs.conditions.items():
        form = Form(0, terms)
        rises = _rises(form, name)
        if rises is None or (rises and _may_be_never(condition, form, inputs, name, most, places)):
            if not _is_constant(form, inputs, name, most, places):
                tried = _tried_to(condition, form, inputs, name, most, places)
                if tried < most and not _holds_between(condition, form, inputs, places, {name: (tried + 1, most)}):
                    most = tried
        elif rises:
            most = _bisected(condition, form, inputs, name, most, places)
    return max(most, now)


def _rises(form: Form, name: str) -> int | None:
    """1 if an expression never falls as an input rises, -1 if it never rises, 0 if it does not depend on it."""
    found = {_sign(atom, name, factor) for atom, factor in form.terms} - {0}
    return 0 if not found else found.pop() if len(found) == 1 else None


def _sign(atom: Atom, name: str, factor: int) -> int | None:
    if atom.function is None and not atom.arguments:
        return (1 if factor > 0 else -1) if atom.name == name else 0
    found = [_rises(argument, name) for argument in atom.arguments]
    each = {sign for sign in found if sign} if None not in found else {1, -1}
    if not each:
        return 0
    if len(each) > 1 or atom.operation not in _MONOTONE:
        return None
    return each.pop() * _MONOTONE[atom.operation] * (1 if factor > 0 else -1)


#: Functions of expressions that rise, or fall, with each of them, of which a divisor is above 0.
_MONOTONE = {"quotient": 1, "extreme 1": 1, "extreme -1": 1, "negative": -1}


def _bisected(
    condition: Condition, form: Form, inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]
) -> int:  # fmt: skip
    """The last value up to which a condition holds on an expression that rises or falls all the way."""
    low, high = inputs.now[name], most + 1
    while high - low > 1:
        middle = (low + high) // 2 if high <= most else most
        if _holds_at(condition, form, inputs, places, name, middle):
            low = middle
        else:
            high = middle
    return low


def _ends(
    inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]
) -> tuple[Evaluation, Evaluation]:  # fmt: skip
    """With the value of an input in the run, and with the most."""
    length = len(next(iter(places.values())))
    first, last = ({**places, name: np.full(length, at)} for at in (inputs.now[name], most))
    return Evaluation(completed(inputs, first)), Evaluation(completed(inputs, last))


def _may_be_never(
    condition: Condition, form: Form, inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]
) -> bool:  # fmt: skip
    """Whether an expression that rises or falls all the way may reach what it must never be."""
    now, end = (each.sum(form) for each in _ends(inputs, name, most, places))
    low, high = np.minimum(now, end), np.maximum(now, end)
    return any(bool(np.any((low <= never) & (never <= high))) for never in condition.never)


def _is_constant(
    form: Form, inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]
) -> bool:  # fmt: skip
    """Whether an expression is the same for all values of an input from that of the run on."""
    now, end = _ends(inputs, name, most, places)

    def same(part: Form) -> bool:
        if _rises(part, name) is not None:
            return bool(np.all(now.sum(part) == end.sum(part)))
        return all(_sign(atom, name, 1) == 0 or is_same(atom) for atom, _ in part.terms)

    def is_same(atom: Atom) -> bool:
        if _sign(atom, name, 1) is not None:
            return same(Form(0, ((atom, 1),)))
        if atom.operation == "zero" and _rises(atom.arguments[0], name) is not None:
            a, b = (each.sum(atom.arguments[0]) for each in (now, end))
            return bool(np.all((np.minimum(a, b) > 0) | (np.maximum(a, b) < 0) | (a == b)))
        return all(map(same, atom.arguments))

    return same(form)


def _holds_at(
    condition: Condition, form: Form, inputs: FreeInputs, places: Mapping[str, np.ndarray], name: str, value: int
) -> bool:  # fmt: skip
    evaluation = Evaluation(completed(inputs, {**places, name: np.full(len(next(iter(places.values()))), value)}))
    return bool(np.all(holds(condition, evaluation.sum(form), form)))


class _InputBox(Box):
    """The ranges of free inputs, by their names; of any other one what it can be."""

    def _ends_of(self, atom: Atom) -> Ends | None:
        known = self.ends.get((atom.name, 0)) if not atom.arguments else None
        return None if atom.function is not None else known or (atom.low, atom.high)


def _holds_between(
    condition: Condition, form: Form, inputs: FreeInputs, places: Mapping[str, np.ndarray], ends: Mapping[str, Ends]
) -> bool:  # fmt: skip
    """Whether bounds show that a condition holds where some inputs lie in ranges, wherever the others are."""
    values = completed(inputs, places)
    ranges = {(name, 0): (int(np.min(each)), int(np.max(each))) for name, each in values.items()}
    box = _InputBox(Evaluation({}), ranges | {(name, 0): each for name, each in ends.items()})
    return condition.holds_between(*box.bounds(form))


def _tried_to(
    condition: Condition, form: Form, inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]
) -> int:  # fmt: skip
    """The last value up to which a condition holds, of as many as are evaluated: each of the others' with each."""
    others = len(next(iter(places.values())))
    at, step = inputs.now[name], max(_FEW // others, 1)
    end = min(most, at + max(_MOST_TRIED // others, 1))
    while at < end:
        tried = np.arange(at + 1, min(at + step, end) + 1, dtype=np.int64)
        values = {each: np.resize(array, len(tried) * others) for each, array in places.items()}
        evaluation = Evaluation(completed(inputs, values | {name: np.repeat(tried, others)}))
        right = np.broadcast_to(holds(condition, evaluation.sum(form), form), len(tried) * others)
        wrong = np.flatnonzero(~right)
        if len(wrong):
            return int(tried[wrong[0] // others]) - 1
        at, step = int(tried[-1]), 4 * step
    return at
