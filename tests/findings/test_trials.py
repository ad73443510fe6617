"""Rules on trial: what is said is what is stored, and where it is said."""

import json

import pytest

from hwkernels.trials.run import Trial
from pipesim.answers.kinds import kind_named
from pipesim.findings.catalog import BY_NAME
from pipesim.findings.kind import Certainty
from pipesim.findings.trials import _TRIAL_OF, TRIED, never_seen
from pipesim.model.coverage import Assumption
from tests.support.paths import TRACES


def test_the_numbers_are_those_of_the_device() -> None:
    stored = json.loads((TRACES / "h200" / "trials.json").read_text())["trials"]
    found = {each["trial"]: each for each in stored}
    for name, tried in TRIED.items():
        (each,) = tried
        assert (each.device, each.tries) == (found[name]["device"], found[name]["rule"]["tries"])
        assert found[name]["driver"].startswith(each.driver)
        assert found[name]["rule"]["seen"] == 0
    for each in stored:
        assert each["control"]["seen"] > 0, each["trial"]  # what cannot be seen would prove nothing
    assert {each.name.lower() for each in Trial} >= {*found, *_TRIAL_OF.values()}


def test_each_name_is_a_rule_of_the_letter_or_an_assumption() -> None:
    for name in _TRIAL_OF:
        kind = BY_NAME.get(name)
        assert kind is None or kind.certainty is Certainty.LETTER
        assert kind is not None or Assumption(name)


def test_it_is_said_in_words() -> None:
    assert never_seen("proxies") == "never seen in 5.9 × 10⁹ tries on NVIDIA H200"
    assert never_seen("race") == never_seen("commits") == ""


@pytest.mark.parametrize("name", ["no_complete", "lanes", "init"])
def test_explain_says_it(name: str) -> None:
    report = kind_named(name)
    said = report.measured if hasattr(report, "measured") else report.shows
    assert said.endswith(f"On trial it was {never_seen(name)}.")
