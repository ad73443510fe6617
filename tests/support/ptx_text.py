"""Small PTX files for tests: a kernel around a few statements."""

from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.read import read_module

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<99>;\n.reg .f32 %f<9>;\n"


def ptx(body: str, params: str = "", before: str = "", directives: str = "") -> str:
    """A file with one kernel ``k``; its registers are %p, %r, %rd and %f. The body begins in line 10 + ``before``."""
    return f"{HEAD}{before}.visible .entry k({params}) {directives}\n{{\n{REGISTERS}{body}\n}}\n"


def module(body: str, params: str = "", before: str = "", directives: str = "") -> Module:
    """That file, read."""
    return read_module(ptx(body, params, before, directives), "k.ptx")


def kernel(body: str, params: str = "", before: str = "", directives: str = "") -> Function:
    """The kernel of that file."""
    (found,) = module(body, params, before, directives).entries
    return found
