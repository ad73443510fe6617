"""The table of the corpus: what was followed to its end, the verdicts, the seconds, and why not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from tools.corpus.verdicts import KernelVerdict

_ROW = "| {} |"
_HEAD = ("family", "kernel", "arch", "operations", "followed", "verdict", "seconds", "why not")
_NOT_BUILT = "not built"
_LONGEST = 160  #: characters of a reason


def rows(found: Sequence[KernelVerdict]) -> list[str]:
    """The lines of the table in Markdown, one a kernel."""
    lines = [_ROW.format(" | ".join(_HEAD)), _ROW.format(" | ".join("---" for _ in _HEAD))]
    return lines + [_ROW.format(" | ".join(_cells(each))) for each in found if each.verdict != _NOT_BUILT]


def _cells(each: KernelVerdict) -> tuple[str, ...]:
    followed = "" if not each.operations else "stopped" if each.stopped else "blocked" if each.blocked else "yes"
    why = each.why[0] if each.why else ""
    return (
        each.family,
        f"`{each.kernel}`",
        each.arch,
        f"{each.operations:,}" if each.operations else "",
        followed,
        each.verdict,
        f"{each.seconds:.2f}" if each.operations else "",
        _short(why),
    )


def _short(why: str) -> str:
    """A reason without bars, which would end the cell, and not longer than a line or two."""
    plain = re.sub(r"\s+", " ", why.replace("|", "/"))
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3].rstrip() + "..."


def summary(found: Sequence[KernelVerdict]) -> list[str]:
    """How many of each family came how far, and the seconds of all."""
    lines = ["| family | kernels | followed to the end | proved | refuted | unknown |", "|---|---|---|---|---|---|"]
    families = list(dict.fromkeys(each.family for each in found))
    for name, part in [*((f, [e for e in found if e.family == f]) for f in families), ("all", list(found))]:
        built = [each for each in part if each.verdict != _NOT_BUILT]
        counts = [sum(each.verdict == verdict for each in built) for verdict in ("proved", "refuted", "unknown")]
        whole = sum(bool(each.operations) and not each.stopped for each in built)
        lines.append(_ROW.format(" | ".join([name, str(len(built)), str(whole), *map(str, counts)])))
    seconds = sorted(each.seconds for each in found if each.operations)
    if seconds:
        memory = max(each.memory for each in found)
        lines += [
            "",
            f"From PTX to verdict: median {median(seconds):.2f} s, longest {seconds[-1]:.1f} s, memory at most",
        ]
        lines[-1] += f" {memory:,} MB."
    missing = [f"{each.family}/{each.kernel}-{each.arch}" for each in found if each.verdict == _NOT_BUILT]
    return [*lines, "", f"Not built: {', '.join(missing)}."] if missing else lines
