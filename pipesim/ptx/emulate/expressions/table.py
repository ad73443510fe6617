"""What an instruction computes, as the text of a Python expression of numbered registers: nothing of the file is in it.

An expression sees ``R``, the registers of a warp; ``K``, its constants (special registers, addresses, parameters); and
``W``, the warp itself, for what depends on the lanes that execute. PTX ISA, "Instruction Set".
"""

from __future__ import annotations

from pipesim.ptx.emulate.expressions import across_lanes, arithmetic, choices, moves
from pipesim.ptx.emulate.expressions.arithmetic import float_arithmetic
from pipesim.ptx.emulate.expressions.operands import FLOATS, Assignment, NameTable, NotAnExpression
from pipesim.ptx.text.instruction import Instruction

_OF_BITS = frozenset({"mov", "selp", "setp"})  #: also move, choose and compare floating-point numbers
_OF_FLOATS = frozenset({"add", "sub", "mul"})  #: of scalars that decide, such as a factor that may be 0
_WRITERS = arithmetic.WRITERS | choices.WRITERS | moves.WRITERS | across_lanes.WRITERS


def assignments(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """The registers that it writes with their expressions. NotAnExpression if it does more than compute integers."""
    writer = _WRITERS.get(instruction.opcode)
    if instruction.opcode in _OF_FLOATS and instruction.has("f32"):
        return float_arithmetic(instruction, names)
    if writer is None or (instruction.opcode not in _OF_BITS and not FLOATS.isdisjoint(instruction.modifiers)):
        raise NotAnExpression
    return writer(instruction, names)
