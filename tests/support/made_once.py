"""The flat programs of ready-made protocols, kept from one test to the next: many tests make the same ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target, built_in

MOST = 600  #: programs that are kept at a time
_KEPT: dict[tuple[object, ...], Program] = {}  #: by function, parameters and whether it was recorded twice


@contextmanager
def made_once() -> Iterator[None]:
    """Inside, a ready-made protocol with the same parameters is recorded once. What is refused is refused again.

    Not where a test changes what a protocol does by replacing something that its function calls: programs cannot be
    changed, their makers can. That every role was recorded twice, to see that it is deterministic, is not forgotten: a
    program for which that was not asked is not given to one who asks.
    """
    functions = frozenset(map(built_in, BUILT_IN))
    make = Target._flatten

    def made(self: Target, given: dict[str, int], *, twice: bool, most: int | None) -> Program:
        plain = self.maker is None and self.function in functions and most is None
        if not plain or any(type(value) is not int for value in given.values()):
            return make(self, given, twice=twice, most=most)
        key = (self.function, *sorted((self.defaults | given).items()))
        for asked in (True,) if twice else (True, False):
            if (*key, asked) in _KEPT:
                return _KEPT[*key, asked]
        program = make(self, given, twice=twice, most=most)
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        _KEPT[*key, twice] = program
        return program

    with mock.patch.object(Target, "_flatten", made):
        yield
