"""``pipesim advise``: its report, its exit codes, and its document."""

import pytest

from tests.support.fixture_types import Call


@pytest.mark.slow
def test_json(call: Call) -> None:
    answer = call("advise", "producer_consumer", "-p", "stages=1", "-p", "tiles=24", "--percent", "30", "--json")
    report = answer.json["report"]
    assert (answer.code, report["percent"], report["advice"][0]["change"]["parameter"]) == (0, 30, "stages")
    assert report["said"].startswith("most is gained by")
