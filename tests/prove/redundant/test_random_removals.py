"""Removals of random programs against a plain search; ``judge_proof.py`` does it at length."""

from collections import Counter

import pytest

from pipesim.prove.redundant.kept_proof import KeptProof
from tests.support.lanes import long_after, slow_after
from tools import judge_redundant


def judged(first: int, count: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in range(first, first + count):
        total += judge_redundant.judge(seed)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("first", "count"), long_after(2, slow_after(1, [(0, 2), (500, 5), (505, 12), (0, 8)])))
def test_no_removal_that_is_offered_breaks_its_program(first: int, count: int) -> None:
    seen = judged(first, count)
    assert not [word for word in seen if "WRONG" in word], f"seeds {first} to {first + count - 1}"
    assert seen["offered"] > count // 2
    assert seen["breaks"] > count // 2, "removals that break are tried, and kept back"
    assert seen["together: offered"] >= count // 4


@pytest.mark.slow
def test_the_judge_sees_what_is_offered_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: were everything offered, the search would contradict."""
    monkeypatch.setattr(KeptProof, "still_holds", lambda *_: True)
    monkeypatch.setattr(KeptProof, "adds_nothing", lambda *_: True)
    assert judged(0, 4)["WRONG"] > 0
