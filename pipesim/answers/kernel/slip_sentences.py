"""A slip at an instruction of a kernel in words: the line as it should be, and what the kernel does otherwise then."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from pipesim.answers.kernel.lines import KernelLines
from pipesim.answers.kernel.slips import Slip
from pipesim.explain.sync_changes import SyncChange, SyncChangeKind, sync_changes
from pipesim.model.groups import ENGINE_ACCESSES
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.repair.correction import ChangedToken
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.wording.sentences import sentence
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.kernel import EditableKernel
from pipesim.ptx.text.instruction import Instruction

_NUMBER = re.compile(r"-?\d+")
_WORD = re.compile(rf"[%\w$]+|{_NUMBER.pattern}")
#: Of a strict comparison and one that is not one becomes the other.
_STRICT = frozenset(map(frozenset, (("lt", "le"), ("gt", "ge"), ("lo", "ls"), ("hi", "hs"))))
_MOST_EFFECTS = 2
_LONGEST = 24  #: opcode that is said in full


def slip_repair(before: Program, after: Program) -> Repair:
    """The change as one of the program: of the groups that roles leave pending, if it is only that."""
    changed: dict[tuple[int, int, int], dict[str, None]] = {}
    for agent, code, new in zip(before.agents, before.code, after.code, strict=True):
        for op, now in zip_longest(code, new, fillvalue=()):
            if op != now and not (op and now and op[0] == now[0] == Op.WAIT_GROUP):
                return Repair(RepairKind.SLIP, "", "")  # it does something else as well
            if op != now:
                key = operand(op, "engine"), operand(op, "groups"), operand(now, "groups")
                changed.setdefault(key, {})[agent.role] = None
    for (engine, was, left), roles in changed.items() if len(changed) == 1 else ():
        return Repair(RepairKind.DEPTH, ",".join(roles), str(engine), left, was)
    return Repair(RepairKind.SLIP, "", "")


def slip_sentence(kernel: KernelLines, slip: Slip, before: Program, after: Program) -> str:
    """``load first waits for empty with parity 1 instead of 0: `mov.b32 %r1, 1` instead of `mov.b32 %r1, 0` (...)``."""
    repair = slip_repair(before, after)
    if repair.kind is RepairKind.DEPTH:
        return sentence(repair)
    changes = sorted(sync_changes(before, after).changes, key=lambda change: not change.on)  # on barriers first
    effects = list(dict.fromkeys(_places(before, after))) or list(filter(None, map(_effect, changes)))
    lines = [line for line, _ in slip.lines]
    edits = " and ".join(_edit(kernel.text(line), new) for line, new in slip.lines)
    words = {word for line, new in slip.lines for word in {*_WORD.findall(new)} ^ {*_WORD.findall(kernel.text(line))}}
    ranks = [f"{word} is {rank}" for word in sorted(words) if (rank := kernel.rank_in(word))]
    edits += f" ({', '.join(ranks)})" * bool(ranks)
    said = "; ".join(effects[:_MOST_EFFECTS]) or kernel.who(lines[0]) or "the kernel"
    return f"{said}: {edits} ({kernel.places(lines)})"


def _places(before: Program, after: Program) -> Iterator[str]:
    """Which bytes a role copies to, reads or writes first instead of others, where it does so as often."""
    for n, agent in enumerate(before.agents):
        for does, kinds in _USES.items():
            was, now = ([op for op in program.code[n] if op[0] in kinds] for program in (before, after))
            ends = (
                (before.accesses[operand(a, "access")].offset, after.accesses[operand(b, "access")].offset)
                for a, b in zip(was, now, strict=False)
            )
            first = next(((one, other) for one, other in ends if one != other), None) if len(was) == len(now) else None
            if first is not None:
                yield f"{agent.role} {does} the bytes from {first[1]:,} on instead of from {first[0]:,}"


_USES = {"copies to": {Op.TMA_LOAD}, "reads": {Op.READ}, "writes": {Op.WRITE}, "uses": ENGINE_ACCESSES}


def changed_token(
    slip: Slip, kernel: EditableKernel, body: Sequence[Instruction]
) -> ChangedToken | None:  # fmt: skip
    """The number that is another one in an instruction's line, or its comparison, with the places of the source.

    Not those of which other instructions have the number, or a comparison: which of them is written there is not known.
    """
    lines, (number, new), source = kernel.text.split("\n"), slip.lines[0], body[slip.position].source
    was, now = (_WORD.findall(text.partition("//")[0]) for text in (lines[number - 1], new))
    changed = [pair for pair in zip(was, now, strict=False) if pair[0] != pair[1]]
    if len(was) != len(now) or len(changed) != 1 or source is None:
        return None
    strict, same = frozenset(changed[0]) in _STRICT, {number for number, _ in slip.lines}

    def has_another(each: Instruction) -> bool:
        text = lines[each.line - 1].partition("//")[0]
        return each.opcode == "setp" if strict else changed[0][0] in _WORD.findall(text)

    others = (
        each.source.frames[-1]
        for each in body
        if each.source is not None and each.line not in same and has_another(each)
    )
    taken = {(frame.file, frame.line) for frame in others}
    frames = (frame for frame in reversed(source.frames) if frame.line and (frame.file, frame.line) not in taken)
    places = tuple(f"{short_file(frame.file)}:{frame.line},{frame.column}" for frame in frames)
    if strict:
        return ChangedToken("", "", places)
    return ChangedToken(*changed[0], places) if all(map(_NUMBER.fullmatch, changed[0])) else None


def _edit(old: str, new: str) -> str:
    was, now = map(_short, (old, new))
    return f"`{now}` instead of `{was}`"


def _short(text: str) -> str:
    """An instruction without its comment, and with the first two words of a long opcode."""
    words = text.partition("//")[0].rstrip(" ;").split()
    at = 1 if words[0].startswith("@") else 0
    if len(words[at]) > _LONGEST:
        words[at] = ".".join(words[at].split(".")[:2])
    return " ".join(words)


def _effect(change: SyncChange) -> str:
    """What a role does otherwise with the change."""
    on, before, after = (f" on {change.on}" if change.on else ""), change.before, change.after
    match change.kind:
        case SyncChangeKind.COUNT if not change.what and before.times > 0 and after.times > 0:
            return f"initialise {change.on} with a count of {after.times} instead of {before.times}"
        case SyncChangeKind.PARITY if not change.nth:
            return f"{change.role} first waits for parity {after.times} instead of {before.times}{on}"
        case SyncChangeKind.PARITY:
            return f"{change.role} waits for parity {after.times} instead of {before.times}{on}"
        case SyncChangeKind.TIMES if before.times == after.times:
            return f"{change.role}: {after.nbytes:,} bytes instead of {before.nbytes:,} in all with {change.what}{on}"
        case SyncChangeKind.TIMES:
            times = f"{after.times} times instead of {before.times}"
            return f"{change.role}: {change.what}{on} {times}"
        case SyncChangeKind.AMOUNT:
            return f"{change.role}: another number with {change.what}{on}"
        case SyncChangeKind.ORDER:
            return f"{change.role}: {change.what} instead of {change.instead_of}"
        case _:
            return ""
