"""The findings of all CTAs of a launch, each once, with the kinds of CTAs that it is in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from pipesim.answers.every_cta.launches import OtherLaunches, Place
from pipesim.answers.views.check import Counterexample
from pipesim.model.program import Program
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.behind import finding_key

Keyed = tuple[Hashable, Counterexample]  #: a finding, and what is equal for the same finding in other CTAs


class FindingsOfCtas:
    """In which CTAs which findings are. They are equal if they are of one kind, at the same lines."""

    def __init__(self, others: OtherLaunches) -> None:
        self._others = others
        self._places: dict[Hashable, list[Place]] = {}

    def add(self, program: Program, found: Iterable[Refutation]) -> bool:
        """Those of the last of the launches; whether one of them is new."""
        keys = {finding_key(program, each) for each in found}
        new = not keys <= self._places.keys()
        for key in keys:
            self._places.setdefault(key, []).append(self._others.place)
        return new

    def merged(self, found: Iterable[tuple[Iterable[Keyed], Place]]) -> Iterator[Counterexample]:
        """The findings at several places of the launch, without those that an earlier place has."""
        known: set[Hashable] = set()
        for shown, place in found:
            mine = list(shown)
            settings = self._others.settings_of(place)
            for key, each in mine:
                if key not in known:
                    at = self._places.get(key, [place])
                    yield replace(each, kinds=self._others.kinds_at(at), settings=settings)
            known |= {key for key, _ in mine}
