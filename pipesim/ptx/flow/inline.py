"""Calls of device functions that the file defines, replaced by their bodies: what follows sees one function.

A call of a function without a body, of one through a register, and of one that calls itself stays as it is; the last
has the modifier ``RECURSIVE``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pipesim.bounds import MAX_KERNEL_INSTRUCTIONS
from pipesim.errors import PtxError
from pipesim.ptx.text.declarations import Function, Module, Param, Variable, place_variables
from pipesim.ptx.text.instruction import (
    Address,
    Arguments,
    CodeLabel,
    Guard,
    Instruction,
    NegatedPredicate,
    Operand,
    Register,
    RegisterPair,
    Symbol,
    TensorAddress,
    Vector,
)

RECURSIVE = "recursive"
_DEEPEST = 64  #: functions that call each other


def inline_calls(module: Module, function: Function) -> Function:
    """The function with all calls of the module's functions inlined. Raises PtxError if it gets too long."""
    if len(function.body) > MAX_KERNEL_INSTRUCTIONS:
        raise _too_long(module, function)
    if not any(each.opcode == "call" for each in function.body):
        return function
    made = _Inliner(module, function)
    made.copy(function, _Names({}, {}, {}), (function.name,))
    body = tuple(made.body)
    return replace(
        function,
        registers=made.registers,
        local=(*place_variables([v for v in made.variables if v.space == "local"]), *_params(made.variables)),
        labels=made.labels,
        targets=made.targets,
        body=body,
    )


def _too_long(module: Module, function: Function) -> PtxError:
    return PtxError(
        f"{function.name} has more than {MAX_KERNEL_INSTRUCTIONS:,} instructions with its calls inlined",
        place=f"{module.name}, line {function.line}",
    )


def callee(instruction: Instruction) -> str:
    """The function that a call names, "" if it is in a register."""
    return next((each.name for each in instruction.operands if isinstance(each, Symbol)), "")


def _params(variables: list[Variable]) -> Iterator[Variable]:
    return (each for each in variables if each.space == "param")


@dataclass(frozen=True)
class _Names:
    """What the names of one copy are called in the whole: registers, symbols and labels that differ."""

    registers: Mapping[str, str]
    symbols: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass
class _Inliner:
    module: Module
    function: Function
    body: list[Instruction] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    copies: int = 0

    def copy(self, function: Function, names: _Names, path: tuple[str, ...], end: str = "") -> None:
        """Append a function's body; a return becomes a jump to ``end`` if it is named."""
        if len(path) > _DEEPEST:
            raise PtxError(
                f"more than {_DEEPEST} functions are called inside each other",
                place=f"{self.module.name}, line {function.line}",
            )
        self.registers |= {names.registers.get(name, name): kind for name, kind in function.registers.items()}
        self.variables += [each._replace(name=names.symbols.get(each.name, each.name)) for each in function.local]
        for name, listed in function.targets.items():
            self.targets[names.labels.get(name, name)] = tuple(names.labels.get(each, each) for each in listed)
        at: dict[int, list[str]] = {}
        for name, position in function.labels.items():
            at.setdefault(position, []).append(names.labels.get(name, name))
        cache: dict[int, Operand] = {}
        for each in function.body:
            instruction = each
            self._labels(at.get(instruction.position, ()))
            called = self.module.function(callee(instruction)) if instruction.opcode == "call" else None
            if called is not None and called.name in path:
                instruction = instruction._replace(modifiers=(*instruction.modifiers, RECURSIVE))
            elif called is not None and not called.declared_only:
                self._call(instruction, called, names, path)
                continue
            if instruction.opcode == "ret" and end:
                guard = _guard(instruction.guard, names)
                jump = instruction._replace(opcode="bra", modifiers=(), operands=(CodeLabel(end),), guard=guard)
                self._append(jump)
            elif names.registers or names.symbols or names.labels:
                operands = tuple(_rename(one, names, cache) for one in instruction.operands)
                self._append(instruction._replace(operands=operands, guard=_guard(instruction.guard, names)))
            else:
                self._append(instruction)
        self._labels(at.get(len(function.body), ()))

    def _append(self, instruction: Instruction) -> None:
        if len(self.body) >= MAX_KERNEL_INSTRUCTIONS:
            raise _too_long(self.module, self.function)
        self.body.append(instruction._replace(position=len(self.body)))

    def _labels(self, names: list[str] | tuple[str, ...]) -> None:
        for name in names:
            self.labels[name] = len(self.body)

    def _call(self, call: Instruction, called: Function, names: _Names, path: tuple[str, ...]) -> None:
        """The body of a called function, its parameters those of the call."""
        self.copies += 1
        end, skip = f"{called.name}$end{self.copies}", f"{called.name}$skip{self.copies}"
        lists = [each.parts for each in call.operands if isinstance(each, Arguments)]
        before = any(isinstance(each, Arguments) for each in call.operands[:1])
        results = [_rename(each, names, {}) for each in (lists[0] if before else ())]
        arguments = [_rename(each, names, {}) for each in (lists[-1] if len(lists) > before else ())]
        inner = _Names(
            {name: f"{name}${self.copies}i" for name in called.registers},
            {each.name: f"{each.name}${self.copies}i" for each in called.local}
            | _symbols(called.params, arguments)
            | _symbols(called.results, results),
            {name: f"{name}${self.copies}i" for name in (*called.labels, *called.targets)},
        )
        if call.guard is not None:
            name = names.registers.get(call.guard.register, call.guard.register)
            guard = Guard(name, not call.guard.negated)
            self._append(call._replace(opcode="bra", modifiers=(), operands=(CodeLabel(skip),), guard=guard))
        for formal, actual in zip(called.params, arguments, strict=False):
            if formal.in_register:
                self._move(call, formal, Register(inner.registers.get(formal.name, formal.name)), actual)
        self.copy(called, inner, (*path, called.name), end)
        self._labels((end,))
        for formal, actual in zip(called.results, results, strict=False):
            if formal.in_register:
                self._move(call, formal, actual, Register(inner.registers.get(formal.name, formal.name)))
        self._labels((skip,) if call.guard is not None else ())

    def _move(self, call: Instruction, formal: Param, to: Operand, source: Operand) -> None:
        self._append(call._replace(opcode="mov", modifiers=(formal.type,), operands=(to, source), guard=None))


def _symbols(formals: tuple[Param, ...], actual: list[Operand]) -> dict[str, str]:
    """Parameters in the space "param" are the variables that the call gives."""
    pairs = zip(formals, actual, strict=False)
    return {formal.name: given.name for formal, given in pairs if isinstance(given, Symbol)}


def _guard(guard: Guard | None, names: _Names) -> Guard | None:
    return None if guard is None else Guard(names.registers.get(guard.register, guard.register), guard.negated)


def _rename(operand: Operand, names: _Names, cache: dict[int, Operand]) -> Operand:
    """An operand of a copy, with the names of the whole; ``cache`` is by identity, as the reader shares operands."""
    found = cache.get(id(operand))
    if found is not None:
        return found
    match operand:
        case Register(name):
            found = Register(names.registers.get(name, name))
        case Symbol(name):
            found = Symbol(names.symbols.get(name, name))
        case CodeLabel(name):
            found = CodeLabel(names.labels.get(name, name))
        case Address(base, offset):
            inner = _rename(base, names, cache)
            assert isinstance(inner, type(base))
            found = Address(inner, offset)
        case TensorAddress(place, coordinates):
            one, other = _rename(place, names, cache), _rename(coordinates, names, cache)
            assert isinstance(one, Address)
            assert isinstance(other, Vector)
            found = TensorAddress(one, other)
        case Vector(parts):
            found = Vector(tuple(_rename(each, names, cache) for each in parts))
        case Arguments(parts):
            found = Arguments(tuple(_rename(each, names, cache) for each in parts))
        case RegisterPair(first, second):
            found = RegisterPair(_rename(first, names, cache), _rename(second, names, cache))
        case NegatedPredicate(register):
            inside = _rename(register, names, cache)
            assert isinstance(inside, Register)
            found = NegatedPredicate(inside)
        case _:
            found = operand
    cache[id(operand)] = found
    return found
