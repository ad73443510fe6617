"""The engines of the proof against each other on random programs; ``tools/judge_proof.py`` does it by the thousand."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGE = runpy.run_path(str(ROOT / "tools" / "judge_proof.py"), run_name="judge_proof")


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_no_engine_contradicts_the_plain_search(first: int) -> None:
    said = [JUDGE["judge"](seed) for seed in range(first, first + 50)]
    assert [(first + n, words) for n, words in enumerate(said) if any(word.isupper() for word in words)] == []
    seen = Counter(word for words in said for word in words)
    assert seen["right"] >= 20, "half of them are right"
    assert seen["wrong"] >= 10
    assert seen["proved by certificate"] >= 9 * seen["right"] // 10
    assert seen["refuted by schedule"] >= 9 * seen["wrong"] // 10


def test_the_judge_sees_a_wrong_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a certificate that doubts nothing is caught."""
    monkeypatch.setattr("pipesim.prove.certificate.Certificate.doubts", ())
    words = [word for seed in range(60) for word in JUDGE["judge"](seed)]
    assert "CONTRADICTION" in words
