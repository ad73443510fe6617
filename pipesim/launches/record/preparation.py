"""One launch of a kernel, made ready to be recorded: the one file that asks the rewriter in the recorded process."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipesim.bounds import MAX_TEXT
from pipesim.errors import LaunchFileError, ParameterError, PipesimError
from pipesim.inputs import json_value
from pipesim.launches.files.launch_file import describe_launch, kernel_text
from pipesim.launches.records.read import LAUNCH_MEMBERS, launch_record
from pipesim.ptx.launch.members import Members
from pipesim.ptx.launch.values import Launch

if TYPE_CHECKING:
    from hwkernels.rewriter import AssembledCubin, RewriteOptions


OPTIONS = "PIPESIM_RECORD"  #: the environment variable that says the same to a child process, as JSON
MOST_LAUNCHES = 1024
_MOST_DEADLINE_S = 24 * 3600.0


@dataclass(frozen=True)
class RecordOptions:
    """``launches`` of each kernel are recorded, after the first ``skip`` of them.

    ``deadline_s``: seconds after which a launch is stopped, None: it is waited for. ``waits_only``: records at waits
    alone, where registers are short. ``cta``: the CTA that leaves records, with the others of its cluster.
    ``ends_process``: where a launch does not end although it is stopped. Raises ParameterError for a value out of its
    range.
    """

    launches: int = 1
    skip: int = 0
    deadline_s: float | None = None
    waits_only: bool = False
    cta: int = 0
    ends_process: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.launches <= MOST_LAUNCHES:
            raise ParameterError(
                f"{self.launches:,} launches to record", correction=f"use 1 to {MOST_LAUNCHES:,} of each kernel"
            )
        if self.skip < 0:
            raise ParameterError(f"{self.skip:,} launches to skip", correction="use 0 or more")
        if not 0 <= self.cta < 1 << 31:
            raise ParameterError(f"CTA {self.cta:,} to record", correction="use a CTA's number in the grid, from 0")
        if self.deadline_s is not None and not (
            math.isfinite(self.deadline_s) and 0 < self.deadline_s <= _MOST_DEADLINE_S
        ):
            raise ParameterError(f"a deadline of {self.deadline_s} s", correction="use more than 0 s, at most a day")

    @property
    def stop_flag(self) -> bool:
        """Whether a kernel can be stopped; it costs a look at memory at each wait that spins."""
        return self.deadline_s is not None

    def to_environment(self) -> dict[str, str]:
        """The variable for a child process."""
        return {OPTIONS: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> RecordOptions:
        """What the variable says; the defaults where it is missing."""
        given = environment.get(OPTIONS, "")
        return cls(**json_value(given, MAX_TEXT)) if given else cls()


NO_BARRIER = "no barrier"
_VARIABLE = re.compile(
    r"^[ \t]*(?P<linkage>(?:\.(?:visible|weak|common|extern)\s+)*)\.(?P<space>global|const)\b"
    r"(?P<type>[^=;{]*?)\s(?P<name>[\w$%.]+)(?:\[[^\]]*\])*\s*(?P<value>=[^;]*)?;",
    re.MULTILINE,
)
_BODY = re.compile(r"^\s*\{(.*?)^\s*\}", re.MULTILINE | re.DOTALL)


class NotRecordableError(PipesimError):
    """A kernel that is left as it is, for a reason that is not a mistake."""


class NoBarrierError(NotRecordableError):
    """A kernel in which no warp waits for another one."""


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
class Assembler:
    """The ptxas of a kernel's own compiler (of PATH if None), and the options that decide about its results."""

    ptxas: Path | None = None
    options: tuple[str, ...] = ()


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
    assembler: Assembler = Assembler(),
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
    before, after = (
        assemble(text, launch.entry, assembler.ptxas, assembler.options) for text in (ptx, found.ptx)
    )  # by one assembler: what changes is the records' doing
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
