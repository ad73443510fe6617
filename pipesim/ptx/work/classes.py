"""The class of an instruction: by which of a latency profile's rates it is priced (``pipesim.model.tables``).

The rules are those of the CUDA C++ Programming Guide, "Arithmetic Instructions", for compute capability 9.0; ptxas has
no instruction of its own for what only moves, converts or packs registers.
"""

from __future__ import annotations

import re

from pipesim.ptx.emulate.synchronisation import is_step, is_try
from pipesim.ptx.text.instruction import Immediate, Instruction, Vector

LANES = 32
#: Only a name for a register, a constant or an address, or folded into what uses it.
_FREE = frozenset({"mov", "cvta", "createpolicy", "prefetch", "prefetchu", "brkpt", "pmevent", "alloca", "stacksave"})
_SPECIAL = frozenset({"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"})
#: Instructions whose result takes as long as that of a shuffle: other lanes take part in it.
_ACROSS_LANES = frozenset({"shfl", "redux", "match"})
_ARITHMETIC = frozenset({"abs", "add", "fma", "mad", "max", "min", "mul", "neg", "sub"})
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
_TWO_WORDS = frozenset(
    {"add", "sub", "and", "or", "xor", "not", "shl", "shr", "selp", "min", "max", "setp", "neg", "abs"}
)
_LOADS, _STORES = frozenset({"ld", "ldu", "ldmatrix"}), frozenset({"st", "stmatrix"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS = {"b128": 128} | {f"{kind}{width}": width for kind in "usbf" for width in (8, 16, 32, 64)}
_BITS |= {"f16x2": 32, "bf16": 16, "bf16x2": 32}


def class_of(each: Instruction) -> str:
    """A class of :data:`~pipesim.model.tables.WORK_CLASSES` by which one instruction of a warp counts, "" for none.

    What is an operation of the program (a barrier, a copy, a product of a warp group) has a price of its own.
    """
    opcode = each.opcode
    if opcode in _FREE or opcode in ("wgmma", "tcgen05") or is_step(each) or is_try(each):
        return ""
    if opcode == "mma" or (opcode == "wmma" and each.has("mma")):
        return "warp_products"
    if opcode == "wmma":
        return "rounds" if each.has("load") else "shared_bytes"
    if opcode in _SPECIAL:
        return "exp2"
    if opcode == "div":
        return "exp2" if each.has_any(*_FLOATS) else "alu"
    if opcode in _ACROSS_LANES:
        return "shuffles"
    if opcode in _ARITHMETIC and each.has_any(*_FLOATS):
        return "fma"
    if opcode in _LOADS | _STORES | {"atom", "red"}:
        return _access(each)
    return "alu"


def _access(each: Instruction) -> str:
    spaces = each.spaces
    if spaces & {"param", "const"}:
        return ""
    if "local" in spaces:  # of the stack: mostly in registers
        return "alu"
    shared = "shared" in spaces or each.opcode in ("ldmatrix", "stmatrix")
    if each.opcode in _STORES | {"red"}:
        return "shared_bytes" if shared else "global_bytes"
    return "rounds" if shared else "global_accesses"


def machine_instructions(each: Instruction) -> int:
    """How many machine instructions an integer instruction takes: what the hardware has none for is a sequence."""
    wide = each.has_any("s64", "u64", "b64")
    if each.opcode in ("div", "rem"):
        if isinstance(each.operands[-1], Immediate):
            return 12 if wide else 5  # a multiplication by the reciprocal, and shifts
        return 80 if wide else 20
    if each.opcode in ("popc", "clz", "brev", "bfind", "fns"):
        return 4  # a quarter of the rate of others
    if wide and each.opcode in ("mul", "mad"):
        return 4
    return 2 if wide and each.opcode in _TWO_WORDS else 1


def loads(kind: str) -> bool:
    """Whether an instruction of this class has a result for which the next one that reads it has to wait."""
    return kind in ("rounds", "global_accesses", "shuffles")


def is_proxy_fence(each: Instruction) -> bool:
    """Whether it orders accesses of the generic proxy with those of another one."""
    return each.opcode == "fence" and each.has("proxy")


def bytes_of(each: Instruction) -> int:
    """How many bytes a load or store moves for a whole warp."""
    if each.opcode in ("ldmatrix", "stmatrix"):
        times = next((int(m[1:]) for m in each.modifiers if m in ("x1", "x2", "x4")), 1)
        return 128 * times  # each a matrix of 8 rows of 16 bytes
    width = next((_BITS[m] for m in reversed(each.modifiers) if m in _BITS), 32)
    vector = next((len(o.parts) for o in each.operands if isinstance(o, Vector)), 1)
    return width * vector * LANES // 8


def products_of(each: Instruction) -> int:
    """A warp's ``mma`` in parts of 256 multiply-adds of 16 bits; narrower ones take less, wider ones more."""
    found = next((m for m in map(_SHAPE.fullmatch, each.modifiers) if m is not None), None)
    if found is None:
        return 8
    m, n, k = map(int, found.groups())
    types = [name for name in each.modifiers if name in _WIDTHS]
    width = _WIDTHS[types[1]] if len(types) > 1 else 16  # of the results, A, B, and what is added
    return max(1, m * n * k * width // (16 * 256) // (2 if each.has_any("sp", "sp::ordered_metadata") else 1))


_WIDTHS = {"f64": 64, "tf32": 32, "f32": 32, "s32": 32, "f16": 16, "bf16": 16} | dict.fromkeys(
    ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8"), 8
) | dict.fromkeys(("s4", "u4"), 4) | {"b1": 1}  # fmt: skip


def group_product(each: Instruction) -> tuple[str, int]:
    """A ``wgmma.mma_async``: the class of its multiply-adds, and those of one warp, were its operands of 16 bits.

    All types have 32 bytes of K, sparse ones twice that of B, and take equally long (PTX ISA, "wgmma.mma_async").
    """
    shape = next(m for m in map(_SHAPE.fullmatch, each.modifiers) if m is not None)
    kind = "mma_registers" if isinstance(each.operands[1], Vector) else "mma"
    return kind, int(shape[1]) * int(shape[2]) * 16 // 4
