"""How many tests each lane has: ``python tools/lanes.py``.

Collects the fast lane, the slow lane and both, and prints a row for each area. Exit code 1 if a test is in no lane or
in two, or if an area has nothing in the fast lane.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAST, SLOW, BOTH = "not slow", "slow", "slow or not slow"


class _Collected:
    """A plugin that keeps the names of the tests that a lane has."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = [item.nodeid for item in session.items]


def collected(lane: str) -> list[str]:
    """The names of the tests that ``pytest -m LANE`` runs. RuntimeError if they cannot be collected."""
    os.chdir(ROOT)
    plugin, said = _Collected(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-qq", "--numprocesses=0", "-m", lane], plugins=[plugin])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest -m {lane!r} ends with {code!r}: {said.getvalue()[-2000:]}")
    return plugin.names


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
    with get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        fast, slow, both = pool.map(collected, (FAST, SLOW, BOTH), chunksize=1)
    rows = [Counter(map(area, names)) for names in (fast, slow, both)]
    print(f"{'area':12}{'fast':>8}{'slow':>8}{'both':>8}")
    for name in sorted(rows[2]):
        print(f"{name:12}", *(f"{row[name]:8,}" for row in rows), sep="")
    print(f"{'all':12}", *(f"{row.total():8,}" for row in rows), sep="")
    wrong = complaints(fast, slow, both)
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
