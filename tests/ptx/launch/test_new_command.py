"""``pipesim new --ptx``: a launch file that names what the kernel's synchronisation needs."""

import json
import shutil
from pathlib import Path

import pytest

from pipesim.cli.main import main
from tests.support.paths import ROOT

KERNEL = ROOT / "tests" / "ptx" / "kernels" / "gemm_wgmma_ws-sm_90a.ptx"


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    return Path(shutil.copy(KERNEL, tmp_path / "kernel.ptx"))


def test_the_file_that_it_writes_is_filled_in_and_checked(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--ptx", str(ptx), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["function"] == "gemm_wgmma_ws"
    launch = json.loads(Path(made["file"]).read_text(encoding="utf-8"))
    right = json.loads(KERNEL.with_suffix(".json").read_text(encoding="utf-8"))
    assert [launch[name] for name in ("entry", "block", "cluster", "registers_per_thread")] == [
        right[name] for name in ("entry", "block", "cluster", "registers_per_thread")
    ]
    assert "--set 536=VALUE --set 540=VALUE" in made["next"][0]
    launch |= {"dynamic_shared_bytes": right["dynamic_shared_bytes"], "grid": right["grid"]}
    ptx.with_suffix(".json").write_text(json.dumps(launch), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(ptx), "--quick", "--set", "536=1024", "--set", "540=1024"]) in (0, 3)
    said = capsys.readouterr().out
    assert "536" not in said


def test_what_it_cannot_write(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--ptx", str(ptx), "--entry", "other"]) == 2
    assert "has no kernel other" in capsys.readouterr().err
    assert main(["new"]) == 2
    assert "arguments are required: FILE" in capsys.readouterr().err
    assert main(["new", "--entry", "k", "x.py"]) == 2
    ptx.with_suffix(".json").write_text("mine", encoding="utf-8")
    assert main(["new", "--ptx", str(ptx)]) == 2
    assert ptx.with_suffix(".json").read_text(encoding="utf-8") == "mine"
