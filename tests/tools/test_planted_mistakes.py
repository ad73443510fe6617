"""The planted mistakes are those that were asked for, and what is offered for them is not worse than it was."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.mistakes.planted import KERNEL_MISTAKES, PROTOCOL_MISTAKES, Planted
from tools.planted_mistakes import JUDGED, changed, offered, word_of

FAMILIES = {"persistent": "CUDA", "scale_": "Gluon", "grouped_": "Triton", "mojo": "Mojo", "flash_fwd": "CuTe"}


def test_thirty_each_in_ten_kernels_of_four_families_and_in_protocols() -> None:
    assert len(KERNEL_MISTAKES) == len(PROTOCOL_MISTAKES) == 30
    assert set(Counter(each.where for each in KERNEL_MISTAKES).values()) == {3}
    assert {kind for name, kind in FAMILIES.items() if any(each.name.startswith(name) for each in KERNEL_MISTAKES)} == {
        *FAMILIES.values()
    }
    for each in (*KERNEL_MISTAKES, *PROTOCOL_MISTAKES):
        if not each.where.startswith("corpus/"):
            new, was = changed(each)
            assert new != was


def test_a_sentence_is_right_if_it_names_all_that_was_meant() -> None:
    planted = next(each for each in PROTOCOL_MISTAKES if each.name == "epilogue_residual: warps, not threads")
    assert word_of(planted, "initialise output.empty with a count of 128 instead of 4", "") == "right"
    assert word_of(planted, "epilogue: put the arrive on output.empty inside elect_one()", "") == "same"
    assert word_of(planted, "initialise output.full with a count of 128 instead of 4", "") == "unjudged"
    assert {word for *_, word, _ in JUDGED} <= {"right", "same", "beside", "misdirects"}


@pytest.mark.long
@pytest.mark.parametrize(("mistakes", "least"), [(KERNEL_MISTAKES, 16), (PROTOCOL_MISTAKES, 22)])
def test_what_is_offered_is_not_worse(mistakes: tuple[Planted, ...], least: int) -> None:
    found = [each for planted in mistakes if (each := offered(planted)) is not None]
    missing = len(mistakes) - len(found)  # kernels or NVRTC that are not on this machine
    assert all(each.verdict == "refuted" for each in found)
    assert sum(each.word in ("right", "same") for each in found) >= least - missing
    assert sum(each.word == "misdirects" for each in found) <= 3
