"""Launches of rewritten kernels, each request in a process of its own with a limit of time; what each launch left."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from pipesim.bounds import MAX_CUBIN_BYTES
from pipesim.confirm.chip import REQUEST, RESULTS
from pipesim.confirm.memory import LaunchMemory
from pipesim.confirm.report import ChipDevice
from pipesim.confirm.rewrite import DelayedPtx
from pipesim.errors import HardwareError
from pipesim.inputs import InputKind
from pipesim.process.parent import environment
from pipesim.ptx.launch.values import Launch

_OLDER = re.compile(r"^\.target\s+sm_[5-8]\d\b", re.MULTILINE)
_START_S = 120  #: what starting CUDA, memory and modules may take
_LEFT = InputKind("results of launches", MAX_CUBIN_BYTES, HardwareError, "confirm again")


class ChipOutcome(Enum):
    """How a launch ended: with the results of the first, with others, because waits gave up, or not by itself."""

    SAME = "same"
    DIFFERS = "differs"
    HANG = "hang"
    STUCK = "stuck"  #: its process was ended
    TRAP = "trap"


@dataclass(frozen=True)
class LaunchSeen:
    """``waits``: CTA, warp, number of the site where lanes gave up; ``differ``: bytes; ``first``: in buffer, offset."""

    outcome: ChipOutcome
    waits: tuple[tuple[int, int, int], ...] = ()
    error: str = ""
    differ: int = 0
    first: tuple[int, int] = (-1, -1)


@dataclass(frozen=True)
class ManySeen:
    """``done`` launches, of which the last batch has some that ``seen`` says: numbers, and whether waits gave up.

    ``varies``: launches without delays left other results. ``ended``: how the batch after them has ended the process,
    "" if none did, and with which ``error``.
    """

    done: int
    seen: tuple[tuple[int, bool], ...] = ()
    varies: bool = False
    ended: str = ""
    error: str = ""


class Chip(Protocol):
    """What launches kernels: a GPU, or a machine of the tests."""

    device: ChipDevice

    def launch(
        self, kernels: Sequence[tuple[DelayedPtx, int]], launch: Launch, memory: LaunchMemory, limit_s: float
    ) -> list[list[LaunchSeen]]:
        """For each kernel its launches in order, fewer where one did not leave the context intact."""

    def many(
        self, kernel: DelayedPtx, tables: bytes, launch: Launch, memory: LaunchMemory, limit_s: float, *, batch: int
    ) -> ManySeen:  # fmt: skip
        """A launch with each table, of which the first have no delays, until a batch shows something.

        ``batch``: launches of one, at most.
        """


class GpuChip:
    """The first GPU of this machine. ``seed``: of the data."""

    def __init__(self, seed: int = 0) -> None:
        self.device = ChipDevice()
        self._seed = seed

    def launch(
        self, kernels: Sequence[tuple[DelayedPtx, int]], launch: Launch, memory: LaunchMemory, limit_s: float
    ) -> list[list[LaunchSeen]]:
        """In a process of its own; HardwareError where no launch could be made."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for n, (kernel, _) in enumerate(kernels):
                (folder / str(n)).write_bytes(machine_code(kernel))
                if kernel.table:
                    (folder / f"{n}.table").write_bytes(kernel.table)
            request = request_of(launch, memory) | {"limit_s": limit_s}
            request["kernels"] = [(str(n), times, each.busy) for n, (each, times) in enumerate(kernels)]
            lines = self._lines(folder, request, limit_s * (1 + sum(times for _, times in kernels)), "kernel")
        found: list[list[LaunchSeen]] = [[] for _ in kernels]
        for each in lines:
            if "kernel" in each:
                of = found[int(each.pop("kernel"))]
                waits = tuple((cta, warp, site) for cta, warp, site in each.pop("waits", ()))
                of.append(LaunchSeen(ChipOutcome(each.pop("outcome")), waits, **each))
        return found

    def many(
        self, kernel: DelayedPtx, tables: bytes, launch: Launch, memory: LaunchMemory, limit_s: float, *, batch: int
    ) -> ManySeen:  # fmt: skip
        """In a process of its own; HardwareError where no launch could be made."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "0").write_bytes(machine_code(kernel))
            (folder / "tables").write_bytes(tables)
            request = request_of(launch, memory) | {"limit_s": limit_s, "tables": "tables", "kernels": []}
            request |= {"table_bytes": len(kernel.table), "batch": batch}
            count = len(tables) // len(kernel.table)
            lines = self._lines(folder, request, limit_s * (1 + count), "batch")
        batches = [each for each in lines if "batch" in each]
        done, last = 0, batches[-1]
        for each in batches[:-1] if "ended" in last else batches:
            done += each["batch"]
        first = done - last["batch"]
        seen = tuple((first + n, bool(hangs)) for n, hangs in last.get("seen", ()))
        varies = any(each.get("varies") for each in batches)
        return ManySeen(done, seen, varies, last.get("ended", ""), last.get("error", ""))

    def _lines(self, folder: Path, request: dict[str, Any], seconds: float, asked: str) -> list[dict[str, Any]]:
        """Carry a request out; the lines that it left, of which one has a member that was asked for."""
        (folder / REQUEST).write_text(json.dumps(request | {"seed": self._seed}), encoding="utf-8")
        said = _carry_out(folder, _START_S + seconds, "many" if "tables" in request else "chip")
        text = _LEFT.read_text(folder / RESULTS) if (folder / RESULTS).exists() else ""
        lines = [_LEFT.parse_json(line) for line in text.splitlines() if line.endswith("}")]
        if not any(asked in each for each in lines):
            nothing = {"fact": "the process that launches the kernel left nothing", "cause": said}
            raise HardwareError(**next((each["error"] for each in lines if "error" in each), nothing))
        self.device = next((ChipDevice(**each) for each in lines if "driver" in each), self.device)
        return lines


def request_of(launch: Launch, memory: LaunchMemory) -> dict[str, Any]:
    """What a launch needs beside the kernel: for the process that makes it, and for others who make it."""
    shape = {name: getattr(launch, name) for name in ("entry", "grid", "block", "cluster", "dynamic_shared")}
    return shape | {"memory": asdict(memory)}


def machine_code(kernel: DelayedPtx) -> bytes:
    """A cubin; without an assembler the text, for the driver.

    The driver also gets a text for GPUs older than Hopper, whose cubin others do not take.
    """
    from hwkernels.rewriter import assemble

    if _OLDER.search(kernel.text):
        return kernel.text.encode() + b"\0"
    try:
        return assemble(kernel.text, kernel.entry).cubin
    except HardwareError:
        return kernel.text.encode() + b"\0"


def _carry_out(folder: Path, limit_s: float, module: str) -> str:
    """Run the process; the end of what it wrote on standard error."""
    variables = {**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    command = [sys.executable, "-P", "-m", f"pipesim.confirm.{module}", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603  # our own interpreter and module
            command, env=variables, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {limit_s:.0f} s, and was ended"
    return (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
