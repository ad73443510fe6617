"""A kernel with single lines of its file written otherwise, without reading the whole file again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pipesim.ptx.emulation import Kernel, prepare
from pipesim.ptx.flow.uses import Uses, uses_of
from pipesim.ptx.text.body import STATEMENT, spelled
from pipesim.ptx.text.instruction import Guard, Instruction, Operand
from pipesim.ptx.text.operands import OperandError, operand, split
from pipesim.ptx.text.scope import Names, NameScope

_REGISTER = re.compile(r"%[a-z]+\d+")
_NAMED = re.compile(r"[A-Za-z_$%][\w$]*")
_COMMENT = re.compile(r"\s*(?://.*)?")
_FLOW = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})


def with_changed_lines(kernel: Kernel, text: list[str], lines: Mapping[int, str]) -> Kernel | None:
    """The kernel with these lines, by number, in its file's ``text``; None where the file has to be read again.

    So it is unless each of them is one instruction of the kernel itself, before and after, and not a branch, and names
    only what it named before or registers with numbers.
    """
    entry, own = kernel.entry, kernel.entry is kernel.function  # nothing is called
    at: dict[int, list[Instruction]] = {}
    for each in entry.body:
        at.setdefault(each.line, []).append(each)
    body, uses = list(entry.body), kernel.code.regions.uses
    reads, writes, needs = list(uses.reads), list(uses.writes), list(uses.needs)
    for number, new in lines.items():
        here = at.get(number, [])
        made = _instruction(here[0], text[number - 1], new, entry.registers) if len(here) == 1 else None
        if made is None:
            return None
        position = here[0].position
        body[position] = made
        if own:
            of_it = uses_of(replace(entry, body=(made,)))
            reads[position], writes[position], needs[position] = of_it.reads[0], of_it.writes[0], of_it.needs[0]
    changed = replace(entry, body=tuple(body))
    functions = tuple(changed if each is entry else each for each in kernel.module.functions)
    module = replace(kernel.module, functions=functions)
    known = (kernel.code.regions.graph, Uses(reads, writes, needs)) if own else ()
    return prepare(module, kernel.launch, *known)


def _instruction(old: Instruction, was: str, new: str, registers: Mapping[str, str]) -> Instruction | None:
    """The instruction of a line as another text of it has it; None of what is not one, or cannot be read by itself."""
    before, after = _whole(was), _whole(new)
    if before is None or after is None:
        return None
    opcode, modifiers = spelled(after["opcode"], after["modifiers"])
    if old.opcode in _FLOW or opcode in _FLOW:
        return None
    parts = split(before["operands"].strip())
    if len(parts) != len(old.operands):
        return None
    scope = NameScope(None, Names(), parsed=dict(zip(parts, old.operands, strict=True)))
    guard, given = old.guard, (after["guard"] or "").replace("@", "").strip()
    if given != (before["guard"] or "").replace("@", "").strip():
        name = given.lstrip("! ")
        if name and not (_REGISTER.fullmatch(name) and name in registers):
            return None
        guard = Guard(name, given.startswith("!")) if name else None
    operands: list[Operand] = []
    for part in split(after["operands"].strip()):
        if part not in scope.parsed:
            for name in _NAMED.findall(part):
                if not (_REGISTER.fullmatch(name) and name in registers):
                    return None
                scope.declared[name] = name, True
        try:
            operands.append(operand(part, scope))
        except OperandError:
            return None
    return old._replace(opcode=opcode, modifiers=modifiers, operands=tuple(operands), guard=guard)


def _whole(line: str) -> re.Match[str] | None:
    """The one instruction that a line is, None if it is not one."""
    found = STATEMENT.match(line)
    if found is None or found.lastgroup != "operands" or _COMMENT.fullmatch(line, found.end()) is None:
        return None
    return found
