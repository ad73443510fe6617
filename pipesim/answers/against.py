"""Two versions of a protocol or kernel compared: their findings by what identifies them, and their synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesim.answers.views.check import AgainstReport, CheckReport, Counterexample
from pipesim.explain.sync_changes import sync_changes
from pipesim.findings.waivers import Identity
from pipesim.model.program import Program


def against(old: CheckReport, new: CheckReport, old_program: Program, new_program: Program) -> AgainstReport:
    """``new`` beside ``old``, each checked by itself.

    A finding is the same in both if its kind, role, barriers and tiles and the text of its line are: a version may have
    another name. Of those that are equal in all of this the first belongs to the first.
    """
    left = list(enumerate(_identities(old.refutations)))
    appeared: list[int] = []
    unchanged: list[tuple[int, int]] = []
    for n, mine in enumerate(_identities(new.refutations)):
        found = next((each for each in left if each[1] == mine), None)
        if found is None:
            appeared.append(n)
        else:
            left.remove(found)
            unchanged.append((n, found[0]))
    gone = tuple(n for n, _ in left)
    return AgainstReport(old, new, tuple(appeared), gone, tuple(unchanged), sync_changes(old_program, new_program))


def _identities(findings: Sequence[Counterexample]) -> list[Identity]:
    found = []
    for shown in findings:
        assert shown.identity is not None, "the triage has looked it up"
        found.append(replace(shown.identity, function="", nth=0))
    return found
