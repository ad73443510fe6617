"""The observer in C and the one in Python record the same of one program, which runs in a process of Python here."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipesim.launches.inject import injection_environment
from pipesim.launches.observe.limits import Limits
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import LaunchRecord, SeenParameter
from tests.support.fat_binaries import GROUP, LZ4, ZSTD, container, entry

_RUN = """
import ctypes, sys
from pathlib import Path
spool, library, *words = sys.argv[1:]
if spool:
    from pipesim.launches.observe import Limits, start
    observation = start(Path(spool), Limits())
words = [each.encode() for each in ["program", *words]]
ctypes.CDLL(library).main(len(words), (ctypes.c_char_p * len(words))(*words))
if spool:
    observation.stop()
"""
_KINDS = ("launch", "ex", "cluster", "cooperative", "extra", "thread")
_LOADS = ("data", "fatbinary", "wrapper", "file", "library", "copied")
_LAUNCHES = [
    *(word for how in _KINDS for word in (how, "mixed__4_8_24")),
    *(
        "launch",
        "tiles__128",
        "tiled",
        "launch",
        "tiles__128_8",
        "im2col",
        "launch",
        "tiles__128_8",
        "wide",
        "launch",
        "tiles__128_8",
    ),
    *("shift", "64", "replace", "launch", "tiles__128_8", "number", "5", "launch", "tiles__128_8"),
    *("shared", "4096", "grid", "9", "launch", "cluster__8", "launch", "nothing", "repeat", "4", "copy__8_4"),
    *("graph", "captured__8_4", "nodes", "added__8_128"),
]


def recorded(
    fake: Any, cache: Path, spool: Path, commands: list[str], *, in_python: bool, **variables: str
) -> list[LaunchRecord]:
    spool.mkdir()
    environment = fake.environment() | {"XDG_CACHE_HOME": str(cache)} | variables
    if not in_python:
        environment |= injection_environment(spool, Limits(), environment)
    words = [sys.executable, "-c", _RUN, str(spool) if in_python else "", str(fake.folder / "program.so"), *commands]
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=120)
    return sorted(read_spool(spool).launches, key=lambda each: (each.kernel, each.place))


def plain(parameter: SeenParameter) -> tuple[object, ...]:
    """Without addresses, which differ from run to run, and what was copied from them."""
    data = bytearray(parameter.data)
    for pointer in parameter.pointers:
        data[pointer.at : pointer.at + 8] = bytes(8)
    for map_ in parameter.maps:
        data[map_.at : map_.at + 128] = bytes(128)
    return bytes(data), [(each.at, each.align) for each in parameter.pointers], parameter.maps


def facts(record: LaunchRecord, spool: Path) -> tuple[object, ...]:
    parameters = None if record.parameters is None else [plain(each) for each in record.parameters]
    shape = record.grid, record.block, record.cluster, record.dynamic_shared, record.registers, record.via
    return record.kernel, shape, parameters, (spool / record.code).read_bytes() if record.code else None


@pytest.mark.slow
@pytest.mark.parametrize("load", ["data", "library"])
def test_launches_of_all_kinds(fake, cache, ptx, tmp_path, load):
    commands = [load, str(ptx), *_LAUNCHES]
    theirs = recorded(fake, cache, tmp_path / "python", commands, in_python=True)
    ours = recorded(fake, cache, tmp_path / "c", commands, in_python=False)
    assert len(ours) == 12
    assert [facts(each, tmp_path / "c") for each in ours] == [facts(each, tmp_path / "python") for each in theirs]


@pytest.mark.slow
def test_code_of_all_kinds(fake, cache, ptx, tmp_path):
    two = container(entry(2, 90), entry(1, 120, b".version 8.0\n"))
    files = {"lz4": LZ4, "zstd": ZSTD, "group": GROUP, "elf": b"\x7fELF\x02\x01\x01A" + bytes(100), "two": two}
    commands = ["link", str(ptx), "launch", "linked__8"]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        for how in _LOADS:
            commands += [how, str(tmp_path / name), "launch", f"{name}_{how}__8"]
    for how in ("data", "dataex", "copied", "file", "library", "libraryfile"):
        commands += [how, str(ptx), "launch", f"text_{how}__8"]
    theirs = recorded(fake, cache, tmp_path / "python", commands, in_python=True)
    ours = recorded(fake, cache, tmp_path / "c", commands, in_python=False)
    assert len(ours) == 1 + len(_LOADS) * len(files) + 6
    assert {bool(each.code) for each in ours} == {True, False}
    assert [facts(each, tmp_path / "c") for each in ours] == [facts(each, tmp_path / "python") for each in theirs]
    assert [each.why_not for each in ours if "two" in each.kernel] == [
        each.why_not for each in theirs if "two" in each.kernel
    ]


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(("archs", "found"), [("90", True), ("90,90", True), ("90,80", False)])
def test_a_library_that_is_loaded_before_a_device_is_current(fake, cache, tmp_path, archs, found):
    (tmp_path / "lz4").write_bytes(LZ4)
    commands = ["library", str(tmp_path / "lz4"), "launch", "fill__8_4"]
    variables = {"FAKE_CUDA_ARCH": archs, "FAKE_CUDA_NO_CONTEXT": "1"}
    (theirs,) = recorded(fake, cache, tmp_path / "python", commands, in_python=True, **variables)
    (ours,) = recorded(fake, cache, tmp_path / "c", commands, in_python=False, **variables)
    assert facts(ours, tmp_path / "c") == facts(theirs, tmp_path / "python")
    assert (bool(ours.code), ours.why_not) == (found, theirs.why_not)
