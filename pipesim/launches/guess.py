"""What is guessed of a launch of which a compiler, a PTX file or a person has said a part, and how a guess is named.

A function of Triton is guessed for twice: ``hooks/source.py`` guesses what it is called with, types above all, since no
PTX is made without; of the launch of what that made, the grid is guessed here, as of all PTX.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
    shape_of,
)
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Instruction

SIZE = 512  #: of a size that is not known: a multiple of the usual tiles, and several of them
OTHER = 3 * SIZE  #: by which it is looked whether what was found depends on a size
_CLUSTERS = 8  #: along x; 2 along an axis that the kernel asks for


def launch_of(given: Mapping[str, Any], ptx: Path, size: int = SIZE) -> tuple[Launch, str]:
    """The launch of a kernel that :mod:`pipesim.launches.hooks.install` has noted, and what of it is guessed ("" if
    nothing is): sizes to be ``size``. Raises as ``launch_template``.
    """
    made = launch_template(ptx, given["name"])
    told, guess = made.launch, _Guess(given.get("boxes") or (), size)
    cluster = shape_of(given.get("cluster") or told.cluster)
    block = shape_of(given.get("block") or (128,)) if told.block == NO_SHAPE else told.block
    if told.block == NO_SHAPE and not given.get("block"):
        guess.said["block"] = None
    mine = [Parameter(name, each) for name, each in guess.arguments(given)]
    contents = [*mine, *told.parameters[len(mine) :]][: len(told.parameters)]
    parameters = tuple(Parameter(each.name, guess.filled(each.content)) for each in contents)
    grid = given.get("grid")
    if grid is None:
        guess.said["grid"] = None
        grid = guessed_grid(given["ptx"], cluster, size)
    shared = given.get("shared", MAX_SHARED - 1024 if made.dynamic_shared else 0)
    launch = replace(
        told, grid=shape_of(grid), block=block, cluster=cluster, dynamic_shared=shared, parameters=parameters
    )
    return launch, ", ".join(guess.said)


def grid_words(grid: Shape) -> str:
    """A grid that was guessed, in words."""
    return f"grid {'x'.join(map(str, grid))}".removesuffix("x1").removesuffix("x1")


def guessed_grid(ptx: str, cluster: Sequence[int], size: int = SIZE) -> Shape:
    """CTAs of several clusters, along the axes that a kernel asks for; more where sizes are guessed to be more."""
    clusters = _CLUSTERS * size // SIZE, *(2 if f"%ctaid.{axis}" in ptx else 1 for axis in "yz")
    return shape_of([n * size for n, size in zip(clusters, cluster, strict=True)])


class _Guess:
    """Fills in what is not known. ``boxes``: of the tensor maps that follow, an element's type and sizes each."""

    def __init__(self, boxes: Sequence[tuple[str, list[int]]], size: int) -> None:
        self._boxes, self._size = iter(boxes), size
        self.said: dict[str, None] = {}

    def size(self, least: int = 1) -> int:
        """A size that is not known."""
        self.said["sizes"] = None
        return max(self._size, least)

    def filled(self, content: Content) -> Content:
        """The content without a word that is open."""
        match content:
            case Number(type=kind, value=None):
                return Number(kind, self.size() if TYPES[kind] > 1 else 1)
            case TensorMap(element=""):
                element, box = next(self._boxes, ("", ()))
                return TensorMap(element, tuple(map(self.size, box)), tuple(box)) if box else content
            case Struct(fields=fields):
                inner = (each._replace(content=self.filled(each.content)) for each in fields)
                return replace(content, fields=tuple(inner))
            case _:
                return content

    def arguments(self, given: Mapping[str, Any]) -> Iterator[tuple[str, Content]]:
        """The parameters of a Triton kernel, of its signature and its arguments where these are known."""
        kinds, descriptors = given.get("kinds", ()), iter(given.get("maps") or ())
        for (name, kind), value in zip(kinds, given.get("values") or [None] * len(kinds), strict=True):
            for each in self._argument(kind, value, descriptors):
                yield name, each

    def _argument(self, kind: Any, value: Any, descriptors: Iterator[Mapping[str, Any]]) -> Iterator[Content]:
        if isinstance(kind, list):
            for each, part in zip(kind, value or [None] * len(kind), strict=True):
                yield from self._argument(each, part, descriptors)
        elif kind.startswith("*"):
            array = INTEGERS.get(value.get("dtype", "")) if isinstance(value, dict) else None
            yield Pointer(contents=(Field(0, Array(array, tuple(value["contents"]))),)) if array else Pointer()
        else:
            if value is None and kind.startswith("tensordesc"):
                shape = [self.size(int(each)) for each in re.findall(r"\d+", kind.partition("[")[2])]
                value = {"shape": shape, "strides": [prod(shape[n + 1 :]) for n in range(len(shape))]}
            elif value is None:
                value = 0 if "f" in kind else 1 if kind.endswith(("1", "i8", "u8")) else self.size()
            if isinstance(value, dict):
                value = SimpleNamespace(**{"padding": "zero", "round_f32_to_tf32": False, "base": None} | value)
            yield from contents_of(kind, value, descriptors)


def with_sizes(launch: Launch, function: Function, size: int, *, told: bool) -> tuple[Launch, dict[str, str]]:
    """A launch of PTX alone, of one CTA or cluster, with its guessed sizes in words; ``told``: but for the grid.

    Of another ``size`` than SIZE it is of three CTAs or clusters, and of half the threads. A cluster of one is a guess
    where the kernel names other CTAs of its cluster; the other one is of two.
    """
    several = not told and prod(launch.cluster) == 1 and any(map(_names_others, function.body))
    if size != SIZE:
        launch = replace(launch, cluster=(2, 1, 1), grid=(2 * launch.grid[0], *launch.grid[1:])) if several else launch
        x, y, z = launch.block
        halved = not told and "maxntid" in function.directives and x % 64 == 0
        launch = replace(
            launch, grid=(launch.grid[0] * size // SIZE, *launch.grid[1:]), block=(x // 2 if halved else x, y, z)
        )
    said = {"grid": grid_words(launch.grid)} | ({"cluster": f"cluster {launch.cluster[0]}"} if several else {})
    if not told and "maxntid" in function.directives:
        said["block"] = f"block {launch.block[0]}"
    if not told and any(each.external for each in function.shared):
        launch = replace(launch, dynamic_shared=2 * MAX_SHARED - function.shared_bytes(MAX_SHARED))
        said["shared"] = f"shared {launch.dynamic_shared:,}"
    return launch, said


def _names_others(each: Instruction) -> bool:
    """Whether an instruction is one for clusters of several CTAs."""
    return each.opcode == "mapa" or each.has_any("multicast::cluster", "cta_group::2")
