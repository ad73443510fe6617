"""``assert_verified``: silent for what is proved; else the finding is the message."""

import shutil
from pathlib import Path

import pytest

from pipesim.errors import ProtocolError, UsageError
from pipesim.targets import built_in, find, protocols_of
from pipesim.testing import assert_verified
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.small import two_of_three
from tests.support.paths import ROOT


def test_what_is_right_in_every_schedule_passes() -> None:
    assert_verified(built_in("gemm_sm100"), tiles=2, k_iters=3)
    assert_verified(find("producer_consumer").build({"tiles": 5}))


def test_the_message_is_the_finding() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_verified(BROKEN["consumer_never_arrives"], stages=2, tiles=9)
    said = str(caught.value)
    first, empty, _ = said.split("\n", 2)  # pytest's short summary shows the first line
    assert first.startswith("refuted: consumer_never_arrives: deadlock: ")
    assert empty == ""
    assert "✗ refuted: consumer_never_arrives fails in the schedule above" in said
    assert "✗ deadlock" in said
    assert "producer waits for phase 0 of empty[0]" in said
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.slow
def test_levels_waivers_and_baselines_are_those_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiver of the project, a comment, the baseline, and a finding of the letter; each alone fails without it."""
    shutil.copytree(ROOT / "tests" / "support" / "waived_project", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    rings = {each.name.rpartition(":")[2]: each.build() for each in protocols_of(Path("rings_protocol.py"))}
    for ring in rings.values():
        assert_verified(ring)
    with pytest.raises(AssertionError, match="no_complete"):
        assert_verified(rings["by_the_letter"], fail_on="letter")
    assert_verified(rings["by_the_letter"], fail_on="letter", ignore=["no-complete:empty"])
    (tmp_path / "pyproject.toml").unlink()
    for name in ("in_baseline", "arrives_twice"):
        with pytest.raises(AssertionError, match="deadlock"):
            assert_verified(rings[name])
    assert_verified(rings["in_baseline"], baseline="baseline.json")
    assert_verified(rings["arrives_first"])
    with pytest.raises(UsageError, match=r"there is no baseline none\.json"):
        assert_verified(rings["right"], baseline="none.json")


def test_what_hits_a_limit_is_not_verified() -> None:
    with pytest.raises(AssertionError, match="unknown: neither proved nor refuted"):
        assert_verified(two_of_three, max_states=10)


def test_wrong_parameters_are_not_a_failure_of_the_protocol() -> None:
    from pipesim.errors import ParameterError

    with pytest.raises(ParameterError, match="has no parameter 'tile'"):
        assert_verified(built_in("producer_consumer"), tile=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (right_ring(), "not an object of type Protocol\n  probable cause: the function was called"),
        ("producer_consumer", "not an object of type str\n  try: for a built-in protocol give pipesim.find"),
    ],
)
def test_what_is_no_protocol_is_told(given: object, said: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        assert_verified(given)  # type: ignore[arg-type]
    assert said in str(caught.value)
