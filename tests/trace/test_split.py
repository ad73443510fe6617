"""The split of configurations: the rule decides, the list says the same, and what is no split is refused."""

import json

import pytest

from pipesim.errors import EvidenceError
from pipesim.trace.split import SplitPart, parse_split

RULE = {"salt": "1", "share": 0, "ignored": ["softmax"], "values": {"ring": {"stages": [3]}}}


def document(**changes: object) -> str:
    whole = {"format": "pipesim-split", "version": 1, "rule": RULE, "configurations": []}
    return json.dumps(whole | changes)


def row(part: str, **params: int) -> dict[str, object]:
    return {"part": part, "kernel": "ring", "ctas": 1, "params": params}


def test_a_value_is_held_out_whole_and_half_of_it_is_sealed() -> None:
    split = parse_split(document())
    held = [split.part_of("ring", {"stages": 3, "tiles": tiles}, 1) for tiles in range(200)]
    assert {*held} == {SplitPart.HELD_OUT, SplitPart.SEALED}
    assert 80 < held.count(SplitPart.SEALED) < 120
    assert {split.part_of("ring", {"stages": 2, "tiles": tiles}, 1) for tiles in range(200)} == {SplitPart.FIT}
    assert split.part_of("other", {"stages": 3}, 1) is SplitPart.FIT


def test_a_list_that_contradicts_its_rule_is_refused() -> None:
    right = parse_split(document()).part_of("ring", {"stages": 3}, 1)
    assert parse_split(document(configurations=[row(right.value, stages=3)])).part_of("ring", {"stages": 3}, 1) is right
    with pytest.raises(EvidenceError, match=r"ring stages=3 ctas=1 is listed as fit, and .* by the rule"):
        parse_split(document(configurations=[row("fit", stages=3)]))


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        document(version=2),
        document(configurations=[row("fit", stages=2) | {"draw": "2"}]),
        document(rule={}),
        document(rule=RULE | {"share": 257}),
        document(rule=RULE | {"values": {"ring": {"stages": ["3"]}}}),
        document(configurations=[row("both", stages=2)]),
        document(configurations=[row("fit", stages=1 << 64)]),
        document(configurations=3),
    ],
)
def test_what_is_no_split_is_an_error_with_its_place(wrong: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        parse_split(wrong, "here.json")
    assert caught.value.place == "here.json"
    assert caught.value.correction == "take the one of the repository: traces/split.json"
