"""The PTX that the library finds in what the program loads: the same as pipesim/launches finds."""

import random
import struct

import pytest

from pipesim.launches.images.fat_binary import Architecture, EntryKind, choose, entries_at, entry_bytes
from tests.launches.observe.inject.conftest import PTX
from tests.support.fat_binaries import BASE, GROUP, LZ4, PLAIN, ZSTD, container, entry, memory

pytestmark = pytest.mark.slow  # a C compiler makes what observes

ELF = b"\x7fELF\x02\x01\x01A" + bytes(100)


@pytest.fixture
def file(tmp_path):
    def made(data: bytes, name: str = "code"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return made


@pytest.mark.parametrize("length", [4095, 4096, 9000])
def test_ptx_that_ends_with_its_page(observed, file, length):
    text = PTX.encode().ljust(length, b"\n")
    ran = observed("data", file(text), "launch", "copy__8_4")
    assert ran.text(ran.launch) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (ELF, "the program loaded machine code alone"),
        (b"BC\xc0\xde" + bytes(40), "the program loaded code of an unknown format"),
        (b"short", "the program loaded code of an unknown format"),
        (GROUP[:200], "the fat binary that the program loaded cannot be read"),
        (ZSTD.replace(b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46", 1), "cannot be read"),  # a wrapper that leads nowhere
    ],
)
def test_code_without_ptx_is_listed_once_with_the_reason(observed, file, data, reason):
    ran = observed("data", file(data), "launch", "a__8", "number", 3, "launch", "a__8")
    record = ran.launch
    assert reason in record.why_not
    assert (record.code, record.image, record.parameters) == ("", "", None)
    (count,) = ran.records.counts
    assert (count.launches, count.distinct) == (2, 0)
    assert list(ran.spool.glob("*.ptx")) + list(ran.spool.glob("*.entry")) == []


def code(name: str) -> bytes:
    prefix, _, number = name.partition("_")
    architecture = Architecture.from_name(f"sm_{number}")
    flags = 0x11 | {"": 0, "a": 0x100000, "f": 0x200000}[architecture.variant]
    return entry({"sm": 2, "compute": 1}[prefix], architecture.number, name.encode(), flags=flags)


NAMES = [
    "sm_80",
    "sm_90",
    "sm_90a",
    "sm_100",
    "sm_100f",
    "compute_80",
    "compute_90",
    "compute_90a",
    "compute_100f",
    "compute_120",
]


def test_it_chooses_as_the_rule_in_python_does(observed, file):
    """Random fat binaries: the same entry, or the same sentence."""
    choice = random.Random(5)
    made = [container(*(code(name) for name in choice.choices(NAMES, k=choice.randrange(6)))) for _ in range(60)]
    for device in ("80", "90", "103"):
        commands = [
            word
            for number, data in enumerate(made)
            for word in ("data", file(data, f"code{number}"), "launch", f"k{device}_{number}__8")
        ]
        ran = observed(*commands, environment={"FAKE_CUDA_ARCH": device})
        records = {each.kernel: each for each in ran.records.launches if each.kernel.startswith(f"k{device}_")}
        assert len(records) == len(made)
        for number, data in enumerate(made):
            right = choose(entries_at(BASE, memory(data)), f"sm_{device}")
            record = records[f"k{device}_{number}__8"]
            assert record.why_not == right.why_not
            if right.ptx is not None:
                assert ran.text(record) == entry_bytes(right.ptx, memory(data))


def test_machine_code_that_the_driver_is_made_to_ignore(observed, file):
    path = file(container(code("sm_90"), code("compute_80")))
    assert "machine code for sm_90" in observed("data", path, "launch", "a__8").launch.why_not
    again = observed("data", path, "launch", "b__8", environment={"CUDA_FORCE_PTX_JIT": "1"})
    assert again.records.launches[-1].code or again.records.launches[0].code


def test_damaged_code_ends_no_process(observed, file):
    """Headers with random bytes, which say any size: the entry that Python finds, or a reason."""
    choice = random.Random(6)
    commands, right = [], {}
    for number in range(150):
        data = bytearray(choice.choice((LZ4, ZSTD, GROUP, PLAIN, ELF)))
        for _ in range(choice.randrange(1, 4)):
            data[choice.randrange(4, min(len(data), 400))] = choice.choice((0, 1, 64, 200, 255))
        if choice.random() < 0.3:
            struct.pack_into("<Q", data, 8, choice.getrandbits(choice.choice((16, 33, 62))))
        commands += ["data", file(bytes(data), f"code{number}"), "launch", f"k{number}__8"]
        right[f"k{number}__8"] = bytes(data)
    ran = observed(*commands)
    assert ran.code == 0
    assert {each.kernel for each in ran.records.launches} == set(right)
    assert {bool(each.code) for each in ran.records.launches} == {True, False}
    for record in ran.records.launches:
        if record.code.endswith(".entry"):
            peek = memory(right[record.kernel])
            texts = [entry_bytes(each, peek) for each in entries_at(BASE, peek) if each.kind == EntryKind.PTX]
            assert ran.text(record) in texts
