"""What the proof needs of NumPy, in Python alone: where NumPy is not installed, as in a browser.

The functions and methods do what NumPy's of the same names do, with the parameters that are used here. Integers are
Python's, so none overflows. It is slower by two orders of magnitude, and the same tests compare both.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, product
from math import prod
from types import SimpleNamespace
from typing import Any

int64 = int
_Shape = tuple[int, ...]


class ndarray:  # noqa: N801  # NumPy's name
    """Values in the order of C, a shape, and a ``dtype``: bool, int, or object."""

    __slots__ = ("dtype", "flat", "shape")
    __hash__ = None  # type: ignore[assignment]  # as NumPy's

    def __init__(self, flat: list[Any], shape: _Shape | None = None, dtype: Any = None) -> None:
        self.flat = flat
        self.shape = (len(flat),) if shape is None else shape
        self.dtype = dtype or (bool if flat and all(type(each) is bool for each in flat) else int)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))

    def __bool__(self) -> bool:
        if len(self.flat) != 1:
            raise ValueError("the truth of several values")
        return bool(self.flat[0])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, ndarray):
            return self._rows(flatnonzero(key).flat if key.dtype is bool else key.flat)
        if isinstance(key, slice):
            return self._rows(range(len(self))[key])
        number = range(len(self))[key]
        return self.flat[number] if len(self.shape) == 1 else self._rows([number]).reshape(self.shape[1:])

    def __setitem__(self, key: slice, value: Any) -> None:
        self.flat[key] = value.flat

    def _rows(self, numbers: Sequence[int]) -> ndarray:
        size, rest = prod(self.shape[1:]), self.shape[1:]
        if not rest:
            flat = list(map(self.flat.__getitem__, numbers))
        else:
            flat = [value for n in numbers for value in self.flat[n * size : (n + 1) * size]]
        return ndarray(flat, (len(numbers), *rest), self.dtype)

    def astype(self, dtype: Any) -> ndarray:
        """The values as another type."""
        return ndarray(self.flat if dtype is object else list(map(dtype, self.flat)), self.shape, dtype)

    def reshape(self, shape: _Shape | int) -> ndarray:
        """The same values in another shape."""
        return ndarray(self.flat, None if isinstance(shape, int) else shape, self.dtype)

    def ravel(self) -> ndarray:
        """In one axis."""
        return self.reshape(-1)

    def any(self, axis: _Shape | None = None) -> Any:
        """Whether one value is true; along some axes for each place in the others."""
        if axis is None:
            return any(self.flat)
        kept = [n for n in range(len(self.shape)) if n not in axis]
        shape = tuple(self.shape[n] for n in kept)
        found = [False] * prod(shape)
        for at, value in zip(product(*map(range, self.shape)), self.flat, strict=True):
            found[_place([at[n] for n in kept], shape)] |= bool(value)
        return ndarray(found, shape, bool)

    def __neg__(self) -> ndarray:
        return ndarray([-each for each in self.flat], self.shape, self.dtype)

    def __invert__(self) -> ndarray:
        if self.dtype is bool:
            return ndarray([not each for each in self.flat], self.shape, bool)
        return ndarray([~each for each in self.flat], self.shape, self.dtype)


def _place(at: Iterable[int], shape: _Shape) -> int:
    number = 0
    for n, size in zip(at, shape, strict=True):
        number = number * size + n
    return number


def _together(function: Callable[..., Any], values: Sequence[Any], dtype: Any = None) -> ndarray:
    """A function of each combination of values in the same place."""
    arrays = [asarray(each) for each in values]
    shapes = {each.shape for each in arrays}
    if len(shapes) > 1:
        length = max(map(len, shapes))
        sides = zip(*((1,) * (length - len(shape)) + shape for shape in shapes), strict=True)
        shape = tuple(next((size for size in side if size != 1), 1) for side in sides)
        arrays = [broadcast_to(each, shape) for each in arrays]
    if dtype is None:
        dtype = object if any(each.dtype is object for each in arrays) else None
    return ndarray(list(map(function, *(each.flat for each in arrays))), arrays[0].shape, dtype)


def _divided(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: divide(a, b) if b else 0  # as NumPy's, without its warning


_OPERATORS = {name: getattr(operator, name) for name in ["add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift"]}
_OPERATORS |= {name: _divided(getattr(operator, name)) for name in ("floordiv", "mod")}


def _define(name: str, function: Callable[[Any, Any], Any], dtype: Any = None) -> None:
    def method(self: ndarray, other: Any) -> ndarray:
        if not isinstance(other, ndarray):
            flat = [function(each, other) for each in self.flat]
            return ndarray(flat, self.shape, dtype or (object if self.dtype is object else None))
        return _together(function, (self, other), dtype)

    setattr(ndarray, f"__{name.rstrip('_')}__", method)


def _define_of_all(name: str, function: Callable[[list[Any]], Any]) -> None:
    setattr(ndarray, name, lambda self: function(self.flat))


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


for _name, _of_all in (("sum", sum), ("min", min), ("max", max), ("all", all), ("tolist", list)):
    _define_of_all(_name, _of_all)
for _name, _function in _OPERATORS.items():
    _define(_name, _function)
    _define(f"r{_name}", _swapped(_function))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _define(_name, getattr(operator, _name), bool)


class _Extreme:
    """The lesser or the greater of two values, and what NumPy makes of it."""

    def __init__(self, choose: Callable[..., Any]) -> None:
        self._choose = choose

    def __call__(self, one: Any, other: Any) -> ndarray:
        return _together(self._choose, (one, other))

    def accumulate(self, values: ndarray) -> ndarray:
        """Of the values up to each."""
        return ndarray(list(accumulate(values.flat, self._choose)), dtype=values.dtype)

    def reduceat(self, values: ndarray, heads: ndarray) -> ndarray:
        """Of the values from each head to before the next."""
        ends = [*heads.flat[1:], len(values)]
        return ndarray([self._choose(values.flat[a:b]) for a, b in zip(heads.flat, ends, strict=True)])


maximum, minimum = _Extreme(max), _Extreme(min)


def _add_at(values: ndarray, places: ndarray, number: int) -> None:
    for each in places.flat:
        values.flat[each] += number


add = SimpleNamespace(at=_add_at)


def asarray(values: Any, dtype: Any = None) -> ndarray:
    """An array of a number, or of numbers."""
    if isinstance(values, ndarray):
        return values if dtype is None else values.astype(dtype)
    if not isinstance(values, Iterable):
        kind = dtype or type(values)
        return ndarray([kind(values)], (), kind)
    return ndarray(list(values), dtype=dtype)


array = asarray


def arange(start: int, stop: int | None = None, dtype: Any = int) -> ndarray:
    """Integers from ``start`` to before ``stop``, or from 0."""
    return ndarray(list(range(start) if stop is None else range(start, stop)), dtype=dtype)


def full(length: int, value: Any, dtype: Any = None) -> ndarray:
    """The value, repeated."""
    return broadcast_to(asarray(value, dtype), length)


zeros, ones = partial(full, value=0), partial(full, value=1)


def broadcast_to(values: Any, shape: _Shape | int) -> ndarray:
    """Repeated along new axes, and along those of one place."""
    made, shape = asarray(values), (shape,) if isinstance(shape, int) else shape
    if len(made.flat) == 1:
        return ndarray(made.flat * prod(shape), shape, made.dtype)
    own = (1,) * (len(shape) - len(made.shape)) + made.shape
    if any(a not in (1, b) for a, b in zip(own, shape, strict=True)):
        raise ValueError(f"{made.shape} does not become {shape}")
    places = product(*(range(size) if mine > 1 else (0,) * size for mine, size in zip(own, shape, strict=True)))
    return ndarray([made.flat[_place(at, own)] for at in places], shape, made.dtype)


def concatenate(parts: Iterable[Any]) -> ndarray:
    """One after the other."""
    return ndarray([value for part in map(asarray, parts) for value in part.flat])


def repeat(values: Any, times: int) -> ndarray:
    """Each value, repeated."""
    return ndarray([each for each in asarray(values).flat for _ in range(times)])


def resize(values: Any, length: int) -> ndarray:
    """All values in their order, repeated up to that number."""
    flat = asarray(values).flat
    return ndarray((flat * (length // len(flat) + 1))[:length] if flat else [0] * length)


def stack(rows: Iterable[Any], axis: int = 0) -> ndarray:
    """Arrays of one axis as the rows, or the columns, of one."""
    flats = [asarray(each).flat for each in rows]
    flats = list(map(list, zip(*flats, strict=True))) if axis else flats
    return ndarray([value for flat in flats for value in flat], (len(flats), len(flats[0]) if flats else 0), int)


def unique(
    values: ndarray, axis: int | None = None, *, return_index: bool = False, return_inverse: bool = False
) -> Any:
    """The different values, or rows, in order; the place of the first of each; the number of each value among them."""
    each: list[Any] = values.flat if axis is None else [tuple(row.flat) for row in values]
    firsts = {key: len(each) - 1 - n for n, key in enumerate(reversed(each))}
    order = sorted(firsts)
    numbers = {key: n for n, key in enumerate(order)}
    flat = order if axis is None else [value for key in order for value in key]
    found = ndarray(flat, (len(order), *values.shape[1:]), values.dtype)
    more = [ndarray([firsts[key] for key in order], dtype=int)] if return_index else []
    more += [ndarray([numbers[key] for key in each], dtype=int)] if return_inverse else []
    return (found, *more) if more else found


def argsort(values: ndarray, kind: str = "stable") -> ndarray:
    """The places of the least, the next ..."""
    assert kind == "stable"
    return lexsort((values,))


def lexsort(keys: Sequence[ndarray]) -> ndarray:
    """The places in the order of the last key, then of those before it."""
    flats = [each.flat for each in reversed(keys)]
    rows = list(zip(*flats, strict=True))
    return ndarray(sorted(range(len(rows)), key=rows.__getitem__), dtype=int)


def searchsorted(values: ndarray, wanted: Any, side: str = "left") -> Any:
    """Where each would be put in, before or after those that are equal."""
    find = bisect_left if side == "left" else bisect_right
    if isinstance(wanted, ndarray):
        return ndarray([find(values.flat, each) for each in wanted.flat], wanted.shape, int)
    return find(values.flat, wanted)


def flatnonzero(values: Any) -> ndarray:
    """The places of what is true."""
    return ndarray([n for n, each in enumerate(asarray(values).flat) if each], dtype=int)


def cumsum(values: ndarray) -> ndarray:
    """The sum up to each."""
    return ndarray(list(accumulate(map(int, values.flat))), dtype=int)


def where(condition: ndarray, one: Any, other: Any) -> ndarray:
    """``one`` where the condition holds."""
    return _together(lambda holds, a, b: a if holds else b, (condition, one, other))


def argmin(values: ndarray) -> int:
    """The place of the first of the least."""
    return values.flat.index(min(values.flat))


def argmax(values: ndarray, axis: int | None = None) -> Any:
    """The place of the first of the greatest; in each column if ``axis`` is 0."""
    if axis is None:
        return values.flat.index(max(values.flat))
    columns = [values.flat[n :: values.shape[1]] for n in range(values.shape[1])]
    return ndarray([each.index(max(each)) for each in columns], dtype=int)


def meshgrid(*axes: ndarray, indexing: str) -> list[ndarray]:
    """Of each axis its values at all places of a grid."""
    assert indexing == "ij"
    places, shape = list(product(*(each.flat for each in axes))), tuple(map(len, axes))
    return [ndarray([at[n] for at in places], shape, each.dtype) for n, each in enumerate(axes)]


def frompyfunc(function: Callable[..., Any], _inputs: int, _outputs: int) -> Callable[..., ndarray]:
    """A function of the values of arrays, as objects."""
    return lambda *values: _together(function, values, object)


def __getattr__(name: str) -> Any:
    if name == "all":
        return lambda values: all(asarray(values).flat)
    raise AttributeError(f"NumPy, of which numpy.{name} is needed, is not installed")
