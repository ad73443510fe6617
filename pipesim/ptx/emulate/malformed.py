"""Instructions whose operands are not those that PTX gives them.

What follows an instruction takes its operands by their place and kind, and does not check them one by one: an assembler
has done that for every file that a compiler wrote. Where one is missing or of another kind, that fails in one of few
ways, which are turned into an error with the line.
"""

from __future__ import annotations

from pipesim.errors import PtxError
from pipesim.ptx.text.instruction import Instruction

#: How a missing operand, or one of another kind, is noticed.
MALFORMED = (IndexError, TypeError, ValueError, StopIteration, AssertionError)


def malformed(instruction: Instruction) -> PtxError:
    """The error that says so."""
    return PtxError(
        f"{instruction.mnemonic} cannot be followed with these operands",
        place=f"line {instruction.line} of the PTX",
        cause="it takes others, or pipesim does not know this form of it",
        correction="assemble the file with ptxas, which names what is wrong; if it accepts it, report this line",
    )
