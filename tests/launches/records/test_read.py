"""What an observed process writes is read as data; what is damaged is a note with its file and line."""

from pathlib import Path
from typing import Any

import pytest

from pipesim import bounds
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import (
    SpoolRecords,
)
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer, TensorMap
from tests.support.spools import PROCESS, record_of, write_spool

MAP = TensorMap("bf16", (1024, 64), (64, 64), (2048,), (1, 1), "128B")
COPIED = Pointer(64, (Field(0, Array("u32", (1, 2))),))
LAUNCH = Launch(
    "k", (4, 1, 1), (128, 1, 1), (2, 1, 1), 1024, 168,
    (Parameter("", MAP), Parameter("", COPIED), Parameter("", Number("s32", -2))),
)  # fmt: skip
RECORD = record_of(LAUNCH)


def changed(**more: Any) -> dict[str, Any]:
    return RECORD | more


def parameter(**more: Any) -> dict[str, Any]:
    return changed(parameters=[{"bytes": "00" * 16} | more])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([1], "this is the list [1], not an object"),
        (
            {"kind": "order"},
            "kind: expected one of process, launch, count, step, note, instrumented, recorded, found 'order'",
        ),
        (changed(extra=1), "the member 'extra' is not known"),
        (PROCESS | {"version": 2}, "version: expected 1"),
        (PROCESS | {"argv": [1]}, "argv: expected text"),
        (changed(code="../x.ptx"), "code: expected the name of a file in the folder"),
        (changed(code=".ptx"), "code: expected the name of a file in the folder"),
        (changed(code="x.so"), "code: expected the name of a file in the folder"),
        (changed(kernel="a\x1b[2J"), "kernel: expected a name of ASCII characters"),
        (changed(grid=[0, 1, 1]), "grid: expected a list"),
        (changed(grid=[1 << 31, 1, 1]), "grid: expected a list"),
        (changed(grid=[True]), "grid: expected a list"),
        (changed(dynamic_shared=-1), "dynamic_shared: expected a whole number"),
        (changed(registers=10**19), "registers: expected a whole number"),
        (changed(registers=10**30), "it has a number of 31 digits"),
        (changed(via="magic"), "via: expected one of launch, graph"),
        (changed(parameters_known=3), "parameters_known: expected true or false"),
        (changed(parameters={}), "parameters: expected a list"),
        (changed(parameters=[{"bytes": "00" * 32764}] * 2), "parameters: more than 32,768 bytes"),
        (parameter(bytes="0"), "bytes: expected an even number of hexadecimal digits"),
        (parameter(bytes="0 "), "bytes: expected hexadecimal digits"),
        (parameter(pointers=[{"at": 9, "align": 1}]), "at: expected a whole number from 0 to 8, found 9"),
        (parameter(pointers=[{"at": 0, "align": 3}]), "align: 3 is not a power of two"),
        (parameter(pointers=[{"at": 0, "align": 8192}]), "align: expected a whole number from 1 to 4,096"),
        (parameter(pointers=[{"at": 0}, {"at": 4}]), "pointers: two of them overlap"),
        (parameter(maps=[{"at": 0}]), "at: expected a whole number"),
        (changed(parameters=[{"bytes": "00" * 128, "maps": [{"at": 0, "swizzle": "64"}]}]), "swizzle: expected one of"),
        (changed(parameters=[{"bytes": "00" * 128, "maps": [{"at": 0, "kind": "x"}]}]), "the member 'kind' is not"),
    ],
)  # fmt: skip
def test_a_wrong_record_is_a_note_and_the_others_are_read(tmp_path: Path, record: Any, said: str) -> None:
    folder = write_spool(tmp_path / "s", [RECORD, record, RECORD])
    found = read_spool(folder)
    assert len(found.launches) == 2
    (note,) = found.notes
    place, _, fact = note.partition(": a record cannot be read: ")
    assert place.startswith("7.jsonl:3")
    assert fact.startswith(said)


def test_keys_that_are_there_twice_and_what_is_not_text(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", [])
    (folder / "7.jsonl").write_bytes(b'{"kind":"note","kind":"note","text":"x"}\n\xff\xff\n\n' + b"[" * 99 + b"\n")
    assert [note.partition(": a record cannot be read: ")[0] for note in read_spool(folder).notes] == [
        "7.jsonl:1", "7.jsonl:2", "7.jsonl:4",
    ]  # fmt: skip


def test_few_of_many_damaged_lines_are_named(tmp_path: Path) -> None:
    folder = write_spool(tmp_path / "s", [{"kind": "x"}] * 50)
    notes = read_spool(folder).notes
    assert (len(notes), notes[-1]) == (33, "18 more records cannot be read")


def test_there_is_a_bound_on_records_and_on_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_RECORDS", 3)
    monkeypatch.setattr(bounds, "MAX_SPOOL_FILES", 1)
    write_spool(tmp_path / "s", [RECORD] * 5, name="1")
    found = read_spool(write_spool(tmp_path / "s", [RECORD] * 5, name="2"))
    assert len(found.launches) == 2
    assert found.notes == ["1 of 2 processes were left out", "1.jsonl: more than 3 records; the rest was left out"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write_spool(tmp_path / "elsewhere", [RECORD])
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "7.jsonl").symlink_to(tmp_path / "elsewhere" / "7.jsonl")
    assert read_spool(folder) == SpoolRecords(notes=["7.jsonl: it is a link"])
