"""Conditions on free inputs as a programmer would write them: ``4 * blockIdx.x + blockIdx.y > 5``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Atom, Form, constant
from pipesim.ptx.free.varying import Condition

_NO_WORDS = "?!"
_LONGEST = 60  #: characters of what is said
_SIGNS = {
    "mul": "*", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "floordiv": "/", "mod": "%",
    "quotient": "/", "remainder": "%",
}  # fmt: skip
_TRUTHS = {"negative": (">=", "<"), "zero": ("!=", "==")}  #: the sign where they are 0, and where they are 1
_EXTREMES = {"extreme 1": "min", "extreme -1": "max"}


def broken_words(form: Form, condition: Condition, value: int, arrays: Mapping[str, FreeArray]) -> str:
    """What holds instead of a condition, where its expression has this value; "" if that is long."""
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
    if atom.name not in _TRUTHS or holds not in (0, 1):
        return ""
    inner = atom.arguments[0]
    of_truth = _as_truth(inner, 1 - holds) if atom.name == "zero" else ""
    return of_truth or _comparison(inner, _TRUTHS[atom.name][holds], 0)


def _comparison(form: Form, sign: str, bound: int) -> str:
    """With what is subtracted, and the number, on the other side; the rest that a division leaves as ``x % 4``."""
    for atom, factor in form.terms:
        argument, divisor = atom.arguments if atom.name == "quotient" else (form, form)
        if atom.name == "quotient" and -factor == divisor.constant and len(form.terms) == len(argument.terms) + 1:
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
    if atom.name == "remainder" and a.constant > b.constant // 2:  # what is subtracted
        a = Form(a.constant - b.constant, a.terms)
    if atom.name in _EXTREMES:
        return f"{_EXTREMES[atom.name]}({_sum(a)}, {_sum(b)})"
    if atom.name in _TRUTHS:
        return f"({_comparison(a, _TRUTHS[atom.name][1], 0)})"
    if atom.name == "choose":
        return f"({_as_truth(a, 0) or _sum(a)} ? {_sum(b)} : {_sum(atom.arguments[2])})"
    if atom.name in _SIGNS:
        return f"({_sum(a, grouped=True)} {_SIGNS[atom.name]} {_sum(b, grouped=True)})"
    return _NO_WORDS  # of no operator of C
