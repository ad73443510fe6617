"""A spool folder in which anything may be changed: what is left is gathered, nothing raises or leaves the folder."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesim.launches.files.gather import gather
from pipesim.ptx.launch.file import read_launch
from tests.support.paths import ROOT
from tests.support.spools import record_of, write_spool

PTX = ROOT / "tests" / "ptx" / "kernels" / "scale_ws_s3-sm_90a.ptx"
TEXT = PTX.read_text(encoding="utf-8")
COUNT = {"kind": "count", "kernel": "scale_ws", "image": "i", "launches": 9, "distinct": 1, "left_out": 0}
RECORDS = [record_of(read_launch(PTX.with_suffix(".json").read_text(encoding="utf-8"), "x")), COUNT]
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1 << 31, 1 << 63, "", "x" * 300, "../x.ptx", "\x1b[2J", [], {}, [[]], ["a"], "7.jsonl",
    "f" * 16, [1 << 31, 1, 1], [1024, 1024, 64],
)  # fmt: skip


def members(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in members(value[key])]


def is_sound(folder: Path) -> int:
    """Gather a folder; every file that comes of it is one that can be read. How many launches there are."""
    report, texts = gather(folder)
    reasons = [kernel.reason for kernel in report.kernels]
    reasons += [each.reason for kernel in report.kernels for each in kernel.caught]
    assert [reason for reason in reasons if "internal error" in reason] == []
    for name, text in texts.items():
        assert "/" not in name
        assert not name.startswith(".")
        if name.endswith(".json"):
            read_launch(text, name)
    return len(report.written)


@pytest.mark.parametrize("seed", range(2))
def test_members_that_are_something_else(tmp_path: Path, seed: int) -> None:
    random, found = Random(seed), 0
    for n in range(40):
        records = json.loads(json.dumps(RECORDS))
        holder, key = random.choice(members(records))
        holder[key] = random.choice(HOSTILE)
        found += is_sound(write_spool(tmp_path / str(n), records, i=TEXT))
    assert 0 < found < 40, "some changes are harmless, and some are not"


@pytest.mark.parametrize("seed", range(2))
def test_bytes_that_are_others(tmp_path: Path, seed: int) -> None:
    random, found = Random(seed), 0
    for n in range(40):
        folder = write_spool(tmp_path / str(n), RECORDS, i=TEXT)
        path = random.choice([folder / "7.jsonl", folder / "i.ptx"])
        data = bytearray(path.read_bytes())
        for _ in range(random.choice([1, 1, 3, 30])):
            at = random.randrange(len(data))
            data[at : at + random.choice([0, 1, 1, 40])] = bytes(
                random.randrange(256) for _ in range(random.choice([1, 0, 8]))
            )
        path.write_bytes(data[: random.choice([len(data), len(data), random.randrange(len(data))])])
        found += is_sound(folder)
    assert 0 < found < 40
