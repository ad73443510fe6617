"""Corrections of CTAs that talk by words of global memory: of what each does by itself, and of its accesses to words.

In the program that is proved a word is barriers, which the values of one run have made. So a change is carried out on
what the roles record, of which there is another run then, with values of its own.
"""

from __future__ import annotations

from pipesim.model.program import Program
from pipesim.prove.repair.kinds import Repair, RepairKind

K = RepairKind
_OF_ONE_CLUSTER = frozenset({K.AFTER_INIT, K.CLUSTER_END, K.PEERS, K.MASK, K.OTHER_CTA, K.INIT, K.LAPS, K.STAGES})


def words_of(program: Program) -> frozenset[str]:
    """The names of the barriers that are words."""
    return frozenset(each.name for n, each in enumerate(program.barriers) if program.is_word(n))


def fits_words(repair: Repair, words: frozenset[str]) -> bool:
    """Whether a change makes sense of CTAs that are no cluster: of a word it is of its accesses as they are; and not
    one by which all CTAs write to the same places one after the other.
    """
    about = {name for each in (repair, *repair.also) for name in each.group.split(",")}
    return (repair.kind not in _OF_ONE_CLUSTER or (repair.is_on_slot and bool(repair.at.line))) and (
        repair.kind is K.STRONGER or words.isdisjoint(about)
    )
