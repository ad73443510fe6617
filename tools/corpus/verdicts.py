"""What ``check`` says of each kernel of the corpus: followed to the end or where it stopped, verdict, seconds."""

from __future__ import annotations

import json
import multiprocessing
import re
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from operator import ne
from pathlib import Path
from statistics import median

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.errors import PipesimError
from pipesim.inputs import source_roots
from pipesim.model.finding import Verdict
from pipesim.ptx.emit.names import TILE_FROM
from pipesim.ptx.kernel import read_kernel
from pipesim.report.findings.brief import in_short
from pipesim.targets import target_of

_ROW = "| {} |"
_HEAD = ("family", "kernel", "arch", "operations", "followed", "verdict", "basis", "whose", "seconds", "on an H200",
         "why not")  # fmt: skip
_NOT_BUILT = "not built"
_ON_AN_H200 = json.loads(Path(__file__).with_name("on_an_h200.json").read_text())  #: what it showed
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
        each.basis,
        each.owner,
        f"{each.seconds:.2f}" if each.operations else "",
        _ON_AN_H200.get(f"{each.family}/{each.kernel}-{each.arch}", ""),
        _short(why),
    )


def _short(why: str) -> str:
    """A reason without bars, which would end the cell, and not longer than a line or two."""
    plain = re.sub(r"\s+", " ", why.replace("|", "/"))
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3].rstrip() + "..."


def summary(found: Sequence[KernelVerdict]) -> list[str]:
    """How many of each family came how far, and the seconds of all."""
    lines = ["| family | kernels | followed to the end | proved | refuted | unknown | barriers named | tiles named |"]
    lines.append("|---" * lines[0].count("|", 1) + "|")
    families = list(dict.fromkeys(each.family for each in found))
    for name, part in [*((f, [e for e in found if e.family == f]) for f in families), ("all", list(found))]:
        built = [each for each in part if each.verdict != _NOT_BUILT]
        counts = [sum(each.verdict == verdict for each in built) for verdict in ("proved", "refuted", "unknown")]
        whole = sum(bool(each.operations) and not each.stopped for each in built)
        sums = [[sum(each.named[kind][n] for each in built) for n in (0, 1)] for kind in (0, 1)]
        named = [f"{with_name} of {count}" for with_name, count in sums]
        lines.append(_ROW.format(" | ".join([name, str(len(built)), str(whole), *map(str, counts), *named])))
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


_MB = 1 << 10  #: KiB, in which the operating system counts


@dataclass(frozen=True)
class KernelVerdict:
    """One kernel. ``why``: why it is not proved, one sentence a reason."""

    family: str
    kernel: str
    arch: str
    operations: int = 0
    stopped: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    verdict: str = ""
    basis: str = ""  #: of what refutes it: the surest
    owner: str = ""  #: whose the lines of its findings are
    seconds: float = 0.0  #: from PTX to verdict
    #: Barriers and tiles: those that the source names, of how many; none of a PTX without lines.
    named: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    memory: int = 0  #: MB at most, of the process that read and proved it
    why: tuple[str, ...] = ()


def verdicts_of(folder: Path, listed: Sequence[tuple[str, str, str]], seconds: float) -> Iterator[KernelVerdict]:
    """Each kernel of a list of family, name and architecture, in a process of its own that may take so long."""
    for family, kernel, arch in listed:
        yield _apart(folder / family / f"{kernel}-{arch}.ptx", KernelVerdict(family, kernel, arch), seconds)


def _apart(ptx: Path, empty: KernelVerdict, seconds: float) -> KernelVerdict:
    if not ptx.is_file():
        return replace(empty, verdict=_NOT_BUILT, why=(f"there is no {ptx.name}: see what building it printed",))
    context = multiprocessing.get_context("fork")  # after the imports, which are not part of a verdict's time
    ours, theirs = context.Pipe(duplex=False)
    running = context.Process(target=_measure, args=(ptx, empty, theirs), daemon=True)
    running.start()
    theirs.close()
    found = empty
    deadline = time.monotonic() + seconds
    while ours.poll(max(deadline - time.monotonic(), 0)):
        try:
            found = ours.recv()
        except EOFError:
            break
    else:
        found = replace(found, verdict="unknown", why=(f"not decided within {seconds:.0f} s",))
    running.kill()
    running.join()
    return found if found.verdict else replace(found, verdict="unknown", why=("the process ended without a verdict",))


def _measure(ptx: Path, empty: KernelVerdict, answer: Connection) -> None:
    """Send what is known after reading, then the verdict."""
    start = time.process_time()
    try:
        with source_roots([Path("/")]):  # the sources of a corpus that was built here, wherever its compilers have them
            found = read_kernel(ptx)
    except PipesimError as error:
        answer.send(replace(empty, verdict="not read", why=(str(error).split("\n")[0],)))
        return
    program, coverage = found.program, found.program.coverage
    known = replace(
        empty,
        operations=sum(map(len, program.code)),
        stopped=coverage.stopped,
        blocked=coverage.blocked,
        seconds=time.process_time() - start,
    )
    if any(each.source for each in found.kernel.function.body):
        said = [(each.name, each.stage) for each in program.barriers]
        tiles = [not each.name.startswith(TILE_FROM) for each in program.tiles]
        named = (sum(map(ne, said, found.by_line)), len(said)), (sum(tiles), len(tiles))
        known = replace(known, named=named)
    answer.send(known)
    report = check(replace(target_of(program), kernel=found), {}, quick=True)
    answer.send(
        replace(
            known,
            verdict=report.verdict.value,
            basis=next((each.value for each in Basis if each in {r.basis for r in report.refutations}), ""),
            owner=", ".join(dict.fromkeys(r.origin.owner.value for r in report.refutations)),
            seconds=time.process_time() - start,
            memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _MB,
            why=_reasons(report, (*coverage.stopped, *coverage.blocked)),
        )
    )


def _reasons(report: CheckReport, ends: Sequence[str]) -> tuple[str, ...]:
    """Where it stopped, what is wrong, else what is doubtful."""
    if report.verdict is Verdict.PROVED:
        return ()
    if report.verdict is Verdict.REFUTED:
        return (*ends, *(in_short(each.finding) for each in report.refutations))
    doubts = dict.fromkeys(f"{each.why}: {each.what} ({each.line})" for each in report.doubts)
    return tuple(ends) or tuple(doubts)[:3] or ("" if report.how is None else report.how.value,)
