"""A program with a framework like Triton, over the driver without a GPU, and an assembler that makes code for it."""

import struct
from pathlib import Path

#: Of an ELF header from its table of program headers on: one section header comes after it, of a section without bytes.
_ELF_REST = struct.pack("<QQIHHHHHH", 0, 64, 0, 64, 0, 0, 64, 1, 0) + struct.pack("<II", 0, 8) + bytes(56)
#: ``ptxas``: an ELF header with a hash of the PTX, and a mark where it has the recorder's variable.
PTXAS = """#!/usr/bin/env python3
import hashlib, sys
ELF_REST = {rest!r}
if sys.argv[1:] == ["--version"]:
    print("Cuda compilation tools, release 99.0, of the tests")  # newer than any other
    raise SystemExit
source, cubin = sys.argv[-3], sys.argv[-1]
text = open(source, "rb").read()
mark = b"P" if b"pipesim_buffer" in text else b"-"
start = b"\\x7fELF\\2\\1\\1\\x41".ljust(15, b"\\0") + mark + bytes(8) + hashlib.sha256(text).digest()[:8]
open(cubin, "wb").write(start + ELF_REST)
registers = 44 if mark == b"P" else 40
for line in text.decode().splitlines():
    if line.startswith(".visible .entry "):
        name = line.split()[2].split("(")[0]
        print(f"ptxas info    : Compiling entry function '{name}' for 'sm_90a'", file=sys.stderr)
        print("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", file=sys.stderr)
        print(f"ptxas info    : Used {registers} registers, used 1 barriers", file=sys.stderr)
"""
#: ``triton/compiler/compiler.py``: loads its machine code when it is first run, as the real one.
TRITON = """
import ctypes, hashlib
cuda = ctypes.CDLL("libcuda.so.1")
class CompiledKernel:
    def __init__(self, name, ptx, cubin):
        self.name, self.asm, self.kernel, self.function = name, {"ptx": ptx, "cubin": cubin}, cubin, None
    @property
    def run(self):
        if self.function is None:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            assert cuda.cuModuleLoadData(ctypes.byref(module), ctypes.create_string_buffer(self.kernel)) == 0
            assert cuda.cuModuleGetFunction(ctypes.byref(function), module, self.name.encode()) == 0
            self.function = function.value
        return self._launch
    def _launch(self, x, y, z, stream, function, packed, metadata, enter, exit, *args):
        if enter: enter()
        values = [ctypes.c_uint64(args[0]), ctypes.c_uint32(args[1])]
        places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
        function, stream = ctypes.c_void_p(function), ctypes.c_void_p(stream)
        assert cuda.cuLaunchKernel(function, x, y, z, 64, 1, 1, 0, stream, places, None) == 0
        if exit: exit()
"""
#: Launches each kernel that is named, and prints what the launches did to memory (the fake driver counts there).
PROGRAM = """
import ctypes, sys
ELF_REST = {rest!r}
from triton.compiler.compiler import CompiledKernel, cuda
cuda.cuInit(0)
ptx = open(sys.argv[1]).read()
memory, hooks = ctypes.c_uint64(), []
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
def compiled(name):
    start = b"\\x7fELF\\2\\1\\1\\x41".ljust(24, b"\\0") + name.encode()[:8]
    return CompiledKernel(name, ptx, start + ELF_REST)
for name in sys.argv[2:]:
    kernel = compiled(name)
    for _ in range(3):
        run = kernel.run
        run(1, 1, 1, 0, kernel.function, None, None, lambda: hooks.append(1), None, memory.value, 5)
print(ctypes.c_int.from_address(memory.value).value, len(hooks))
"""


def write_program(folder: Path) -> Path:
    """The framework, the assembler and the program in a folder; the program's path."""
    compiler = folder / "triton" / "compiler"
    compiler.mkdir(parents=True)
    for package in (compiler.parent, compiler):
        (package / "__init__.py").write_text("")
    (compiler / "compiler.py").write_text(TRITON)
    (folder / "bin").mkdir()
    ptxas = folder / "bin" / "ptxas"
    ptxas.write_text(PTXAS.replace("{rest!r}", repr(_ELF_REST)))
    ptxas.chmod(0o755)
    program = folder / "launching.py"
    program.write_text(PROGRAM.replace("{rest!r}", repr(_ELF_REST)))
    return program
