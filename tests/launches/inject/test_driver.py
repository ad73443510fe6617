"""The driver's calls that the observer in Python makes, with the driver that has no GPU."""

from __future__ import annotations

import json
import subprocess
import sys

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
found = {"idle": driver.copied(start + 2, 5, after=stream.value).decode()}
found["sizes"] = [driver.memory_from(start), driver.memory_from(start + 99), driver.memory_from(start + 100)]
cuda.fakeBusy(stream, 1)
d._PATIENCE = 0.0
found["busy"] = driver.copied(start, 4, after=stream.value)
found["outside"] = driver.copied(start, 200, after=0)
found["capturing"] = [driver.is_capturing(stream.value)]
cuda.cuStreamBeginCapture_v2(stream, 0)
found["capturing"].append(driver.is_capturing(stream.value))
found["device"] = driver.device()
print(json.dumps(found))
"""


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
