"""Results files of a sweep (docs/sweep.md): damaged bytes, and rows that were mutated and signed again.

A damaged file is refused, or its damaged end is computed again: then the answer is that of a sweep without a file.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pipesim.answers.sweep.sweep import Sweep, Where, sweep
from pipesim.export.as_json import plain
from pipesim.targets import find
from pipesim.timed.profile import load_profile
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.mutate import damaged, mutated

_LINE = "sweep producer_consumer -p stages=1,2 -p tiles=3 -p tile_bytes=1024 --jobs 1 --json --results s.jsonl"
_MORE: tuple[tuple[str, ...], ...] = (
    (), ("--by", "run"), ("--by", "period"), ("--by", "throughput"), ("--within", "50"), ("--within", "0"),
)  # fmt: skip


def make(rng: Random) -> Case:
    """A results file with one to three mutations."""
    data, _ = _sound()
    words_of_line = (*_LINE.split(), *rng.choice(_MORE))
    if rng.random() < 0.6:
        said = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            data, words = damaged(data, rng)
            said.append(words)
        return Case(", ".join(said), {"s.jsonl": data}, words_of_line, _as_without_a_file(data))
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    row, words = mutated(json.loads(lines[at][9:]), rng)
    text = json.dumps(row).encode()
    lines[at] = b"%08x %s" % (zlib.crc32(text), text)
    return Case(f"line {at}: {words}", {"s.jsonl": b"\n".join(lines) + b"\n"}, words_of_line)


def _as_without_a_file(data: bytes) -> Confirm:
    """An answer on damaged bytes has the configurations of a sweep that reads none."""

    def confirmed(answer: Answer) -> str | None:
        if answer.code == 2:
            return None
        found = answer.document["report"]["configurations"]
        for each in found:
            del each["limit"]
        return "" if found == _sound()[1] else f"an answer from a damaged file of {len(data)} bytes: {found}"

    return confirmed


@cache
def _sound() -> tuple[bytes, Any]:
    """The file of a whole sweep, and its configurations as a document has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        fixed = {"tiles": 3, "tile_bytes": 1024}
        asked = Sweep(find("producer_consumer"), {"stages": (1, 2)}, fixed, load_profile("h100"))
        report = sweep(asked, Where(results=path))
        return path.read_bytes(), plain(report.configurations)
