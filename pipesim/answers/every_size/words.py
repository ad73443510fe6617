"""The words of a kernel's parameters that say how long it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import Kernel, emulate
from pipesim.ptx.free.forms import Form
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.settings import with_free_word
from pipesim.ptx.launch.values import Content, Number, Struct

_BEGINNING = 50_000  #: instructions of all warps


def words_that_decide(kernel: Kernel) -> dict[str, int]:
    """The integers among the parameters on which the beginning of a run depends, with their values: the largest first.

    By their places, as ``--set`` has them.
    """
    launch, image, values = kernel.launch, Image(kernel.launch, kernel.entry), {}
    for formal, given in zip(kernel.entry.params, kernel.launch.parameters, strict=True):
        for offset, value in _integers(given.content):
            name = image.place(PARAMETERS + formal.offset + offset)
            launch, free = with_free_word(launch, kernel.entry, name, 0, None, 1)
            if value <= free.high:
                values[name] = value
    inputs = emulate(replace(kernel, launch=launch), EmulationLimits(_BEGINNING)).cluster.inputs
    found = {name for terms in inputs.conditions for name in _names(Form(0, terms))}
    return {name: values[name] for name in sorted(found & values.keys(), key=lambda each: (-values[each], each))}


def _integers(content: Content) -> Iterator[tuple[int, int]]:
    match content:
        case Number(type=kind, value=int(value)) if value >= 0 and not kind.startswith(("f", "bf")):
            yield 0, value
        case Struct(fields=fields):
            for each in fields:
                yield from ((each.offset + at, value) for at, value in _integers(each.content))
        case _:
            pass


def _names(form: Form) -> Iterator[str]:
    for atom, _ in form.terms:
        if atom.function is None:
            yield atom.name
        for each in atom.arguments:
            yield from _names(each)
