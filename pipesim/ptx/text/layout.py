"""Where the shared and local variables of a function lie: in the order of their declarations, each aligned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipesim.ptx.text.instruction import Address, Arguments, Operand, Symbol, TensorAddress, Vector
from pipesim.ptx.text.module import Function, Variable


def with_shared(functions: Sequence[Function], variables: Sequence[Variable]) -> tuple[Function, ...]:
    """The functions, each with the shared variables that it and the functions which it calls refer to, and places."""
    common = {each.name: each for each in variables if each.space == "shared"}
    named = {each.name: each for each in functions if not each.declared_only}
    uses = {name: _symbols(each) for name, each in named.items()}
    found = []
    for function in functions:
        reached = _reached(function.name, uses) if function.name in uses else []
        shared: dict[tuple[str, str], Variable] = {}
        for name in reached:
            shared |= {("", symbol): common[symbol] for symbol in uses[name] if symbol in common}
            shared |= {(name, each.name): each for each in named[name].shared}
        ordered = sorted(shared.values(), key=lambda each: each.line)
        found.append(replace(function, shared=placed(ordered), local=_locals(function.local)))
    return tuple(found)


def placed(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """The variables at their offsets; arrays without a size begin together after all others."""
    found, offset = {}, 0
    sized = [each for each in variables if not (each.external and each.size == 0)]
    for each in sized:
        offset = -(-offset // each.align) * each.align
        found[id(each)] = offset
        offset += each.size
    dynamic = [each for each in variables if each.external and each.size == 0]
    align = max((each.align for each in dynamic), default=1)
    end = -(-offset // align) * align
    return tuple(each._replace(offset=found.get(id(each), end)) for each in variables)


def _locals(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    local = placed([each for each in variables if each.space == "local"])
    return (*local, *(each for each in variables if each.space == "param"))


def _reached(name: str, uses: dict[str, dict[str, None]]) -> list[str]:
    """The functions that this one may call, itself first."""
    found, waiting = {name: None}, [name]
    while waiting:
        for symbol in uses[waiting.pop()]:
            if symbol in uses and symbol not in found:
                found[symbol] = None
                waiting.append(symbol)
    return list(found)


def _symbols(function: Function) -> dict[str, None]:
    """The names of variables and functions in its instructions, in order."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    for instruction in function.body:
        for operand in instruction.operands:
            if id(operand) not in seen:
                seen.add(id(operand))
                found.update(dict.fromkeys(_names(operand)))
    return found


def _names(operand: Operand) -> Iterator[str]:
    match operand:
        case Symbol(name):
            yield name
        case Address(base, _):
            yield from _names(base)
        case TensorAddress(place, coordinates):
            yield from _names(place)
            yield from _names(coordinates)
        case Vector(parts) | Arguments(parts):
            for part in parts:
                yield from _names(part)
        case _:
            pass
