"""What a name means at a place of a function: blocks of braces declare registers, variables and labels of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipesim.ptx.text.instruction import Operand

_NUMBERED = re.compile(r"(.*?)([0-9]+)")


@dataclass
class Names:
    """The names of one function: each resolved register's type, and how often each label and name was declared."""

    registers: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    blocks: int = 0

    def unique(self, name: str, block: int) -> str:
        """``name``, or ``name$3`` if another block of this function declared it before."""
        found, more = name, 0
        while found in self.taken:
            found = f"{name}${block}" if not more else f"{name}${block}${more}"
            more += 1
        self.taken.add(found)
        return found


@dataclass
class NameScope:
    """One block of braces. ``parsed`` remembers operands by their text, as far as they depend on this block."""

    parent: NameScope | None
    names: Names
    number: int = 0
    depth: int = 0
    declared: dict[str, tuple[str, bool]] = field(default_factory=dict)  #: the function-wide name; is it a register?
    families: dict[str, tuple[int, str, str]] = field(default_factory=dict)  #: count, type and suffix of ``%r<9>``
    labels: dict[str, str] = field(default_factory=dict)
    parsed: dict[str, Operand] = field(default_factory=dict)

    def block(self) -> NameScope:
        """A block inside this one. Until it declares something, it shares the operands seen so far."""
        self.names.blocks += 1
        return NameScope(self, self.names, self.names.blocks, self.depth + 1, parsed=self.parsed)

    def declare(self, name: str, *, register: bool, kind: str = "") -> str:
        """Declare a register or a variable; what it is called in the whole function."""
        self._own()
        if self.parent is not None and (outer := self.parent.lookup(name)) is not None:
            self.names.taken.add(outer[0])
        found = self.names.unique(name, self.number)
        self.declared[name] = (found, register)
        if register:
            self.names.registers[found] = kind
        return found

    def declare_family(self, prefix: str, count: int, kind: str) -> None:
        """``.reg .b32 %r<9>``: %r0 to %r8. Each gets its entry where it is first used."""
        self._own()
        hidden = self._outer_family(prefix)
        self.families[prefix] = (count, kind, f"${self.number}" if hidden else "")

    def label(self, name: str) -> str | None:
        """Declare a label; None if this block has it already."""
        if name in self.labels:
            return None
        self.labels[name] = self.names.unique(f":{name}", self.number)[1:]
        return self.labels[name]

    def target(self, name: str) -> str | None:
        """The function-wide name of a label that is visible here, None if there is none."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def lookup(self, name: str) -> tuple[str, bool] | None:
        """The function-wide name, and whether it is a register; None if nothing here declares it."""
        numbered = _NUMBERED.fullmatch(name)
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.declared:
                return scope.declared[name]
            if numbered is not None and scope.families:
                found = scope.member(name, numbered)
                if found is not None:
                    return found
            scope = scope.parent
        return None

    def family(self, name: str) -> int | None:
        """How many registers the family of this name has, if there is one here: a number above was not declared."""
        numbered = _NUMBERED.fullmatch(name)
        scope: NameScope | None = self
        while scope is not None and numbered is not None:
            if numbered[1] in scope.families:
                return scope.families[numbered[1]][0]
            scope = scope.parent
        return None

    def member(self, name: str, numbered: re.Match[str]) -> tuple[str, bool] | None:
        """The register of this number in a family of this block, None if the block has none."""
        digits = numbered[2]
        count, kind, suffix = self.families.get(numbered[1], (0, "", ""))
        if len(digits) > 10 or int(digits) >= count or (len(digits) > 1 and digits[0] == "0"):
            return None
        self.names.registers[name + suffix] = kind
        self.declared[name] = (name + suffix, True)
        return self.declared[name]

    def _outer_family(self, prefix: str) -> bool:
        scope = self.parent
        while scope is not None:
            if prefix in scope.families:
                return True
            scope = scope.parent
        return False

    def _own(self) -> None:
        """From here on, a name may mean something else than outside."""
        if self.parent is not None and self.parsed is self.parent.parsed:
            self.parsed = {}
