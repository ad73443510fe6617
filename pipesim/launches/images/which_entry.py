"""Which entry of a fat binary the driver runs on a device, and whether the binary has the PTX of what runs.

Source of the rule: CUDA programming guide, "Compute capabilities" and "Feature set compiler targets". Machine code runs
on devices of the same major and the same or a higher minor number; code for ``sm_90a`` on that one alone; code for
``sm_100f`` in its family, which is the same rule as without ``f``. PTX is compiled for any device that is not older,
with ``a`` for that one, with ``f`` for its family. Machine code is preferred to PTX. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipesim.launches.images.fat_binary import Architecture, EntryKind, FatEntry


@dataclass(frozen=True)
class Choice:
    """``ptx``: the entry with the PTX of what runs; None where it is not known, with the reason in one sentence."""

    ptx: FatEntry | None
    why_not: str = ""


def choose(entries: Sequence[FatEntry], device: str, *, force_ptx: bool = False) -> Choice:
    """The PTX that describes what runs on a device (``sm_90``).

    It is the one that the driver compiles, or the one of the same architecture as the machine code that runs: nvcc
    makes both from one source, though not necessarily from one another. ``force_ptx``: the process has
    ``CUDA_FORCE_PTX_JIT=1``, with which the driver ignores machine code. Where two entries fit equally, which one runs
    is not documented, and there is no PTX. CodeImageError for a device that is not written like ``sm_90``.
    """
    here = Architecture.named(device)
    ptx = [entry for entry in entries if entry.kind == EntryKind.PTX]
    code = [entry for entry in entries if entry.kind == EntryKind.ELF and not force_ptx]
    fitting = _best([entry for entry in code if _runs(entry.architecture, here)])
    if fitting:
        run = {entry.architecture for entry in fitting}
        same = [entry for entry in ptx if entry.architecture in run]
        has = f"its fat binary has machine code for {_names('sm', fitting)} and "
        if len(fitting) > 1 and same:
            return Choice(None, f"its fat binary has several machine codes for {device}: {_names('sm', fitting)}")
        reason = f"PTX only for {_names('compute', ptx)}" if ptx else "no PTX"
        return _only(same, has + reason, f"{has}{len(same)} PTX texts for it")
    compiled = _best([entry for entry in ptx if _compiles(entry.architecture, here)])
    has = f"its fat binary has nothing for {device}: "
    parts = [f"machine code for {_names('sm', code)}"] if code else []
    parts += [f"PTX for {_names('compute', ptx)}"] if ptx else []
    nothing = has + (" and ".join(parts) or "it is empty")
    return _only(compiled, nothing, f"its fat binary has several PTX texts for {device}: {_names('compute', compiled)}")


def _only(found: Sequence[FatEntry], none: str, several: str) -> Choice:
    return Choice(found[0]) if len(found) == 1 else Choice(None, several if found else none)


def _best(entries: Sequence[FatEntry]) -> list[FatEntry]:
    """Those of the highest number."""
    most = max((entry.architecture.number for entry in entries), default=0)
    return [entry for entry in entries if entry.architecture.number == most]


def _runs(code: Architecture, device: Architecture) -> bool:
    if code.variant == "a":
        return code.number == device.number
    return code.number // 10 == device.number // 10 and code.number <= device.number


def _compiles(ptx: Architecture, device: Architecture) -> bool:
    return _runs(ptx, device) if ptx.variant else ptx.number <= device.number


def _names(prefix: str, entries: Sequence[FatEntry]) -> str:
    """``compute_80, compute_120``."""
    return ", ".join(f"{prefix}_{each}" for each in sorted({entry.architecture for entry in entries}))
