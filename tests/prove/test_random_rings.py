"""The engines of the proof against each other on random programs; ``tools/judge_proof.py`` does it by the thousand."""

from collections import Counter

import pytest

from tests.support.lanes import long_after, slow_but
from tools import judge_proof


@pytest.mark.parametrize("first", long_after(1, slow_but([], range(0, 240, 40))))
def test_no_engine_contradicts_the_plain_search(first: int) -> None:
    said = [judge_proof.judge(seed) for seed in range(first, first + 40)]
    assert [(first + n, words) for n, words in enumerate(said) if any(word.isupper() for word in words)] == []
    seen = Counter(word for words in said for word in words)
    assert seen["right"] >= 20, "half of them are not mutated"
    assert seen["wrong"] >= 10
    assert seen["not judged"] == 0
    assert seen["proved by certificate"] >= seen["right"] // 2, "it follows no branch and no wait by state"
    assert seen["refuted by schedule"] >= 9 * seen["wrong"] // 10


def test_the_judge_sees_a_wrong_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a certificate that doubts nothing is caught."""
    monkeypatch.setattr("pipesim.prove.certificate.certificate.Certificate.doubts", ())
    assert "CONTRADICTION" in judge_proof.judge(6)


def test_the_judge_sees_a_reduction_that_leaves_too_much_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: following one process as if no other could notice it is caught."""
    monkeypatch.setattr("pipesim.prove.search.persistent.Here.interfering_processes", lambda *_: [])
    assert "THE REDUCED SEARCH SEES OTHER THINGS" in judge_proof.judge(6)


def test_a_program_with_too_many_states_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_proof, "MOST_STATES", 1)
    monkeypatch.setattr(judge_proof, "MOST_REDUCED", 1)
    assert judge_proof.judge(0) == ["too many states for the plain search", "not judged"]
