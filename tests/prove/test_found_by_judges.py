"""Programs on which an engine was wrong once, found by ``tools/judge_proof.py``: the seeds, and what was wrong."""

import pytest

from tools.judge_proof import JUDGED

FOUND = [
    # an earlier commit of a thread was taken to have arrived at another CTA because a later one had
    ("rings", 3011030),
    ("corners", 3027916),
    ("corners", 3050264),
    ("corners", 3053889),
    ("corners", 9062553),
    ("corners", 3091242),
    ("corners", 3097905),
    ("operations", 3061323),
    # the schedule of a fault of memory order ended before the fault
    ("orders", 3000222),
    ("overwritten", 3000220),
    # a commit that was pending at an inval arrived in the next life of the barrier
    ("lives", 21002153),
    # a load that no agent waits for was taken for one that is waited for: a number of an agent for that of a barrier
    ("in flight", 31000462),
]


@pytest.mark.parametrize(("family", "seed"), FOUND)
def test_it_is_judged_right_now(family: str, seed: int) -> None:
    assert not any(word.isupper() for word in JUDGED[family].judge(seed))
