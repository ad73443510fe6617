"""The same correction of roles that share the author's code, and on groups of barriers whose names differ in a number.

What is wrong in one of them is wrong in all: ``softmax0`` arrives on ``C0`` where ``softmax1`` arrives on ``C1``, and a
role that serves both waits for both.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from pipesim.model.groups import PARITY_WAITS
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import families, members

_NUMBER = re.compile(r"\d+")
_OF_A_LINE = frozenset({RepairKind.SHIFT, RepairKind.STAGES})
_OF_ONE = frozenset({RepairKind.PHASES, RepairKind.STAGES})
_MOST_ABOUTS = 4  #: tiles or groups that one line of a source is about
_Renaming = Callable[[str], str]


class Siblings:
    """The roles of a program that share code, and its groups of barriers whose names differ in a number."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._roles = families(program)
        self._names = {*(each.name for each in program.barriers), *(each.name for each in program.tiles)}
        self._groups: dict[str, list[str]] = {}
        for name in dict.fromkeys(barrier.name for barrier in program.barriers):
            self._groups.setdefault(_NUMBER.sub("#", name), []).append(name)
        self._sharing: dict[SourceInstruction, list[str]] = {}  # who executes a line, where these are several roles
        for role in dict.fromkeys(each.role for each in program.agents):
            sites = (site for agent in members(program, role) for site in program.instructions[agent] if site.line)
            for site in dict.fromkeys(sites):
                self._sharing.setdefault(site, []).append(role)
        self._lines: dict[tuple[str, int, str], list[SourceInstruction]] = {}
        for site, roles in self._sharing.items():
            for role in roles:
                self._lines.setdefault((role, site.op, site.line), []).append(site)
        self._told: dict[tuple[str, str], dict[str, str]] = {}

    def of_line(self, repair: Repair) -> Repair | None:
        """The correction at all such instructions of its line, on other tiles or barriers; None for all but the first,
        and where a line is many instructions.
        """
        if repair.kind not in _OF_A_LINE or not repair.at.line or repair.also:
            return None
        line = self._lines.get((repair.role.partition(",")[0], repair.at.op, repair.at.line), [])
        if not 1 < len(line) <= _MOST_ABOUTS or repair.at != line[0]:
            return None
        others = (replace(repair, at=site, group=site.about) for site in line[1:])
        return replace(repair, also=tuple(others)) if repair.group == repair.at.about else None

    def together(self, repair: Repair) -> Repair | None:
        """The correction in all siblings of its role, each on its own barriers; of a role without siblings in all that
        execute the line, or on all groups that are named alike. None if there is no other, and for all but the first.
        """
        if repair.also:
            return None
        roles = self._roles.get(repair.role, "").split(",")
        sharing = self._sharing.get(repair.at, []) if repair.at.op else self._waiting(repair)
        if roles == [""] and repair.role in sharing[:1] and len(sharing) > 1:
            return replace(repair, role=",".join(sharing))
        if roles != [""]:
            if repair.role != roles[0]:
                return None
            others = [replace(_renamed(repair, self._of_role(roles[0], role)), role=role) for role in roles[1:]]
            same = all(replace(other, role=repair.role) == repair for other in others)
            return replace(repair, role=",".join(roles)) if same else replace(repair, also=tuple(others))
        groups = self._groups.get(_NUMBER.sub("#", repair.group), [])
        if len(groups) < 2 or repair.group != groups[0]:
            return None
        renamings = (self._exchanging(groups[0], group) for group in groups[1:])
        return replace(repair, also=tuple(_renamed(repair, renaming) for renaming in renamings))

    def _waiting(self, repair: Repair) -> list[str]:
        """Who executes all waits of a role for a group, which another parity or stage concerns."""
        if repair.kind not in _OF_ONE:
            return []
        waits = [(s, who) for s, who in self._sharing.items() if s.op in PARITY_WAITS and s.about == repair.group]
        return next((who for _, who in waits if all(who == other for _, other in waits if repair.role in other)), [])

    def is_shared(self, repair: Repair) -> bool:
        """Whether others execute what a correction changes in one role alone, but for the parities of its waits."""
        alone = repair.kind in _OF_ONE and not repair.at.op
        return not alone and "," not in repair.role and repair.role in self._roles

    def _of_role(self, role: str, other: str) -> _Renaming:
        """What is called so in a role as the other one calls it: as its code tells, else by its number."""
        if (role, other) not in self._told:
            mine, theirs = self._abouts(role), self._abouts(other)
            alike = [(mine[key], theirs[key]) for key in mine if key in theirs]
            self._told[role, other] = {one: two for one, two in alike if len({b for a, b in alike if a == one}) == 1}
        told, by_number = self._told[role, other], self._exchanging(role, other)
        return lambda name: told[name] if name in told else by_number(name)

    def _abouts(self, role: str) -> dict[tuple[int, str], str]:
        """What each line of a role is about, where that is one barrier or tile."""
        found: dict[tuple[int, str], set[str]] = {}
        for agent in members(self._program, role):
            for site in self._program.instructions[agent]:
                if site.about in self._names:
                    found.setdefault((site.op, site.line), set()).add(site.about)
        return {key: abouts.pop() for key, abouts in found.items() if len(abouts) == 1}

    def _exchanging(self, one: str, other: str) -> _Renaming:
        """The number in which two names differ exchanged, where that makes the name of a barrier or tile."""
        pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
        a, b = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))

        def renamed(name: str) -> str:
            new = _NUMBER.sub(lambda found: {a: b, b: a}.get(found[0], found[0]), name)
            return new if new in self._names else name

        return renamed


def _renamed(repair: Repair, renaming: _Renaming) -> Repair:
    def of_site(site: SourceInstruction) -> SourceInstruction:
        return site._replace(about=renaming(site.about))

    group = ",".join(map(renaming, repair.group.split(",")))
    return replace(repair, group=group, at=of_site(repair.at), past=of_site(repair.past))
