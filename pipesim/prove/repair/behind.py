"""What else is wrong with a program, beside a finding for which there is no correction that proves it.

Either the finding hides it, as a hang does all that would come later: then the program is looked at again with a change
that removes the finding. Or it is of the same kind, and at other lines.
"""

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check, with_usual
from pipesim.prove.counterexample.confirm import confirm
from pipesim.prove.memory_order.may_fail import memory_order, memory_refutations_by_line
from pipesim.prove.refutation import Doubt, Refutation, finding_key, is_unsure, lines_of, sides_of
from pipesim.prove.repair.correction import MOST_ASKED, Correction, candidates, corrections
from pipesim.prove.repair.edits import apply_repair, place_of
from pipesim.prove.repair.kinds import Repair
from pipesim.prove.repair.wording.sentences import sentence

MOST_CHANGES = 24  #: that are looked at for one finding
MOST_PAIRS = 2  #: of these, changes for which a second one is looked for
MOST_OPERATIONS = 8_000  #: of all programs that are looked at for one finding, and for each second change
MOST_DOUBTS = 24  #: that are looked into for findings at other lines
MOST_ELSEWHERE = 6  #: findings at other lines
_CONTENTS = (FaultKind.UNINITIALISED_READ, FaultKind.WRONG_ITEM)  #: of a slot


@dataclass(frozen=True)
class Hidden:
    """``refuted`` is what is left in ``program``, which has the change ``first``; with one of ``second`` as well
    all is proved.
    """

    first: Correction
    program: Program
    refuted: Refutation
    second: tuple[Correction, ...]


def hidden_by(program: Program, refuted: Refutation, asked: Program, unit: Callable[[int, int], None]) -> Hidden | None:
    """What a finding hides that no single change corrects: the first two changes with which the program is proved.

    The first removes the finding and leaves another one, which the second corrects; neither suffices alone. None if no
    two are found within the bounds of this file.
    """
    size, pairs = sum(map(len, program.code)), 0
    if sum(map(len, asked.code)) > MOST_ASKED:
        return None
    tried: set[object] = set()
    for _, repair in candidates(program, refuted, asked):
        changed = apply_repair(program, repair)
        if repair.meets or changed is None or changed.code in tried:
            continue
        if pairs >= MOST_PAIRS or len(tried) >= min(MOST_CHANGES, MOST_OPERATIONS // max(size, 1)):
            break
        unit(len(tried), 0)
        tried.add(changed.code)
        found, large = check(changed, max_states=1), apply_repair(asked, repair)
        gone = not any(finding_key(changed, each) == finding_key(program, refuted) for each in found.refutations)
        if found.verdict is not Verdict.REFUTED or not gone or large is None:
            continue
        pairs += 1
        left = found.refutations[0]
        second = corrections(changed, left, large, unit, MOST_OPERATIONS)
        if second and _where(second[0].repair) != _where(repair) and not _suffices(program, second[0]):
            return Hidden(Correction(repair, sentence(repair), place_of(program, repair)), changed, left, second)
    return None


def _where(repair: Repair) -> str:
    """What a change is about: two changes of one group of barriers are two parts of one correction, or undo a slip by
    another one.
    """
    return repair.group or repair.role


def _suffices(program: Program, found: Correction) -> bool:
    alone = apply_repair(program, found.repair)
    return alone is not None and check(alone, max_states=1).verdict is Verdict.PROVED


def elsewhere(
    program: Program, doubts: Collection[Doubt], known: Collection[Refutation], unit: Callable[[int, int], None]
) -> tuple[Refutation, ...]:
    """Findings at other lines than those that are known, each pair of lines once; also in a schedule that continues
    after a known fault of the memory, which changes no barrier. What is read after a race may be its effect.
    """
    seen = {finding_key(program, each) for each in known}
    found: list[Refutation] = []

    raced = False

    def passes(fault: Fault) -> bool:
        nonlocal raced
        at = set(sides_of(program, fault))
        same = any(each.kind is fault.kind and at == set(lines_of(program, each)) for each in (*known, *found))
        raced |= same and fault.kind is FaultKind.RACE
        return same and fault.kind in (FaultKind.RACE, *_CONTENTS)

    for each in memory_refutations_by_line(program, memory_order(program), MOST_ELSEWHERE + len(seen)):
        _add(program, each, seen, found)
    for n, doubt in enumerate(doubts):
        if n >= MOST_DOUBTS or len(found) >= MOST_ELSEWHERE:
            break
        unit(n, len(doubts))
        raced = False
        shown = confirm(program, doubt, passes)
        if shown is not None and not (raced and shown.kind in _CONTENTS):
            _add(program, shown, seen, found)
    return with_usual(program, found[:MOST_ELSEWHERE])


def _add(program: Program, shown: Refutation, seen: set[Hashable], found: list[Refutation]) -> None:
    key = finding_key(program, shown)
    if key not in seen and not is_unsure(program, shown.fault):
        seen.add(key)
        found.append(shown)
