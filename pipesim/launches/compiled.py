"""A compiled kernel and one launch of it, and the two files that ``pipesim check`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipesim.errors import OutputExistsError
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch


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
            if path.exists() and not force:
                raise OutputExistsError(f"{path} exists", correction="give another folder, or force=True")
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        first, second = paths
        return first, second
