"""Where an operand of a matrix instruction lies in shared memory, by its descriptor (PTX ISA, "Matrix Descriptor" and
"Strides" of wgmma and of tcgen05): groups of 8 rows, and of the bytes of a swizzle where the rows lie in a row.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.ptx.text.instruction import Immediate, Instruction

_BRICK = 16  #: bytes
_STEP = 32  #: bytes of a row that one instruction takes: its K
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_KINDS = {"kind::f16": 16, "kind::tf32": 32, "kind::f8f6f4": 8, "kind::i8": 8}
_WGMMA = {0: 0, 1: 128, 2: 64, 3: 32}  #: bytes of a swizzle, by the two highest bits
_TCGEN05 = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}  #: by the three highest bits


class OperandShape(NamedTuple):
    """``rows``: M or N of the operand; ``bits`` of an element; ``by_rows``: M or N, not K, is the inner dimension."""

    rows: int
    bits: int
    by_rows: bool


def of_wgmma(each: Instruction, index: int) -> OperandShape | None:
    """Of operand 1 (A) or 2 (B); None for a type whose layout is not known."""
    size = next((m for m in each.modifiers if m.startswith("m64n")), "")
    bits = _BITS.get(each.modifiers[index - 3])
    if not size or bits is None:
        return None
    rows = 64 if index == 1 else int(size[4:].partition("k")[0])
    order = each.operands[index - 3]  # of A and B the last two operands, where a type has them
    return OperandShape(rows, bits, bits == 16 and isinstance(order, Immediate) and bool(order.value))


def of_tcgen05(each: Instruction, index: int, instruction: int) -> OperandShape | None:
    """Of operand 1 (A) or 2 (B) in one CTA, by the instruction descriptor."""
    bits = next((_KINDS[m] for m in each.modifiers if m in _KINDS), None)
    if bits is None or any(m.startswith("block") for m in each.modifiers):
        return None
    rows = (instruction >> 24 & 0x1F) << 4 if index == 1 else (instruction >> 17 & 0x3F) << 3
    return OperandShape(rows // 2 if each.has("cta_group::2") else rows, bits, bool(instruction >> 14 + index & 1))


def groups(descriptor: int, shape: OperandShape, *, tcgen05: bool) -> tuple[int, ...]:
    """The bytes from the descriptor's address to each group, the first (0) included, in order."""
    swizzle = _TCGEN05.get(descriptor >> 61) if tcgen05 else _WGMMA[descriptor >> 62 & 3]
    if swizzle is None or (tcgen05 and descriptor >> 52 & 1):  # an address in place of the leading offset
        return (0,)
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    if not shape.by_rows:
        across = (0,) if swizzle else (0, leading)
        return tuple(sorted({g * stride + at for g in range(-(-shape.rows // 8)) for at in across}))
    deep = -(-_STEP * 8 // shape.bits // 8)
    blocks = -(-shape.rows * shape.bits // 8 // (swizzle or _BRICK))
    outer, inner = (leading, stride) if swizzle else (stride, leading)
    return tuple(sorted({block * outer + k * inner for block in range(blocks) for k in range(deep)}))
