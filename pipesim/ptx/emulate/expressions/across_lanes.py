"""What depends on the lanes that execute: votes, shuffles, elections."""

from __future__ import annotations

from pipesim.ptx.emulate.expressions.operands import (
    Assignment,
    NameTable,
    NotAnExpression,
    Writer,
    assigned,
    mask_of,
    operand_text,
    operands_of,
    type_of,
)
from pipesim.ptx.text.instruction import Instruction, RegisterPair, Sink


def _vote(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), "")
    if not mode:
        raise NotAnExpression
    lanes = operand_text(members[0], names, 32) if members else "4294967295"
    return assigned(d, names, f"W.vote_{mode}({operand_text(a, names, 1)},{lanes})")


def _shuffle(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx")), "")
    if not mode:
        raise NotAnExpression
    texts = [operand_text(x, names, 32) for x in (a, b, c)]
    lanes = operand_text(members[0], names, 32) if members else "4294967295"
    value = f"W.shuffle_{mode}({','.join(texts)},{lanes})"
    if isinstance(d, RegisterPair) and not isinstance(d.second, Sink):
        inside = f"W.shuffle_inside('{mode}',{texts[1]},{texts[2]})"
        return [*assigned(d.second, names, inside), *assigned(d.first, names, value)]
    return assigned(d, names, value)


def _elect(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, members = operands_of(instruction, 2)
    lanes = operand_text(members, names, 32)
    if isinstance(d, RegisterPair):
        return [*assigned(d.first, names, f"W.leader({lanes})"), *assigned(d.second, names, f"W.elected({lanes})")]
    return assigned(d, names, f"W.leader({lanes})")


def _active(instruction: Instruction, names: NameTable) -> list[Assignment]:
    (d,) = operands_of(instruction, 1)
    if instruction.guard is None:
        return assigned(d, names, "W.mask")
    holds = f"R[{names.register(instruction.guard.register)}]" + ("^1" if instruction.guard.negated else "")
    return assigned(d, names, f"W.vote_ballot({holds},{mask_of(32)})")


def _reduce(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, members = operands_of(instruction, 3)
    mode = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), "")
    if not mode or width != 32:
        raise NotAnExpression
    lanes = operand_text(members, names, 32)
    return assigned(d, names, f"W.reduce('{mode}',{operand_text(a, names, 32)},{lanes},{1 if kind == 's' else 0})")


def _match(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``match.any`` and ``match.all``, which may say besides whether all lanes agree."""
    _, width = type_of(instruction)
    d, a, members = operands_of(instruction, 3)
    which = "any" if instruction.has("any") else "all"
    call = f"W.match_{which}({operand_text(a, names, width)},{operand_text(members, names, 32)})"
    if isinstance(d, RegisterPair):
        return [*assigned(d.first, names, call), *assigned(d.second, names, f"({call}!=0)")]
    return assigned(d, names, call)


WRITERS: dict[str, Writer] = {
    "vote": _vote,
    "shfl": _shuffle,
    "elect": _elect,
    "match": _match,
    "activemask": _active,
    "redux": _reduce,
}
