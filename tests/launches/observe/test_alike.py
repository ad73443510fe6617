"""Launches like one before: what the library in C counts is what Python would count, and no new kind is lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipesim.launches.inject import injection_library
from pipesim.launches.observe.parameters import unread_bytes
from tests.support import fake_cuda
from tests.support.paths import ROOT

PROGRAM = """
import ctypes, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipesim.launches.observe import Limits, start
made = start(Path(sys.argv[3]), Limits(("c*",)), sys.argv[4])
asked, on_call = [], made.observer._count_launch
made.observer._count_launch = lambda *given: (asked.append(1), on_call(*given))[1]
cuda = ctypes.CDLL("libcuda.so.1")
module, function, memory = ctypes.c_void_p(), {}, ctypes.c_uint64()
assert cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[2], "rb").read() + b"\\0") == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 16)) == 0
def launch(name, shift=0, number=0, grid=1):
    if name not in function:
        function[name] = ctypes.c_void_p()
        assert cuda.cuModuleGetFunction(ctypes.byref(function[name]), module, name.encode()) == 0
    values = [ctypes.c_uint64(memory.value + shift), ctypes.c_uint32(number)]
    places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    assert cuda.cuLaunchKernel(function[name], grid, 1, 1, 32, 1, 1, 0, None, places, None) == 0
for shift in (0, 0, 512, 1024, 8, 16, 24, 0):  # 8 and 24 are aligned to 8, 16 to more, the others to 256
    launch("copy__8_4", shift)
launch("copy__8_4", 0, 1); launch("copy__8_4", 0, 1); launch("copy__8_4", 0, 1, 2); launch("copy__8_4", 4096, 0)
for _ in range(5): launch("other__8_4")
for n in range(6):  # bytes 6 to 11 are not read, and byte 4 is
    padded, f = (ctypes.c_uint8 * 12)(1, 2, 3, 4, n == 5, 0, n, n, n, n, n, n), ctypes.c_void_p()
    assert cuda.cuModuleGetFunction(ctypes.byref(f), module, b"cpad__12") == 0
    places = (ctypes.c_void_p * 1)(ctypes.addressof(padded))
    assert cuda.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, None, places, None) == 0
class Map(ctypes.Structure): _fields_ = [("words", ctypes.c_uint64 * 16)]; _align_ = 64
tile, u64, u32 = (Map * 2)(), ctypes.c_uint64 * 2, ctypes.c_uint32 * 2
for n, box in ((0, 16), (0, 16), (1, 8), (0, 16)):
    shape = u64(64, 32), u64(128), u32(box, 8), u32(1, 1)
    place, address = ctypes.byref(tile[n]), ctypes.c_void_p(memory.value)
    assert cuda.cuTensorMapEncodeTiled(place, 9, 2, address, *shape, 0, 3, 0, 0) == 0
    f, places = ctypes.c_void_p(), (ctypes.c_void_p * 1)(ctypes.addressof(tile[n]))
    assert cuda.cuModuleGetFunction(ctypes.byref(f), module, b"ctiles__128") == 0
    assert cuda.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, None, places, None) == 0
for n in range(6):  # as the CuTe DSL writes maps: 64 bytes, and what was on its stack; n 5 has another box
    f, words = ctypes.c_void_p(), [memory.value + 512 * n, 0x2000046532, 0x400000000010, 0, 0x1ff0000007f, 1]
    words += [(63 if n < 5 else 31) << 56, 0x7f, *[memory.value + n] * 8]
    for at, word in enumerate(words): tile[1].words[at] = word
    assert cuda.cuModuleGetFunction(ctypes.byref(f), module, b"cmade__128") == 0
    places = (ctypes.c_void_p * 1)(ctypes.addressof(tile[1]))
    assert cuda.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, None, places, None) == 0
made.stop()
launch("copy__8_4")
print(len(asked), ctypes.c_int.from_address(memory.value).value)
"""

PADDED = """.visible .entry cpad__12(.param .align 4 .b8 p[12]) {
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [p];
    ld.param.v2.u8 {%r1, %r2}, [p+4];
    ret;
}
"""


@pytest.mark.parametrize(
    ("instead", "unread"),
    [("ld.param.u32 %r1, [p]", range(6, 12)), ("mov.b64 %rd1, p", ()), ("ld.param.v2.f32 {%r1, %r2}, [p+4]", range(4))],
)
def test_what_a_kernel_does_not_read_of_a_parameter(instead: str, unread: range) -> None:
    text = PADDED.replace("ld.param.u32 %r1, [p]", instead).encode()
    assert unread_bytes(text, "cpad__12", ((0, 12),)) == tuple((0, at) for at in unread)
    empty = text.replace(b"p[12])", b"p[12], .param .align 1 .b8 e[1], .param .u32 n)")  # as the CuTe DSL passes None
    assert unread_bytes(empty, "cpad__12", ((0, 12), (12, 1), (16, 4)))[-1] == (1, 0)


@pytest.mark.slow
def test_counts_and_kinds_are_those_without_the_library(tmp_path: Path) -> None:
    fake = fake_cuda.built(tmp_path)
    (tmp_path / "code").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry copy__8_4() { ret; }\n" + PADDED
    )

    def records(library: str) -> tuple[list[str], list[Any], list[Any]]:
        spool = tmp_path / ("with" if library else "without")
        spool.mkdir()
        words = [sys.executable, "-c", PROGRAM, str(ROOT), str(tmp_path / "code"), str(spool), library]
        done = subprocess.run(words, env=fake.environment(), capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        lines = [json.loads(line) for file in spool.glob("*.jsonl") for line in file.read_text().splitlines()]
        launches, counts = ([each for each in lines if each["kind"] == kind] for kind in ("launch", "count"))
        for each in launches:
            del each["parameters"][0]["bytes"]  # an address
        return done.stdout.split(), launches, counts

    (asked, ran), launches, counts = records("")
    assert [(each["launches"], each["distinct"]) for each in counts if each["kernel"] == "cpad__12"] == [(6, 2)]
    assert [(each["launches"], each["distinct"]) for each in counts if each["kernel"] == "cmade__128"] == [(6, 2)]
    (asked_less, ran_too), same_launches, same_counts = records(str(injection_library()))
    assert (int(asked), ran, counts[0]["launches"]) == (33, ran_too, 12)
    assert int(asked_less) == len(launches) + 1  # one of each kind, and one of the kernel that is not wanted
    assert (same_launches, same_counts) == (launches, counts)
