"""Which process runs which test: those that need the GPU one, the others all. Tried on a suite of small tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdist.remote import Producer

from tests import conftest
from tests.support.paths import ROOT

PER_FILE = 20  #: tests that need no GPU
SETTINGS = """[pytest]
markers = gpu: needs a GPU
addopts = -q --strict-markers -p no:cacheprovider -p no:hypothesispytest
"""
WRITE = """
import os, pathlib, pytest

def write(kind):
    with open(pathlib.Path({folder!r}) / kind, "a") as file:
        file.write(os.environ.get("PYTEST_XDIST_WORKER", "alone") + "\\n")
"""
OF_GPU = """
@pytest.mark.gpu
@pytest.mark.parametrize("n", range(4))
def test_gpu(n):
    write("gpu")
"""
OF_CPU = """
@pytest.mark.parametrize("n", range({per_file}))
def test_cpu(n):
    write("cpu")
"""
Ended = tuple["subprocess.CompletedProcess[str]", list[str], list[str]]


def run(folder: Path, *options: str, gpu_file: str = "test_gpu_{}.py") -> Ended:
    """A run of three files of each kind with the conftest of this suite; the process of each test of the two kinds."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    head = WRITE.format(folder=str(folder))
    for name in "abc":
        (folder / f"test_{name}.py").write_text(head + OF_CPU.format(per_file=PER_FILE))
        (folder / gpu_file.format(name)).write_text(head + OF_GPU)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        check=False, cwd=folder, env=kept, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    gpu, cpu = ((folder / kind).read_text().split() if (folder / kind).exists() else [] for kind in ("gpu", "cpu"))
    return ended, gpu, cpu


@pytest.mark.long
def test_the_tests_that_need_the_gpu_run_in_one_process_and_the_others_in_all(tmp_path):
    """Of three processes the two that do not get the GPU's tests are each given others before any test ends."""
    ended, gpu, cpu = run(tmp_path, "-n3", "--dist=loadfile")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (len(gpu), len(cpu)) == (12, 3 * PER_FILE)
    assert len(set(gpu)) == 1
    assert len(set(cpu)) >= 2


@pytest.mark.parametrize("dist", ["load", "worksteal", "loadscope", "loadfile", "loadgroup", "each"])
def test_every_way_to_hand_out_tests_but_each_is_that_one(pytestconfig, monkeypatch, dist):
    monkeypatch.setattr(pytestconfig.option, "dist", dist)
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    made = conftest.pytest_xdist_make_scheduler(pytestconfig, Producer("test"))
    assert (type(made).__name__ if made is not None else "") == ("OneProcessOnTheGpu" if dist != "each" else "")


@pytest.mark.slow
def test_a_marked_test_in_another_file_is_refused(tmp_path):
    ended, gpu, _ = run(tmp_path, "-n0", gpu_file="test_{}_gpu.py")
    assert (ended.returncode, gpu) == (4, [])
    assert "is marked gpu: such a test belongs in a file test_gpu*.py" in ended.stderr


def test_what_the_fast_lane_leaves_out_are_tests():
    for name in conftest.fast_values():
        file, _, test = name.partition("::")
        assert f"def {test.rpartition('::')[2]}(" in (ROOT / file).read_text(), name


def test_of_the_values_that_are_named_the_others_are_slow(monkeypatch):
    monkeypatch.setattr(conftest, "fast_values", lambda: {"a": "-", "b": "0,2-3", "c": "4"})
    lanes = [{str(n)} for n in range(6)]
    left = {name: conftest.left_to_the_slow_lane(name, lanes) for name in "abcd"}
    assert left == {"a": lanes, "b": [{"1"}, {"4"}, {"5"}], "c": [*lanes[:4], {"5"}], "d": []}
