"""The driver's calls that the observer in Python makes, with the driver that has no GPU."""

import json
import shutil
import subprocess
import sys

import pytest

_ASK = """
import ctypes, json
import pipesim.launches.observe.driver as d
from pipesim.launches.observe.driver import CudaDriver
cuda, driver = ctypes.CDLL("libcuda.so.1"), CudaDriver()
address, stream = ctypes.c_uint64(), ctypes.c_void_p()
cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(100))
cuda.cuStreamCreate(ctypes.byref(stream), 0)
start = address.value
cuda.cuMemcpyHtoD_v2(address, b"0123456789", ctypes.c_size_t(10))
found = {"idle": driver.copy(start + 2, 5, after=stream.value).decode()}
found["sizes"] = [driver.memory_from(start), driver.memory_from(start + 99), driver.memory_from(start + 100)]
cuda.fakeBusy(stream, 1)
d._PATIENCE_S = 0.0
found["busy"] = driver.copy(start, 4, after=stream.value)
found["outside"] = driver.copy(start, 200, after=0)
found["capturing"] = [driver.is_capturing(stream.value)]
cuda.cuStreamBeginCapture_v2(stream, 0)
found["capturing"].append(driver.is_capturing(stream.value))
found["device"] = driver.device()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_memory_streams_and_the_device(fake):
    done = subprocess.run(
        [sys.executable, "-c", _ASK], env=fake.environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "idle": "23456",
        "sizes": [100, 1, None],
        "busy": None,
        "outside": None,
        "capturing": [False, True],
        "device": ["Fake H200 0", "sm_90"],
    }


_START = """
import sys
from pathlib import Path
from pipesim.errors import PipesimError
from pipesim.launches.observe import Limits, session
session.cupti_libraries = lambda: tuple(sys.argv[2:])
try:
    session.start(Path(sys.argv[1]), Limits()).stop()
    print("observed")
except PipesimError as error:
    print(error.fact)
"""


@pytest.mark.slow
def test_the_next_cupti_is_taken_where_the_driver_is_too_old_for_one(fake, tmp_path):
    newer, right = tmp_path / "newer" / "libcupti.so.13", fake.folder / "libcupti.so.13"
    newer.parent.mkdir()
    shutil.copy(right, newer)

    def said(*libraries: object, **variables: str) -> str:
        words = [sys.executable, "-c", _START, str(tmp_path), *map(str, libraries)]
        environment = fake.environment() | variables
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert said("none", newer, right, FAKE_CUPTI_REFUSES="/newer/") == "observed"
    assert said("none", newer, FAKE_CUPTI_REFUSES="/newer/") == "CUPTI cannot subscribe: error 38"
    assert said("none", newer, right, FAKE_CUPTI_TAKEN="1") == "another profiler observes this process"
    assert said("none") == "CUPTI is not installed"
