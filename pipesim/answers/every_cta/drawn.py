"""What the CTAs of a launch consist of, where not all do the same."""

from __future__ import annotations

from dataclasses import replace

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.explain.anatomy.parts import Anatomy, CtaKindParts, Extent
from pipesim.explain.anatomy.read import anatomy, differences
from pipesim.model.program import Program
from pipesim.targets import Target


def anatomies(target: Target, program: Program, rank: int) -> tuple[Anatomy, ...]:
    """The CTA of this rank of a cluster of the target's ``program``, then one of each kind that has other parts.

    The first of them names all kinds, if there are several.
    """
    shown = anatomy(program, rank)
    if target.kernel is None or target.kernel.kernel.launch.cta is not None:
        return (shown,)
    every = EveryCta(target.kernel)
    mine = [shown, *(anatomy(made.program, rank) for made in every)]
    other = [differences(_without_numbers(shown), _without_numbers(each)) for each in mine]
    kinds = [
        CtaKindParts(each.cta, each.clusters * program.ctas, each.differs, each.line, each.contents, names)
        for each, names in zip(every.kinds, other, strict=True)
    ]
    found = {names: each for each, names in zip(reversed(mine), reversed(other), strict=True)}
    first = replace(shown, kinds=tuple(kinds) if kinds[1:] else ())
    return (first, *(each for names, each in reversed(found.items()) if names))


def _without_numbers(part: Anatomy) -> Anatomy:
    """Without how often something is done, which loops decide."""
    groups = [
        replace(
            group,
            signals=tuple(replace(each, in_all=0, each_phase=None) for each in group.signals),
            waits=tuple(replace(each, in_all=0) for each in group.waits),
            sent=tuple(replace(each, in_all=0, each_phase=None) for each in group.sent),
        )
        for group in part.groups
    ]
    meetings = [
        replace(meeting, members=tuple(replace(each, times=Extent(0, 0)) for each in meeting.members))
        for meeting in part.meetings
    ]
    return replace(part, groups=tuple(groups), meetings=tuple(meetings))
