"""The flat programs of ready-made protocols, kept from one test to the next: many tests make the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target

MOST = 600  #: programs that are kept at a time


@contextmanager
def made_once() -> Iterator[None]:
    """Inside, a ready-made protocol with the same parameters is recorded once. What is refused is refused again."""
    kept: dict[tuple[object, ...], Program] = {}
    functions = frozenset(BUILT_IN.values())
    make = Target._flatten

    def made(self: Target, given: dict[str, int], *, twice: bool, most: int | None) -> Program:
        plain = self.maker is None and self.function in functions and most is None
        if not plain or any(type(value) is not int for value in given.values()):
            return make(self, given, twice=twice, most=most)
        key = (self.function, *sorted((self.defaults | given).items()))
        for asked in (True,) if twice else (True, False):
            if (*key, asked) in kept:
                return kept[*key, asked]
        program = make(self, given, twice=twice, most=most)
        if len(kept) >= MOST:
            kept.clear()
        kept[*key, twice] = program
        return program

    with mock.patch.object(Target, "_flatten", made):
        yield
