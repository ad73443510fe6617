"""Corrections of CTAs that talk by words of global memory: of what each does by itself, and of its accesses to words.

In the program that is proved a word is barriers, which the values of one run have made. So a change is carried out on
what the roles record, of which there is another run then, with values of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipesim.model.groups import PARITY_WAITS, SIGNALS
from pipesim.model.program import Program
from pipesim.prove.repair.kinds import Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import roles_of, sites_of

K = RepairKind
_OF_ONE_CLUSTER = frozenset({K.AFTER_INIT, K.CLUSTER_END, K.PEERS, K.MASK, K.OTHER_CTA, K.INIT, K.LAPS, K.STAGES})
_OF_WORDS = frozenset({K.STRONGER, K.MOVE, K.LATER, K.VALUE})


def words_of(program: Program) -> frozenset[str]:
    """The names of the barriers that are words."""
    return frozenset(each.name for n, each in enumerate(program.barriers) if program.is_word(n))


def fits_words(repair: Repair, words: frozenset[str]) -> bool:
    """Whether a change makes sense of CTAs that are no cluster: of a word it is of its accesses as they are; and not
    one by which all CTAs write to the same places one after the other.
    """
    about = {name for each in (repair, *repair.also) for name in each.group.split(",")}
    return repair.kind not in _OF_ONE_CLUSTER and (repair.kind in _OF_WORDS or words.isdisjoint(about))


def of_values(program: Program) -> Iterator[Ranked]:
    """Values that are waited for, or written, one larger or smaller; none of a line that does both, as a barrier."""
    words = words_of(program)
    for role in roles_of(program):
        sites = [site for site in sites_of(program, role) if site.about in words and site.op in PARITY_WAITS | SIGNALS]
        for at in dict.fromkeys(site._replace(about="") for site in sites):
            name = next(site.about for site in sites if site.line == at.line).partition("[")[0]
            if not any(site.line == at.line and site.op != at.op for site in sites):
                yield from ((3, Repair(K.VALUE, role, name, by, at=at)) for by in (1, -1))
