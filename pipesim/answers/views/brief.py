"""An answer of ``check`` in at most 2 kB: what a person, a log or another program needs first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Brief:
    """The verdict and its sentence; of the first finding its kind, how sure it is, and what to do.

    ``findings``: how many there are; without one all that follows is empty. ``places``: at most two source lines,
    ``file:number``, that of the finding first. ``replay`` is a command line, "" where it has no room or no name.
    """

    verdict: str
    said: str
    findings: int = 0
    kind: str = ""
    basis: str = ""
    claim: str = ""
    places: tuple[str, ...] = ()
    correction: str = ""
    replay: str = ""
