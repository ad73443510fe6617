"""A kernel of the corpus, and where its two files go."""

from pathlib import Path
from typing import NamedTuple

from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch


class CorpusKernel(NamedTuple):
    """One kernel: its architecture, name, PTX, and launch."""

    arch: str
    name: str
    ptx: str
    launch: Launch

    @property
    def stem(self) -> str:
        """What its files are called, without an ending."""
        return f"{self.name}-{self.arch}"

    def save(self, folder: Path) -> None:
        """Write its PTX and its launch file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.stem}.ptx").write_text(self.ptx, encoding="utf-8")
        (folder / f"{self.stem}.json").write_text(launch_json(self.launch), encoding="utf-8")
