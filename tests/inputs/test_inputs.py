"""How files are opened and JSON is read: ordinary files only, and no value is made of a document that is too large."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from pipesim.bounds import MAX_DEPTH, MAX_DIGITS, MAX_JSON_LISTS, MAX_JSON_STRINGS, MAX_JSON_VALUES
from pipesim.errors import ProfileError
from pipesim.inputs import BoundError, InputKind, json_value

KIND = InputKind("thing", 100, ProfileError, "write another one")
MOST = 1 << 26


def refused(path: Path) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        KIND.read_text(path)
    assert caught.value.fact == f"the thing {path} cannot be read"
    assert caught.value.correction in ("check the path", "write another one")
    return caught.value


class TestFiles:
    def test_an_ordinary_file_and_a_link_to_one(self, tmp_path: Path) -> None:
        path = tmp_path / "thing"
        path.write_text("é" * 50, encoding="utf-8")
        (tmp_path / "link").symlink_to(path)
        assert KIND.read_text(path) == KIND.read_text(tmp_path / "link") == "é" * 50

    def test_what_has_no_end_or_is_waited_for_is_not_opened(self, tmp_path: Path) -> None:
        fifo, zero, link = tmp_path / "fifo", Path("/dev/zero"), tmp_path / "link"
        os.mkfifo(fifo)
        link.symlink_to(zero)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / "socket"))
            causes = [refused(path).cause for path in (fifo, zero, link, tmp_path, tmp_path / "socket")]
        assert causes == ["it is a FIFO", "it is a device", "it is a device", "it is a folder", "it is a socket"]

    def test_what_became_a_fifo_after_it_was_looked_at(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.mkfifo(tmp_path / "fifo")
        ordinary = tmp_path.with_name("x").parent / "ordinary"
        ordinary.write_text("")
        monkeypatch.setattr(Path, "stat", lambda _self: os.stat(ordinary))  # noqa: PTH116
        assert refused(tmp_path / "fifo").cause == "it is a FIFO"

    def test_one_byte_more_than_the_bound(self, tmp_path: Path) -> None:
        path = tmp_path / "thing"
        path.write_bytes(b"a" * 100)
        assert KIND.read_bytes(path) == b"a" * 100
        path.write_bytes(b"a" * 101)
        assert refused(path).cause == "it has 101 bytes; at most 100 are read"
        with path.open("wb") as file:  # sparse: no byte of it is read
            file.truncate(1 << 40)
        assert refused(path).cause == "it has 1,099,511,627,776 bytes; at most 100 are read"

    def test_a_file_that_says_it_is_empty_and_is_not(self) -> None:
        assert Path("/proc/self/maps").stat().st_size == 0
        assert refused(Path("/proc/self/maps")).cause == "it has more than 100 bytes"

    def test_what_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "thing"
        path.write_bytes(b"ab\xff")
        assert refused(path).cause == "it is not text in UTF-8: invalid start byte at byte 2"


class TestJson:
    @pytest.mark.parametrize(
        "value",
        [
            {"a": [1, -2.5, "x", None, True]}, [], "1" * 5000, 2**64 - 1, "[" * 5000, '\\"[', "\U0001f600",
            {"": {"": ""}}, [[["\\"]]],
        ],
    )  # fmt: skip
    def test_a_document_is_its_value(self, value: Any) -> None:
        for ascii_only in (True, False):
            assert json_value(json.dumps(value, ensure_ascii=ascii_only), MOST) == value

    @pytest.mark.parametrize(
        ("text", "over"),
        [
            ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "it nests deeper than 32 brackets"),
            ('{"a":' * 60_000 + "1" + "}" * 60_000, "it nests deeper than 32 brackets"),
            ("[" * 100_000, "it nests deeper than 32 brackets"),
            ("[1, " + "1" * (MAX_DIGITS + 1) + "]", "it has a number of 21 digits; at most 20 are read"),
            ("[" + "[]," * MAX_JSON_LISTS + "1]", "it has 2,097,153 lists and objects; at most 2,097,152 are read"),
            ("[" + "1," * MAX_JSON_VALUES + "1]", "it has 8,388,609 values; at most 8,388,608 are read"),
            ("[" + '"",' * (MAX_JSON_STRINGS + 1) + "1]", "it has 2,097,153 strings; at most 2,097,152 are read"),
            (" " * (MOST + 1), "it has 67,108,865 bytes; at most 67,108,864 are read"),
        ],
    )
    def test_nothing_is_made_of_what_is_too_large(self, text: str, over: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pipesim.inputs.json.loads", None)
        with pytest.raises(BoundError) as caught:
            json_value(text, MOST)
        assert str(caught.value) == over

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "Expecting value"),
            ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is there twice in one object"),
            ("[NaN]", "NaN is not JSON"),
            ("[-Infinity]", "-Infinity is not JSON"),
            ("[1e999]", "1e999 is larger than any number"),
            ('["\\ud800"]', "half of a UTF-16 pair"),
            ('["\ud800"]', "half of a UTF-16 pair"),
            ('["abc', "Unterminated string"),
            ("\ufeff{}", "Unexpected UTF-8 BOM"),
        ],
    )
    def test_what_is_no_document(self, text: str, why: str) -> None:
        with pytest.raises(ValueError, match=why) as caught:
            json_value(text, MOST)
        assert not isinstance(caught.value, BoundError)

    def test_a_kind_says_whose_document_it_is(self) -> None:
        with pytest.raises(ProfileError) as caught:
            KIND.parse_json("{", "a.json")
        error = caught.value
        assert (error.fact, error.place) == ("this is not a thing: it is not JSON", "a.json")
        assert error.correction == "write another one"
        with pytest.raises(ProfileError, match="this thing is larger than pipesim reads"):
            KIND.parse_json(" " * 101)
