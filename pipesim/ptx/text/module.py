"""A PTX file as plain data: its functions with their declarations, its variables, its source files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.ptx.source_files import SourceFiles
from pipesim.ptx.text.instruction import Instruction


class Param(NamedTuple):
    """A parameter: its PTX type ("b64", "b8" of a struct), bytes, alignment, and byte offset in the list.

    ``pointer`` is the space that ``.ptr`` names ("global", "generic"), "" where it is not declared as a pointer.
    ``in_register``: a device function of the old form takes it in the register of its name.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    pointer: str = ""
    in_register: bool = False


class Variable(NamedTuple):
    """A declared variable of a state space ("shared", "global", "const", "local", "param").

    ``size`` is in bytes, 0 for an external array without a size, as dynamic shared memory. ``offset`` is within its
    space for "shared" and "local" (0 is the first byte of the CTA's own variables; arrays without a size begin after
    all others), elsewhere 0. ``init`` are its first bytes where it has initial values, and the rest are 0. A word that
    holds an address (a symbol) is 0 in ``init`` and named in ``addresses`` by its byte offset.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    offset: int
    line: int
    external: bool
    init: bytes
    addresses: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Function:
    """A function's or a kernel's declarations and instructions.

    ``registers`` gives the type ("b32", "pred") of each register that occurs. ``shared`` are the variables that it and
    the functions which it calls refer to, its own and the module's. ``local`` are the variables of the body in the
    spaces "local" and "param" (arguments of calls). ``labels`` gives the index in ``body`` of the first instruction
    after the label (the length of the body for a label at the end); ``targets`` the labels of each ``.branchtargets``.
    ``directives`` are the performance directives by name without the dot, with their values: ``{"maxntid": (384,),
    "reqnctapercluster": (2, 1, 1), "explicitcluster": ()}``. ``results`` are the parameters that a device function
    returns. ``pragmas`` are (line, text). A declaration without a body has ``declared_only``.
    """

    name: str
    is_entry: bool
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    registers: Mapping[str, str]
    shared: tuple[Variable, ...]
    local: tuple[Variable, ...]
    labels: Mapping[str, int]
    targets: Mapping[str, tuple[str, ...]]
    body: tuple[Instruction, ...]
    directives: Mapping[str, tuple[int, ...]]
    line: int
    pragmas: tuple[tuple[int, str], ...] = ()
    declared_only: bool = False

    def shared_bytes(self, dynamic: int) -> int:
        """Bytes of shared memory of a CTA with this much dynamic, which begins at the alignment of its symbols."""
        return max((each.offset + each.size for each in self.shared), default=0) + dynamic


@dataclass(frozen=True)
class Module:
    """A PTX file: ``version`` is (8, 7), ``target`` is ("sm_100a",), ``files`` are by their ``.file`` number.

    ``unread`` are the directives that the reader does not know, as (line, name): none of them is an instruction.
    ``sources``: where the text of ``files`` can be read, None where none was looked for.
    """

    name: str
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: tuple[Function, ...]
    globals: tuple[Variable, ...]
    files: Mapping[int, str]
    unread: tuple[tuple[int, str], ...] = ()
    sources: SourceFiles | None = field(default=None, repr=False, compare=False)

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the file."""
        return tuple(each for each in self.functions if each.is_entry)

    def function(self, name: str) -> Function | None:
        """The function with this name, one with a body before a declaration; None if there is none."""
        named = [each for each in self.functions if each.name == name]
        return next((each for each in named if not each.declared_only), named[0] if named else None)
