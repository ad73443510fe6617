"""What a check of a folder, a program or a library answers: a row for each of its kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

GUESSED = " guessed"  #: ends what is said of a launch of which something is


@dataclass(frozen=True)
class KernelRow:
    """A kernel in one launch, which a file says (``launch``), or what of it is guessed. ``title``: its name without a
    compiler's letters. ``verdict``: "" where none was asked for, or possible; ``said`` says it, or why. ``needs``:
    options that give what is missing for one. ``exit_code``: of a check of this kernel alone.
    """

    name: str
    title: str
    origin: str
    arch: str
    mbarriers: bool
    launch: str = ""
    said: str = ""
    verdict: str = ""
    needs: tuple[str, ...] = ()
    exit_code: int = 0

    @property
    def guessed(self) -> str:
        """What of the launch is guessed and may decide a verdict, "" if nothing is: all shared memory always may be."""
        last = re.sub(r"(, )?shared [\d,]+(?= guessed)", "", self.launch.rpartition("; ")[2])
        return last.removesuffix(GUESSED) if last.endswith(GUESSED) else ""
