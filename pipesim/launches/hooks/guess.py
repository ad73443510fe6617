"""The launch of a kernel that was compiled: what its compiler said of it, and guesses of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from pipesim.launches.offline import INTEGERS, MAX_SHARED, contents_of
from pipesim.ptx.kernel import launch_template
from pipesim.ptx.launch.values import (
    NO_SHAPE,
    TYPES,
    Array,
    Content,
    Field,
    Launch,
    Number,
    Parameter,
    Pointer,
    Shape,
    Struct,
    TensorMap,
)

SIZE = 512  #: of a size that is not known: a multiple of the usual tiles, and several of them
_CLUSTERS = 8  #: along x; 2 along an axis that the kernel asks for


class GuessedLaunch(NamedTuple):
    """A launch, and what of it was guessed, "" if nothing was."""

    launch: Launch
    guessed: str


def launch_of(given: Mapping[str, Any], ptx: Path) -> GuessedLaunch:
    """The launch of a kernel, as :mod:`pipesim.launches.hooks.compilers` notes it. Raises as ``launch_template``."""
    made = launch_template(ptx, given["name"])
    told = made.launch
    guess = _Guess(given.get("boxes") or [])
    if "kinds" in given:
        contents = [*_arguments(given, guess)]
        named = [Parameter(name, each) for name, each in contents]
        parameters = (*named, *told.parameters[len(named) :])[: len(told.parameters)]
        shared, block = given["shared"], (32 * given["warps"], 1, 1)
        cluster: Shape = (given["clusters"], 1, 1)
    else:
        parameters = told.parameters
        shared = MAX_SHARED - 1024 if made.dynamic_shared else 0
        block, cluster = _shape(given.get("block"), (128, 1, 1)), _shape(given.get("cluster"), told.cluster)
    parameters = tuple(Parameter(each.name, guess.filled(each.content)) for each in parameters)
    block = block if told.block == NO_SHAPE else told.block
    grid = given.get("grid")
    if grid is None:
        guess.said.append("grid")
        grid = [_CLUSTERS, *(2 if f"%ctaid.{axis}" in given["ptx"] else 1 for axis in "yz")]
        grid = [n * size for n, size in zip(grid, cluster, strict=True)]
    elif "kinds" in given:  # Triton counts clusters
        grid = [grid[0] * cluster[0], *grid[1:]]
    launch = replace(
        told, grid=_shape(grid, told.grid), block=block, cluster=cluster, dynamic_shared=shared, parameters=parameters
    )
    return GuessedLaunch(launch, f"guessed {', '.join(dict.fromkeys(guess.said))}" if guess.said else "")


class _Guess:
    """Fills in what is not known. ``boxes``: of the tensor maps that follow, an element's type and sizes each."""

    def __init__(self, boxes: Sequence[tuple[str, list[int]]]) -> None:
        self._boxes = iter(boxes)
        self.said: list[str] = []

    def filled(self, content: Content) -> Content:
        """The content without a word that is open."""
        match content:
            case Number(type=kind, value=None):
                return Number(kind, self.number(TYPES[kind]))
            case TensorMap(element=""):
                element, box = next(self._boxes, ("", []))
                self.said.append("sizes")
                dims = tuple(max(SIZE, each) for each in box)
                return TensorMap(element, dims, tuple(box)) if box else content
            case Struct(fields=fields):
                return replace(
                    content, fields=tuple(each._replace(content=self.filled(each.content)) for each in fields)
                )
            case _:
                return content

    def number(self, nbytes: int) -> int:
        """A size, or a flag where it is one byte."""
        self.said.append("sizes")
        return SIZE if nbytes > 1 else 1


def _arguments(given: Mapping[str, Any], guess: _Guess) -> Iterator[tuple[str, Content]]:
    """The parameters of a Triton kernel, of its signature and its arguments where these are known."""
    descriptors = iter(given["maps"] or ())
    values = given["values"] or [None] * len(given["kinds"])
    for (name, kind), value in zip(given["kinds"], values, strict=True):
        for each in _of_argument(_kind(kind), value, guess, descriptors):
            yield name, each


def _of_argument(kind: Any, value: Any, guess: _Guess, descriptors: Iterator[Mapping[str, Any]]) -> Iterator[Content]:
    if isinstance(kind, tuple):
        for each, part in zip(kind, value if isinstance(value, list) else [None] * len(kind), strict=True):
            yield from _of_argument(each, part, guess, descriptors)
    elif kind == "constexpr":
        return
    elif kind.startswith("tensordesc"):
        yield from contents_of(kind, _descriptor(kind, value, guess), descriptors)
    elif kind.startswith("*"):
        held = value if isinstance(value, dict) else {}
        array = INTEGERS.get(held.get("dtype", ""))
        yield Pointer(contents=(Field(0, Array(array, tuple(held["contents"]))),)) if array else Pointer()
    else:
        number = value if isinstance(value, int | float) else None
        if number is None:
            number = 1 if kind.endswith(("1", "i8")) else SIZE if "i" in kind or "u" in kind else 0
            if number:
                guess.said.append("sizes")
        yield from contents_of(kind, number, descriptors)


def _descriptor(kind: str, value: Any, guess: _Guess) -> SimpleNamespace:
    """A tensor descriptor; its guessed tensor has some blocks along each axis."""
    if not isinstance(value, dict) or "shape" not in value:
        guess.said.append("sizes")
        found = re.search(r"\[([\d, ]+)\]", kind)
        shape = [max(SIZE, int(each)) for each in found[1].split(",")] if found else [SIZE]
        strides = [1]
        for size in reversed(shape[1:]):
            strides.insert(0, strides[0] * size)
        value = {"shape": shape, "strides": strides}
    padding = "nan" if value.get("nan") else "zero"
    tf32 = bool(value.get("tf32"))
    return SimpleNamespace(
        shape=value["shape"], strides=value["strides"], base=None, padding=padding, round_f32_to_tf32=tf32
    )


def _kind(kind: Any) -> Any:
    return tuple(map(_kind, kind)) if isinstance(kind, list) else kind


def _shape(sizes: Sequence[int] | None, otherwise: Shape) -> Shape:
    if sizes is None:
        return otherwise
    x, y, z = sizes
    return x, y, z
