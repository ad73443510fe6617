"""How many tests each lane has: ``python tools/lanes.py``.

Collects the tests once: the fast lane is what ``pytest`` selects, the slow one what it leaves out. Prints a row for
each area. Exit code 1 if a test is in no lane or in two, or if an area has nothing in the fast lane.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


class _Collected:
    """A plugin that keeps the names of the tests that there are, that are selected and that are left out."""

    def __init__(self) -> None:
        self.both: list[str] = []
        self.fast: list[str] = []
        self.slow: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.both = [item.nodeid for item in items]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.slow += [item.nodeid for item in items]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.fast = [item.nodeid for item in session.items]


def collected() -> _Collected:
    """The tests of this checkout. RuntimeError if they cannot be collected."""
    os.chdir(ROOT)
    plugin, said = _Collected(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-qq", "--numprocesses=0"], plugins=[plugin])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest ends with {code!r}: {said.getvalue()[-2000:]}")
    return plugin


def area(name: str) -> str:
    """The folder below ``tests`` that a test is in, "." for the files beside them."""
    parts = name.partition("::")[0].split("/")[1:-1]
    return parts[0] if parts else "."


def complaints(fast: Iterable[str], slow: Iterable[str], both: Iterable[str]) -> list[str]:
    """What is wrong with the lanes."""
    lanes, every = Counter([*fast, *slow]), Counter(both)
    found = [f"in no lane: {name}" for name in (every - lanes)]
    found += [f"in both lanes, or there twice: {name}" for name in (lanes - every)]
    idle = {area(name) for name in every} - {area(name) for name in fast}
    return [*found, *(f"nothing in the fast lane: tests/{name}" for name in sorted(idle))]


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 if the lanes are not a partition of the tests."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    found = collected()
    rows = [Counter(map(area, names)) for names in (found.fast, found.slow, found.both)]
    print(f"{'area':12}{'fast':>8}{'slow':>8}{'both':>8}")
    for name in sorted(rows[2]):
        print(f"{name:12}", *(f"{row[name]:8,}" for row in rows), sep="")
    print(f"{'all':12}", *(f"{row.total():8,}" for row in rows), sep="")
    wrong = complaints(found.fast, found.slow, found.both)
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
