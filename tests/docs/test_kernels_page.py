"""docs/kernels.md is what the stored recordings and measurements say, and they say what was asked of the kernels."""

import json

import pytest

from tests.support.paths import ROOT
from tools import kernels_doc as tool

CHIPS = {"h100": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200"}


def stored(chip: str, name: str):
    return json.loads((ROOT / "traces" / chip / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_page_is_what_is_stored():
    assert tool.page() == tool.PAGE.read_text(encoding="utf-8"), "run python tools/kernels_doc.py"


def test_another_measurement_makes_another_page(monkeypatch):
    read = tool._read
    monkeypatch.setattr(tool, "_read", lambda name: [{**said, "size": 4096} for said in read(name)])
    assert tool.page() != tool.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("chip", CHIPS)
def test_the_gemm_is_as_fast_as_cublas(chip):
    said = stored(chip, "gemm_speed")
    assert (said["device"], said["size"]) == (CHIPS[chip], 8192)
    assert all(run["error"] < 3e-3 for run in said["runs"])
    assert max(run["share"] for run in said["runs"]) > 0.95


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("depth", [64, 128])
def test_attention_is_faster_than_flash_attention_2_and_near_cudnn(chip, depth):
    said = stored(chip, "attention_speed")
    assert said["gpu"] == CHIPS[chip]
    runs = {run["name"]: run for run in said["runs"] if run["depth"] == depth}
    assert all(run["error"] < 4e-3 for run in runs.values())
    ours = max(run["tflops"] for name, run in runs.items() if name.startswith("attention_sm90"))
    assert ours > runs["torch FLASH_ATTENTION"]["tflops"]
    assert ours > 0.9 * runs["torch CUDNN_ATTENTION"]["tflops"]
