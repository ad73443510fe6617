"""What the GPU said of recording, packed there, put in its place here, and made tables of a page."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools import recording_doc as tool
from tools import recording_runs as runs

RING = {"kernel": tool.RINGS, "name": "4 KB: consumer", "encoding": "positional", "aim": 8.0,
        "percent": {"median": 6.5},
        "cycles_a_record": {"median": 5.25, "low": 4.0, "high": 6.0}}  # fmt: skip
GEMM = {"kernel": "gemm_sm90", "name": "usual", "encoding": "positional", "aim": 6.0, "percent": {"median": 4.0}}
GAVE_UP = {"kernel": "gemm_sm90", "name": "odd", "encoding": "positional", "verdict": "a wait gave up"}
COST = {
    "device": "chip",
    "driver": "1",
    "repetitions": 9,
    "rows": [RING, GEMM, GEMM | {"percent": {"median": 2.0}}, GAVE_UP],
}
RECORDED: dict[str, Any] = {
    "file": "gemm-sm_90a", "family": "triton", "encoding": "positional", "sites": 4, "events": 1200,
    "spills": [0, 8], "identical": True, "agreement": "conforms", "why": "", "plain_ns": 1000, "recorded_ns": 1050,
    "queued": True, "registers": [90, 92], "busiest": 99,
}  # fmt: skip
HANGS = {"file": "hang_gemm", "family": "hang", "agreement": "hangs where the model also blocks", "identical": None}
PAGE = "a\n<!-- recorded: cost -->\nold\n<!-- end -->\nb\n<!-- recorded: kernels -->\nold\n<!-- end -->\nc\n"


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.endswith("_ns") and key != "queued"}


def test_the_tables(tmp_path: Path) -> None:
    (tmp_path / tool.COST).write_text(json.dumps(COST))
    assert tool.filled(PAGE, tmp_path).endswith("<!-- recorded: kernels -->\nold\n<!-- end -->\nc\n")
    failed = [
        {"file": "a-sm_90a", "family": "x", "error": "no\nmap"},
        RECORDED | {"agreement": "refused", "why": "lost"},
    ]
    (tmp_path / tool.KERNELS).write_text(json.dumps([RECORDED, plain(RECORDED) | HANGS, *failed]))
    page = tool.filled(PAGE, tmp_path)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:3] == [
        "| ring of 4 KB: consumer | positional | 5.2 (4.0 to 6.0; aim 8) | 6.5 % |",
        "| gemm_sm90 | positional | | 3.0 % (2.0 to 4.0, 2 configurations) |",
    ]
    assert rows[4:] == [
        "| gemm | mutant | positional | 4 | 1,200 | 90 → 92 | 8 | – | hangs, as the model does | – | – |",
        "| gemm | triton | positional | 4 | 1,200 | 90 → 92 | 8 | yes | conforms | 5.0 % | 1.0 |",
    ]
    assert "Not recorded: `a` (no map), `gemm` (lost)." in page
    assert "12 and 33 cycles a record" in page
    assert tool.filled(page, tmp_path) == page
    with pytest.raises(ValueError, match="no block kernels"):
        tool.filled(PAGE.replace("kernels", "others"), tmp_path)


def test_the_page_has_the_blocks_and_is_what_the_stored_files_say() -> None:
    assert tool.main(["--check"]) == 0


def packed(folder: Path, part: str, files: dict[str, bytes]) -> None:
    (folder / part).mkdir()
    for name, data in files.items():
        (folder / part / name).write_bytes(data)
    with tarfile.open(folder / f"{part}.tar.gz", "w:gz") as archive:
        archive.add(folder / part, part)


def test_what_came_back_is_put_in_its_place(tmp_path: Path) -> None:
    stored, kernels = tmp_path / "h200", tmp_path / "carried"
    (stored / "ptx").mkdir(parents=True)
    (stored / "ptx" / "triton-gemm.parquet").write_bytes(b"old")
    packed(tmp_path, "cost", {"recording_cost.json": b"{}", "printed.txt": b""})
    names = ("triton-gemm-sm_90a", "modular-attention_causal-sm_90a", "hang_triton_gemm_w8", "hang_modular_gemm")
    traces = {f"{name}.parquet": name.encode() for name in names}
    packed(tmp_path, "kernels", {"results.json": b"[]", "printed.txt": b""} | traces)
    assert tool.take(tmp_path, stored) == ["ptx/triton-gemm.parquet", tool.KERNELS, tool.COST]
    assert sorted(path.name for path in stored.rglob("*.*")) == [tool.KERNELS, tool.COST, "triton-gemm.parquet"]
    assert (stored / "ptx" / "triton-gemm.parquet").read_bytes() == b"triton-gemm-sm_90a"
    for name in ("triton/gemm-sm_90a", "hang/hang_triton_gemm_w8", "modular/attention_causal-sm_90a"):
        for end in tool.BESIDE:
            (kernels / name).parent.mkdir(parents=True, exist_ok=True)
            (kernels / f"{name}{end}").write_text(name + end)
    assert tool.take(tmp_path, stored, kernels)[:2] == [
        "ptx/modular/attention_causal.parquet",
        "ptx/modular/gemm-hangs.parquet",
    ]
    found = {str(path.relative_to(stored / "ptx")): path.read_bytes().decode() for path in stored.rglob("ptx/**/*.*")}
    assert found == {
        "modular/attention_causal.parquet": "modular-attention_causal-sm_90a",
        "modular/gemm-hangs.parquet": "hang_modular_gemm",
        "triton-gemm.json": "triton/gemm-sm_90a.json",
        "triton-gemm.parquet": "triton-gemm-sm_90a",
        "triton-gemm.ptx": "triton/gemm-sm_90a.ptx",
        "triton-gemm_w8-hangs.json": "hang/hang_triton_gemm_w8.json",
        "triton-gemm_w8-hangs.parquet": "hang_triton_gemm_w8",
        "triton-gemm_w8-hangs.ptx": "hang/hang_triton_gemm_w8.ptx",
    }
    assert tool.take(tmp_path / "nowhere", stored) == []


def test_a_part_is_shown_packed_and_stopped_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends, goes_on = "print('said'); raise SystemExit(3)", "print('begun', flush=True)\nwhile True: pass"
    monkeypatch.setattr(runs, "command", lambda part, into, kernels: [sys.executable, "-c", ends])
    assert runs.main(["cost", str(tmp_path)]) == 3
    assert capsys.readouterr().out == "said\ncost: status 3\n"
    with tarfile.open(tmp_path / "cost.tar.gz") as archive:
        assert archive.getnames() == ["cost", "cost/printed.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["cost.tar.gz"]
    assert runs.run([sys.executable, "-c", goes_on], tmp_path / "printed.txt", 0.3) == 124
    assert (tmp_path / "printed.txt").read_text() in ("begun\n", "")


def test_the_programs_of_the_parts(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "gemm.ptx").touch()
    words = runs.command("kernels", tmp_path / "out", tmp_path)
    assert [Path(word).name for word in words[1:]] == [
        "record_kernels.py",
        "out",
        *(f"{n}.ptx" for n in runs.HANGS),
        "gemm.ptx",
    ]
    for part in ("cost", "kernels", "process"):
        assert Path(runs.command(part, tmp_path, tmp_path)[1]).is_file()
