"""Names of the launch file go before those of the source, and ``pipesim names`` writes them there."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.cli.main import main
from pipesim.errors import LaunchFileError
from pipesim.ptx.kernel import names_in_force, read_kernel
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.values import GivenNames, NamedBarriers, NamedRole, NamedTile
from tests.support.paths import EXAMPLES

OF_SOURCE = GivenNames(
    (NamedBarriers("s.full", 12288, 3), NamedBarriers("s.empty", 12312, 3)),
    (NamedTile("s.tile", 0, 4096, 3),),
    (NamedRole("load", (0,)), NamedRole("compute", (1, 2))),
)


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    for suffix in ("cu", "ptx", "json"):
        shutil.copy(EXAMPLES / f"row_max.{suffix}", tmp_path)
    return tmp_path / "row_max.ptx"


def test_the_names_in_force_are_written_and_read_again(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert names_in_force(read_kernel(ptx)).names == OF_SOURCE
    assert main(["names", str(ptx), "--write"]) == 0
    assert '{"name": "s.empty", "offset": 12312, "stages": 3}' in capsys.readouterr().out
    ptx.with_suffix(".cu").unlink()  # the launch file has them now
    assert names_in_force(read_kernel(ptx)).names == OF_SOURCE


def test_given_names_go_before_the_source(ptx: Path) -> None:
    file, launch = ptx.with_suffix(".json"), names_in_force(read_kernel(ptx))
    roles = (NamedRole("producer", (0,)), NamedRole("compute", (2,)))
    given = GivenNames((NamedBarriers("free", 12312, 3),), (NamedTile("rows", 0, 4096, 3),), roles)
    file.write_text(launch_json(replace(launch, names=given)))
    program = read_kernel(ptx).program
    assert [f"{each.name}[{each.stage}]" for each in program.barriers][:2] == ["s.full[0]", "free[0]"]
    assert [each.name for each in program.tiles] == ["rows"]
    assert [each.role for each in program.agents] == ["producer", "compute_2", "compute"]


@pytest.mark.parametrize(
    ("names", "fact"),
    [
        ({"barriers": [{"name": "", "offset": 0}]}, "printable"),
        ({"barriers": [{"name": "a", "offset": 0}, {"name": "a", "offset": 8}]}, "same name"),
        ({"tiles": [{"name": "a", "offset": 0, "bytes": 1 << 20, "slots": 2}]}, "ends after"),
        ({"roles": [{"name": "a", "warps": [32]}]}, "whole numbers"),
    ],
)
def test_names_that_cannot_be(names: dict[str, Any], fact: str) -> None:
    text = {"format": "pipesim-launch", "version": 1, "grid": [1], "block": [32], "names": names}
    with pytest.raises(LaunchFileError, match=fact):
        read_launch(json.dumps(text), "k.json")
