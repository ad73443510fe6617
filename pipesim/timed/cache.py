"""What is computed once for a program and cached for as long as the program exists."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from pipesim.model.program import Program

Found = TypeVar("Found")


def cached(compute: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """``compute``, called once for each program; by identity, as a program is too long to be compared.

    Its result must not refer to the program, which would then never be freed.
    """
    known: dict[int, Found] = {}

    @wraps(compute)
    def lookup(program: Program) -> Found:
        number = id(program)
        if number not in known:
            known[number] = compute(program)
            weakref.finalize(program, known.pop, number).atexit = False
        return known[number]

    return lookup
