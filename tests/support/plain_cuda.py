"""Kernels without mbarriers, as benchmarks of generated kernels have them: each right, and with one mistake.

A source in ``tests/plain_cuda`` says in its first two lines what it is, how it is launched, and what is wrong with it
where ``WRONG`` is 1.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from hwkernels.device.compile import compile_ptx
from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "plain_cuda"
_HEAD = re.compile(r"// (.+)\n// launch: grid ([\d ]+), block ([\d ]+), (\w+) = (\d+)(, x given)?; wrong: (.+)\n")


@dataclass(frozen=True)
class PlainKernel:
    """A kernel: what it does, and its mistake. ``number``: the value of its only word; ``given``: so are bytes of x."""

    name: str
    what: str
    mistake: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    number: int
    given: bool

    def launch(self) -> dict[str, object]:
        """Its launch file."""
        found = re.search(r"void \w+\((.+)\)", (FOLDER / f"{self.name}.cu").read_text(encoding="utf-8"))
        assert found is not None
        each = [parameter.rpartition(" ") for parameter in found[1].split(", ")]
        parameters = [self._pointer(name) if "*" in kind else self._word(name) for kind, _, name in each]
        head = {"format": "pipesim-launch", "version": 1, "entry": self.name}
        return {**head, "grid": self.grid, "block": self.block, "parameters": parameters}

    def _pointer(self, name: str) -> dict[str, object]:
        values = [37 * i % 256 for i in range(self.number)]
        known = [{"offset": 0, "kind": "array", "type": "u8", "values": values}] if self.given and name == "x" else []
        return {"name": name, "kind": "pointer", "contents": known}

    def _word(self, name: str) -> dict[str, object]:
        return {"name": name, "kind": "value", "type": "s32", "value": self.number}

    def write(self, folder: Path, *, wrong: bool) -> Path:
        """Its source, its PTX and its launch file in a folder; the path of the PTX."""
        shutil.copy(FOLDER / f"{self.name}.cu", folder)
        ptx = folder / f"{self.name}.ptx"
        ptx.write_text(compile_ptx(folder / f"{self.name}.cu", {"WRONG": int(wrong)}), encoding="utf-8")
        ptx.with_suffix(".json").write_text(json.dumps(self.launch()), encoding="utf-8")
        return ptx


def _kernel(path: Path) -> PlainKernel:
    found = _HEAD.match(path.read_text(encoding="utf-8"))
    assert found is not None, path
    what, grid, block, _, number, given, mistake = found.groups()
    ctas, threads = (tuple(map(int, text.split())) for text in (grid, block))
    return PlainKernel(path.stem, what, mistake, ctas, threads, int(number), bool(given))


PLAIN = tuple(map(_kernel, sorted(FOLDER.glob("*.cu"))))
