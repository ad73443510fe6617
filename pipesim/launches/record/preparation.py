"""One launch of a kernel, made ready to be recorded: the one file that asks the rewriter in the recorded process."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipesim.errors import LaunchFileError, PtxError
from pipesim.launches.files.launch_file import describe_launch, kernel_text
from pipesim.launches.observe.compilers import Assembler
from pipesim.launches.record.options import NO_BARRIER, NoBarrierError, NotRecordableError, RecordOptions
from pipesim.launches.records.read import LAUNCH_MEMBERS, launch_record
from pipesim.ptx.launch.members import Members
from pipesim.ptx.launch.values import Launch

if TYPE_CHECKING:
    from hwkernels.rewriter import AssembledCubin, RewriteOptions


_VARIABLE = re.compile(
    r"^[ \t]*(?P<linkage>(?:\.(?:visible|weak|common|extern)\s+)*)\.(?P<space>global|const)\b"
    r"(?P<type>[^=;{]*?)\s(?P<name>[\w$%.]+)(?:\[[^\]]*\])*\s*(?P<value>=[^;]*)?;",
    re.MULTILINE,
)
_BODY = re.compile(r"^\s*\{(.*?)^\s*\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Usage:
    """What ptxas said about a kernel: registers of a thread, and bytes of spills and of stack."""

    registers: int
    spills: int
    stack: int


def usage_change(before: AssembledCubin, after: AssembledCubin) -> tuple[Usage, Usage, tuple[str, ...]]:
    """What ptxas says about a kernel before and after it was instrumented, and its new warnings."""
    one, two = (Usage(each.registers, each.spills, each.stack) for each in (before, after))
    return one, two, tuple(each for each in after.warnings if each not in before.warnings)


@dataclass(frozen=True)
class PreparedKernel:
    """An instrumented kernel for one launch. ``initial``: what its buffer must hold before the launch."""

    kernel: str
    cubin: bytes
    symbol: str
    initial: bytes
    before: Usage
    after: Usage
    warnings: tuple[str, ...]


def prepare_kernel(
    record: dict[str, Any],
    ptx: str,
    options: RecordOptions,
    assembler: Assembler = Assembler(),  # noqa: B008
) -> PreparedKernel:
    """The instrumented kernel for the launch of a record (:mod:`pipesim.launches.records`).

    Raises NoBarrierError or another NotRecordableError, PtxError or LaunchFileError where it cannot be recorded,
    HardwareError without ptxas.
    """
    from hwkernels.rewriter import assemble, instrument

    launch = with_cta(launch_of(record, ptx), options.cta)
    require_no_variables(ptx)
    chosen = rewrite_options(stop_flag=options.stop_flag, waits_only=options.waits_only)
    found = instrument(ptx, "its PTX", launch, chosen)
    by = Path(assembler.ptxas) if assembler.ptxas else None
    try:
        before = assemble(ptx, launch.entry, by, assembler.options)
    except PtxError:
        if by is None:
            raise
        by = None  # the text may be of a newer compiler's than what is known of it
        before = assemble(ptx, launch.entry, by, assembler.options)
    after = assemble(found.ptx, launch.entry, by, assembler.options)  # by the same: what changes is the records' doing
    return PreparedKernel(
        launch.entry,
        after.cubin,
        found.symbol,
        found.initial(),
        *usage_change(before, after),
    )


def launch_of(record: dict[str, Any], ptx: str) -> Launch:
    """The launch of a record, as a launch file has it. Raises as :func:`prepare_kernel`."""
    given = launch_record(Members(record, "launch", LAUNCH_MEMBERS))
    text = kernel_text(ptx, "its PTX", given.kernel)
    if not text.has_barriers:
        raise NoBarrierError(NO_BARRIER)
    made = describe_launch(given, text)
    if made.compiled is None:
        raise LaunchFileError(made.reason)
    return made.compiled.launch


def with_cta(launch: Launch, cta: int) -> Launch:
    """The launch with another CTA that is followed. NotRecordableError if its grid has none of this number."""
    if not 0 <= cta < prod(launch.grid):
        raise NotRecordableError(
            f"its grid has {prod(launch.grid):,} CTAs, and none of the number {cta:,}",
            correction=f"use --cta 0 to {prod(launch.grid) - 1:,}",
        )
    return replace(launch, cta=cta)


def require_no_variables(ptx: str) -> None:
    """NotRecordableError if code of the module uses a variable of the module that may change.

    The instrumented kernel is in a module of its own, with variables of its own. Tables of constants may be used: what
    has a value in the text and no name that the host can find.
    """
    bodies = "\n".join(match[1] for match in _BODY.finditer(ptx))
    for match in _VARIABLE.finditer(_BODY.sub("", ptx)):
        constant = match["value"] and not match["linkage"] and (match["space"] == "const" or ".b8" in match["type"])
        if not constant and re.search(rf"(?<![\w$%.]){re.escape(match['name'])}(?![\w$%.])", bodies):
            raise NotRecordableError(
                f"it uses the variable {match['name'][:60]} of its module, of which an instrumented kernel has its own"
            )


def rewrite_options(*, stop_flag: bool, waits_only: bool) -> RewriteOptions:
    """What the rewriter is asked for. A kernel that may be stopped stores each record before it may block."""
    from hwkernels.rewriter import Level, RewriteOptions

    level = Level.WAITS if waits_only else Level.ALL
    return RewriteOptions(level=level, stop_flag=stop_flag, eager=stop_flag)
