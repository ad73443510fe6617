"""Core dumps of a GPU (docs/hangs.md), with damaged headers, tables, registers and code, packed or as they are."""

import lzma
from functools import cache
from random import Random

from tests.coredump.mutations import damaged as damaged_tables
from tests.support.paths import ROOT
from tools.fuzz.cases import Case
from tools.fuzz.mutate import damaged

_COMMANDS = ("autopsy core --json", "autopsy core", "autopsy core --anonymous", "autopsy core --json --anonymous",
             "autopsy core --html h.html")  # fmt: skip


@cache
def _right() -> bytes:
    return lzma.decompress((ROOT / "tests/coredump/dumps/ring.elf.xz").read_bytes())


def make(rng: Random) -> Case:
    """A dump with damage to its tables, or to the bytes of one that is packed."""
    data, said = damaged_tables(_right(), seed := rng.randrange(1 << 30)), f"tables {seed}"
    if rng.random() < 0.3:
        data, said = damaged(lzma.compress(data, preset=0), rng)
    return Case(said, {"core": data}, tuple(rng.choice(_COMMANDS).split()), outputs=("h.html",))
