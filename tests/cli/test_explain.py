"""``pipesim explain``: the list, one kind, its example as a file, JSON, completion; and findings that name it."""

from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.findings.catalog import BY_NAME
from pipesim.model.coverage import Assumption


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def test_the_list_has_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "explain").splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert listed == [*BY_NAME, *(each.value for each in Assumption)]


@pytest.mark.parametrize("spelling", ["over_arrival", "over-arrival", "OVER_ARRIVAL"])
def test_a_kind_is_found_however_it_is_spelt(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "explain", spelling).startswith("over_arrival · more arrivals than the phase has pending")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["over_arrival", "read_not_fenced", "unscoped_arrive"])
def test_the_example_is_a_file_that_can_be_checked(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page says it: refuted, or proved with the warning; with right=1 proved."""
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_text(printed(capsys, "explain", name, "--example"), encoding="utf-8")
    kind = BY_NAME[name]
    wrong = printed(capsys, "check", f"{name}.py", *kind.switches, code=0 if kind.warns else 1)
    assert (f"see: pipesim explain {name}" in wrong) is not kind.warns
    assert "✓ proved" in printed(capsys, "check", f"{name}.py", *kind.switches, "-p", "right=1")
