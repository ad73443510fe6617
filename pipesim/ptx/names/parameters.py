"""A kernel's parameters by what the head of its function in the source calls them."""

from __future__ import annotations

from dataclasses import replace

from pipesim.ptx.launch.values import Launch
from pipesim.ptx.names.resolve import Resolver, resolver_of
from pipesim.ptx.source_files import SourceFiles
from pipesim.ptx.text.module import Function

_HIDDEN = 2  #: pointers that Triton adds after the author's parameters
_MAP_BYTES = 128
_FEW = 8  #: places of the kernel at which its head is looked for: the first is the head itself


def with_source_names(launch: Launch, function: Function, sources: SourceFiles | None) -> Launch:
    """The launch with the source's names for its parameters, where it has none of its own for any."""
    if sources is None or any(each.name for each in launch.parameters) or not launch.parameters:
        return launch
    pairs = zip(launch.parameters, _names(function, resolver_of(sources)), strict=False)
    named = tuple(each._replace(name=name) for each, name in pairs)
    return replace(launch, parameters=named) if len(named) == len(launch.parameters) else launch


def _names(function: Function, resolver: Resolver) -> tuple[str, ...]:
    """The names in the order of the PTX's parameters; () unless the source has as many.

    Triton leaves out a parameter of which it knows the value, and makes several of a tensor map: its kernel has names
    only where nothing is left out for sure.
    """
    places = dict.fromkeys(each.source.frames[0] for each in function.body if each.source is not None)
    for place in [each for each in places if each.function == function.name][:_FEW]:
        python = place.file.endswith(".py")
        names = resolver.parameters(place) + ("",) * _HIDDEN * python
        known = [each for each in names if each]
        whole = len(known) == len(set(known)) == len(names) - _HIDDEN * python
        if whole and len(names) == len(function.params):
            return () if python and any(each.size == _MAP_BYTES for each in function.params) else names
    return ()
