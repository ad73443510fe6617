"""What a ``with`` block yields whose files are written when it ends, or when the result is asked for before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Report = TypeVar("Report")


class BlockReport(Generic[Report]):
    """Files of a folder in the making. To ask for anything of it ends that, if it has not ended."""

    def __init__(self, folder: Path, finish: Callable[[], Report]) -> None:
        self._folder = folder
        self._finish = finish
        self._report: Report | None = None

    def stop(self) -> None:
        """End it and write the files; nothing if that was done. UsageError if they cannot be written."""
        if self._report is None:
            self._report = self._finish()

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    @property
    def report(self) -> Report:
        """Everything that was observed, as data; its fields may change between versions."""
        self.stop()
        assert self._report is not None
        return self._report
