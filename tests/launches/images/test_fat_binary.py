"""Entries of fat binaries, those of nvcc and damaged ones, and which one describes what runs."""

import random
from contextlib import suppress

import pyarrow as pa
import pytest

from pipesim.errors import CodeImageError
from pipesim.launches.images.entry_text import lz4_block, ptx_of_entry
from pipesim.launches.images.fat_binary import (
    Architecture,
    Compression,
    EntryKind,
    FatEntry,
    choose,
    entries_at,
    entry_bytes,
)
from tests.support.fat_binaries import BASE, GROUP, LZ4, PLAIN, ZSTD, container, entry, memory

TEXT = b"\n.version 9.5\n.target sm_90\n" + b"// a comment that can be packed well, well, well\n" * 40


def found(data: bytes) -> tuple[FatEntry, ...]:
    return entries_at(BASE, memory(data))


def texts(data: bytes) -> list[str]:
    return [ptx_of_entry(entry_bytes(each, memory(data))) for each in found(data) if each.kind == EntryKind.PTX]


def listed(data: bytes) -> list[tuple[int, str, Compression]]:
    return [(each.kind, str(each.architecture), each.compression) for each in found(data)]


def test_the_entries_of_nvccs_files():
    none, lz4, zstd = Compression.NONE, Compression.LZ4, Compression.ZSTD
    assert listed(PLAIN) == [(1, "90", none)]
    assert listed(LZ4) == [(1, "90", lz4)]
    assert listed(ZSTD) == [(2, "90a", zstd), (1, "90a", zstd)]
    assert listed(GROUP) == [(1, "80", zstd), (1, "90", zstd), (1, "100f", zstd), (2, "80", zstd), (2, "90", zstd)]
    assert {each.version for each in found(GROUP) if each.kind == EntryKind.PTX} == {(9, 5)}
    assert all(each.is_64_bit and not each.debug for each in found(GROUP))


def test_the_texts_of_nvccs_files():
    (plain,) = texts(PLAIN)
    assert plain.startswith("\n\n\n\n\n\n\n\n.version 9.5\n.target sm_90\n")
    assert plain.rstrip().endswith("}")
    assert texts(LZ4) == [plain]
    assert texts(ZSTD) == [plain.replace("sm_90", "sm_90a")]
    assert [text.split()[3] for text in texts(GROUP)] == ["sm_80", "sm_90", "sm_100f"]
    assert texts(GROUP)[1] == plain


def test_lz4_equals_another_implementation_on_random_bytes():
    choice = random.Random(1)
    for length in (1, 12, 13, 100, 5000):
        for alphabet in (1, 2, 200):
            raw = bytes(choice.randrange(alphabet) for _ in range(length))
            assert lz4_block(pa.Codec("lz4_raw").compress(raw, asbytes=True), length) == raw


@pytest.mark.parametrize(("data", "kind"), [(LZ4, "LZ4"), (ZSTD, "zstd")])
def test_damaged_payloads_are_refused_or_a_text(data, kind):
    """Neither format has a sum over its bytes: a changed letter stays a letter."""
    (whole,) = (each for each in found(data) if each.kind == EntryKind.PTX)
    right = entry_bytes(whole, memory(data))
    choice = random.Random(kind)
    refused = 0
    for _ in range(300):
        wrong = bytearray(right)
        wrong[choice.randrange(whole.header_bytes, len(right))] ^= 1 << choice.randrange(8)
        try:
            assert ".version" in ptx_of_entry(bytes(wrong))
        except CodeImageError:
            refused += 1
    assert 30 < refused < 300


def test_random_headers_are_refused_or_read():
    choice = random.Random(2)
    for data in (LZ4, ZSTD, GROUP):
        for _ in range(300):
            wrong = bytearray(data)
            for _ in range(3):
                wrong[choice.randrange(6, 400)] = choice.choice((0, 1, 64, 255))
            with suppress(CodeImageError):
                texts(bytes(wrong))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (entry(2, 90, TEXT), "of kind 2"),
        (entry(1, 90, b"\xff\xfe not a text"), "not a text"),
        (entry(1, 90, b"hello"), "not a PTX text"),
        (entry(1, 90, b".version\0.version"), "not a PTX text"),
        (entry(1, 90, b"", flags=0x2011, raw=10), "damaged"),
        (entry(1, 90, b"", flags=0x8011, raw=1 << 40), "at most"),
        (entry(1, 90, b"12345678", flags=0x8011, packed=9, raw=10), "do not fit together"),
        (entry(1, 90, bytes((0x10, 65, 1, 0)), flags=0x2011, packed=4, raw=100), "damaged"),
        (entry(1, 90, bytes((0x10, 65, 9, 0)), flags=0x2011, packed=4, raw=100), "damaged"),
    ],
)
def test_entries_without_a_text(wrong, says):
    with pytest.raises(CodeImageError, match=says):
        ptx_of_entry(wrong)


def code(name: str, kind: int = EntryKind.ELF) -> bytes:
    architecture = Architecture.from_name(name)
    return entry(kind, architecture.number, flags=0x11 | {"": 0, "a": 0x100000, "f": 0x200000}[architecture.variant])


def chosen(device: str, *names: str, force_ptx: bool = False) -> str:
    """The architecture of the PTX, or the reason."""
    kinds = {"sm": EntryKind.ELF, "compute": EntryKind.PTX}
    made = found(container(*(code(name, kinds[name.split("_")[0]]) for name in names)))
    choice = choose(made, device, force_ptx=force_ptx)
    return str(choice.ptx.architecture) if choice.ptx else choice.why_not


@pytest.mark.parametrize(
    ("device", "names", "expected"),
    [
        ("sm_90", "sm_90 compute_90", "90"),
        ("sm_90", "sm_80 sm_90a compute_80 compute_90a", "90a"),
        ("sm_86", "sm_80 compute_80", "80"),
        ("sm_100", "sm_90 compute_90", "90"),
        ("sm_103", "compute_100f compute_103a", "103a"),
        ("sm_90", "sm_90 compute_120", "its fat binary has machine code for sm_90 and PTX only for compute_120"),
        ("sm_90", "sm_90a compute_90", "its fat binary has machine code for sm_90a and PTX only for compute_90"),
        ("sm_90", "sm_90", "its fat binary has machine code for sm_90 and no PTX"),
        ("sm_90", "compute_100", "its fat binary has nothing for sm_90: PTX for compute_100"),
        ("sm_103", "sm_100a compute_100a",
         "its fat binary has nothing for sm_103: machine code for sm_100a and PTX for compute_100a"),
        ("sm_90", "", "its fat binary has nothing for sm_90: it is empty"),
        ("sm_90", "sm_90 sm_90a compute_90", "its fat binary has several machine codes for sm_90: sm_90, sm_90a"),
        ("sm_90", "compute_90 compute_90a", "its fat binary has several PTX texts for sm_90: compute_90, compute_90a"),
        ("sm_90", "sm_90 compute_90 compute_90", "its fat binary has machine code for sm_90 and 2 PTX texts for it"),
    ],
)  # fmt: skip
def test_which_entry_runs(device, names, expected):
    assert chosen(device, *names.split()) == expected


def test_a_device_of_another_form():
    with pytest.raises(CodeImageError, match="not an architecture"):
        choose((), "H200")
