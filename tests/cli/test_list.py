"""``pipesim list``: a line for each protocol; all about one."""

import pytest
from rich.cells import cell_len

from pipesim.protocols.catalog import BUILT_IN
from tests.support.fixture_types import Call


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_one_line_a_protocol(call: Call, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    answer = call("list")
    assert answer.code == 0
    lines, _, rest = answer.out.partition("\n\n")
    assert [line.split()[0] for line in lines.splitlines()] == sorted(BUILT_IN)
    assert max(map(cell_len, answer.out.splitlines())) <= int(width)
    assert "pipesim list NAME" in rest
    assert ("…" in lines) == (width != "200")


def test_all_about_one(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = call("list", "producer_consumer")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "producer_consumer",
        "  One load warp fills a ring of tiles with bulk copies, consumer warps read each",
        "  tile and work on it.",
        "  roles     1 producer warp · 2 consumer warps",
        "  barriers  full[4] count 1 · empty[4] count 2",
        "  -p        stages=4 tiles=64 tile_bytes=16384 consumer_warps=2 work=600",
        "            arrive_lanes=1",
        answer.out.splitlines()[-1],
    ]
    traces = call("list", "producer_consumer", "--json").json["report"]["traces"]
    assert [trace["device"] for trace in traces] == ["NVIDIA H100 80GB HBM3", "NVIDIA H200"]
    assert all(trace["recordings"] > 1 and trace["usual"] for trace in traces)
    said = " · ".join(f"{trace['device']}: {trace['recordings']}" for trace in traces)
    assert answer.out.splitlines()[-1] == f"  traces    {said}"
