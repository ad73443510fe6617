"""``pipesim new --ptx``: a launch file that names what the kernel's synchronisation needs."""

import json
import shutil
from pathlib import Path

import pytest

from pipesim.cli.main import main
from tests.support.paths import EXAMPLES, ROOT
from tests.support.small_ptx import text_of

KERNEL = ROOT / "tests" / "ptx" / "kernels" / "gemm_wgmma_ws-sm_90a.ptx"


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    return Path(shutil.copy(KERNEL, tmp_path / "kernel.ptx"))


@pytest.mark.slow
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


ALL, WHOLE, ONE = "give all that the kernel needs", "int rows, int n)", "which --set n=VALUE gives"


@pytest.mark.parametrize(
    ("head", "asked", "sets", "said"),
    [
        (WHOLE, "--set rows=VALUE --set n=VALUE", [], f"{ALL} with --set rows=VALUE --set n=VALUE"),
        (WHOLE, "--set rows=VALUE --set n=VALUE", ["rows=2"], ONE),  # the only one is said where it is needed
        (
            "int rows, int n, int more)",
            "--set 16=VALUE --set 20=VALUE",
            [],
            f"{ALL} with --set 16=VALUE --set 20=VALUE",
        ),
        ("int, int n)", "--set 16=VALUE --set 20=VALUE", ["16=2"], "which --set 20=VALUE gives"),
    ],
)
def test_words_have_the_names_of_the_source(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    head: str,
    asked: str,
    sets: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # elsewhere than the original source
    ptx, file = Path(shutil.copy(EXAMPLES / "row_max.ptx", tmp_path)), tmp_path / "row_max.json"
    source = (EXAMPLES / "row_max.cu").read_text(encoding="utf-8")
    (tmp_path / "row_max.cu").write_text(source.replace(WHOLE, head), encoding="utf-8")
    assert main(["new", "--ptx", str(ptx), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["next"][0].endswith(f"row_max.ptx --set block=THREADS {asked}")
    right = json.loads((EXAMPLES / "row_max.json").read_text(encoding="utf-8"))
    made = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**right, "parameters": made["parameters"]}), encoding="utf-8")
    assert main(["check", str(ptx), *(word for each in sets for word in ("--set", each))]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert (ALL in shown) is (ALL in said)


def test_it_asks_only_for_what_the_kernel_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, dynamic = tmp_path / "small.ptx", tmp_path / "dynamic.ptx"
    small.write_text(text_of(""), encoding="utf-8")
    dynamic.write_text(
        text_of(" st.shared.u32 [more+64], 1;\n").replace(
            ".visible", ".extern .shared .align 16 .b8 more[];\n.visible"
        ),
        encoding="utf-8",
    )
    assert main(["new", "--ptx", str(small)]) == 0
    said = capsys.readouterr().out
    assert "tensor maps" not in said
    assert "dynamic shared memory" not in said
    assert main(["new", "--ptx", str(dynamic)]) == 0
    assert "dynamic_shared_bytes: it is 0 in the file" in capsys.readouterr().out
    assert main(["check", str(dynamic)]) == 2
    assert 'try: write what the kernel is launched with, such as "block": [384, 1, 1]' in capsys.readouterr().err
    assert main(["check", str(dynamic), "--set", "block=32"]) == 2  # which stands for the null in the file
    assert "block" not in capsys.readouterr().err
    made = dynamic.with_suffix(".json")
    made.write_text(made.read_text(encoding="utf-8").replace('"block": null', '"block": [32]'), encoding="utf-8")
    assert main(["check", str(dynamic)]) == 2
    assert "or give the dynamic_shared_bytes of the launch in the launch file" in capsys.readouterr().err


def test_what_it_cannot_write(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--ptx", str(ptx), "--entry", "other*"]) == 2
    assert "none is called other*" in capsys.readouterr().err
    assert main(["new"]) == 2
    assert "arguments are required: FILE" in capsys.readouterr().err
    assert main(["new", "--entry", "k", "x.py"]) == 2
    ptx.with_suffix(".json").write_text("mine", encoding="utf-8")
    assert main(["new", "--ptx", str(ptx)]) == 2
    assert ptx.with_suffix(".json").read_text(encoding="utf-8") == "mine"
