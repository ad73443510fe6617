"""The driver without a GPU does what the tests of observed processes rely on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import fake_cuda
from tests.support.fake_cuda import FakeCuda

_CODE = ".version 8.0\n.target sm_90\n.address_size 64\n"
_COUNTING = """
import ctypes
cuda, cupti = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcupti.so.13")
cuda.cuInit(0)
seen, subscriber = [], ctypes.c_void_p()
kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
called = kind(lambda _, domain, number, data: seen.append((domain, number, ctypes.c_int.from_address(data).value)))
print(cupti.cuptiSubscribe(ctypes.byref(subscriber), called, None))
print(cupti.cuptiSubscribe(ctypes.byref(subscriber), called, None))
cupti.cuptiEnableCallback(1, subscriber, 1, 19)
module = ctypes.c_void_p()
cuda.cuModuleLoadData(ctypes.byref(module), b"code")
cupti.cuptiUnsubscribe(subscriber)
cuda.cuModuleLoadData(ctypes.byref(module), b"code")
print(seen)
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory) -> FakeCuda:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    (made.folder / "code").write_text(_CODE)
    return made


def test_launches_of_all_kinds_run(fake):
    code = fake.folder / "code"
    alone = [
        "launch",
        "a__8",
        "ex",
        "a__8",
        "cluster",
        "a__8",
        "cooperative",
        "a__8",
        "extra",
        "b__4_8",
        "thread",
        "a__8",
    ]
    graphs = ["graph", "a__8", "nodes", "a__8"]  # each is launched three times
    done = fake.run("data", code, *alone, *graphs, "library", code, "function", "a__8", "threads", 2, "a__8")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 6 + 6 + 1 + 100


def test_a_kernel_that_ends_the_process(fake):
    assert fake.run("data", fake.folder / "code", "launch", "killed__8").returncode == -9


def test_a_subscriber_in_python_sees_calls_before_and_after_and_is_the_only_one(fake):

    done = subprocess.run(
        [sys.executable, "-c", _COUNTING], env=fake.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["0", "39", "[(1, 19, 0), (1, 19, 1)]"]
