"""A compiled kernel and one launch of it, and the two files that ``pipesim check`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from pipesim.trace.whole import require_free, write_whole


@dataclass(frozen=True)
class CompiledLaunch:
    """The PTX of a kernel, ``arch`` for which it was compiled ("sm_90a"), and one launch of it."""

    name: str
    arch: str
    ptx: str
    launch: Launch

    def save(self, folder: Path | str, *, force: bool = False) -> tuple[Path, Path]:
        """Write ``NAME.ptx`` and ``NAME.json`` into a folder; their paths. OutputExistsError unless ``force``."""
        texts = {".ptx": self.ptx, ".json": launch_json(self.launch)}
        paths = {Path(folder) / f"{self.name}{suffix}": text for suffix, text in texts.items()}
        for path in paths:
            require_free(path, force=force)  # of both, before one is written
        for path, text in paths.items():
            write_whole(path, text.encode(), force=force)
        first, second = paths
        return first, second
