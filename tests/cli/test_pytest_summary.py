"""The first line of what ``assert_verified`` raises, which is what pytest's short summary shows: the verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipesim.protocols.broken import BROKEN
from pipesim.targets import find
from pipesim.testing import assert_verified

ROOT = Path(__file__).resolve().parents[2]


def test_the_message_begins_with_the_verdict() -> None:
    ring = find(str(ROOT / "docs" / "examples" / "ring_two.py")).function
    assert ring is not None
    with pytest.raises(AssertionError) as caught:
        assert_verified(ring, tiles=9)
    first, empty, report = str(caught.value).split("\n", 2)
    assert first.startswith("refuted: ring: deadlock: ")
    assert first.endswith("(smallest: tiles 3)")
    assert empty == ""
    assert report.startswith("ring   stages 2 · tiles 9")


def test_of_what_hit_a_limit() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_verified(BROKEN["consumer_arrives_twice"], stages=3, tiles=3, max_states=10)
    first = str(caught.value).partition("\n")[0]
    assert first.startswith("unknown: consumer_arrives_twice: ")
    assert first.count("unknown") == 1


@pytest.mark.slow
def test_in_the_short_summary_of_pytest(tmp_path: Path) -> None:
    file = tmp_path / "test_ring.py"
    file.write_text(
        "from pipesim.protocols.broken import BROKEN\nfrom pipesim.testing import assert_verified\n\n"
        "def test_ring():\n    assert_verified(BROKEN['consumer_never_arrives'], stages=2, tiles=9)\n",
        encoding="utf-8",
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(file)]
    env = {**os.environ, "COLUMNS": "160"}
    answer = subprocess.run(words, env=env, cwd=tmp_path, check=False, capture_output=True, text=True, encoding="utf-8")
    assert answer.returncode == 1
    (summary,) = (line for line in answer.stdout.splitlines() if line.startswith("FAILED "))
    assert "::test_ring - AssertionError: refuted: consumer_never_arrives: deadlock: " in summary
