"""Values that are data: results of matrix products and what floating point makes of loaded numbers.

No compiler writes a kernel whose barriers depend on them, except where a rescaling is skipped; then the branch is on
an unknown value. So the slice does not follow them: such a result is unknown by itself.
"""

from __future__ import annotations

from pipesim.ptx.flow.uses import Names, Uses
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.module import Function

_PRODUCTS = frozenset({"mma", "wmma", "wgmma", "ldmatrix", "tex", "tld4", "movmatrix"})
_LOADS = frozenset({"ld", "ldu", "suld"})
_IN_MEMORY = frozenset({"global", "shared", "shared::cta", "shared::cluster"})
_FLOATS = frozenset(
    {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32", "e4m3x2", "e5m2x2", "ue8m0x2", "e2m1x2"}
)
_ARITHMETIC = frozenset(
    {
        "abs", "add", "cos", "cvt", "div", "ex2", "fma", "lg2", "mad", "max", "min", "mul", "neg", "rcp", "rsqrt",
        "sin", "sqrt", "sub", "tanh",
    }
)  # fmt: skip
_MOST_ROUNDS = 64


def data_results(function: Function, uses: Uses) -> frozenset[int]:
    """The positions of instructions whose result is data.

    A result is data if it comes out of a matrix unit, if an instruction makes it of data, or if floating-point
    arithmetic makes it of something that was loaded from shared memory, or from global memory but one word at a time.
    """
    loaded: set[str] = set()
    data: set[str] = set()
    found: set[int] = set()
    left = [each for each in function.body if uses.writes[each.position]]
    for _ in range(_MOST_ROUNDS):
        before = len(loaded) + len(data)
        rest = []
        for each in left:
            reads, writes = uses.reads[each.position], uses.writes[each.position]
            if _is_data(each, reads, loaded, data):
                found.add(each.position)
                data.update(writes)
                continue
            if _is_loaded(each, reads, loaded):
                loaded.update(writes)
            rest.append(each)
        left = rest
        if len(loaded) + len(data) == before:
            break
    return frozenset(found)


def _is_data(each: Instruction, reads: Names, loaded: set[str], data: set[str]) -> bool:
    opcode, modifiers = each.opcode, each.modifiers
    if opcode in _PRODUCTS or opcode == "tcgen05":
        return True
    if opcode in _LOADS or opcode == "atom":  # the address is not the value
        return False
    if not data.isdisjoint(reads):
        return True
    return opcode in _ARITHMETIC and not _FLOATS.isdisjoint(modifiers) and not loaded.isdisjoint(reads)


def _is_loaded(each: Instruction, reads: Names, loaded: set[str]) -> bool:
    if each.opcode in _LOADS:
        if each.has("global") and each.has_any("f32", "b32", "u32") and not each.has_any("v2", "v4", "v8"):
            return False  # perhaps a factor in memory, which may be 0 and decide what is loaded at all
        return not _IN_MEMORY.isdisjoint(each.modifiers)
    return not loaded.isdisjoint(reads)
