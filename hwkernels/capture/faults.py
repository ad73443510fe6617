"""Faults that can be put into the kernel on purpose: each happens once, at one iteration of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesim.errors import ParameterError
from pipesim.trace.schema import FAULTS

__all__ = ["FAULTS", "KernelFault", "check_fault", "expected_bytes", "parse_fault"]


@dataclass(frozen=True)
class KernelFault:
    """What goes wrong, one of ``FAULTS``, and at which iteration."""

    kind: str
    iteration: int

    def __str__(self) -> str:
        return f"{self.kind}@{self.iteration}"

    @property
    def number(self) -> int:
        """The kernel's PIPESIM_FAULT."""
        return FAULTS.index(self.kind) + 1


def parse_fault(text: str) -> KernelFault:
    """The fault of ``KIND@ITERATION``. ParameterError if it is none."""
    kind, at, iteration = text.partition("@")
    if kind not in FAULTS:
        raise ParameterError(f"there is no fault {kind!r}", correction=f"use one of {', '.join(FAULTS)}")
    if not at or not iteration.isascii() or not iteration.isdigit():
        raise ParameterError(f"{text!r} does not name an iteration", correction=f"write, for example, {kind}@7")
    return KernelFault(kind, int(iteration))


def check_fault(fault: KernelFault, params: Mapping[str, int]) -> None:
    """ParameterError if a kernel of these parameters never comes to where the fault is, or cannot have it."""
    tiles, stages = params["tiles"], params["stages"]
    if fault.iteration >= tiles:
        raise ParameterError(
            f"{fault} is after the last of {tiles} tiles", correction=f"use {fault.kind}@0 to {fault.kind}@{tiles - 1}"
        )
    if fault.kind == "swapped_stages" and (stages == 1 or fault.iteration + 1 >= tiles):
        raise ParameterError(
            f"{fault} has no other stage to swap with",
            cause="it swaps an iteration with the next",
            correction="use 2 stages or more, and not the last tile",
        )
    if fault.kind == "phase_not_toggled" and fault.iteration // stages == (tiles - 1) // stages:
        raise ParameterError(
            f"{fault} has no effect: there is no lap after it",
            cause=f"{tiles} tiles in {stages} stages",
            correction="use an earlier tile, or more tiles",
        )
    if fault.kind == "expect_less" and params["tile_bytes"] < 32:
        raise ParameterError(f"{fault} needs tiles of 32 bytes or more", cause="it expects half of a tile's bytes")


def expected_bytes(fault: KernelFault | None, tile_bytes: int) -> int:
    """The bytes that a faulty iteration expects instead of a tile's: those of the kernel."""
    match fault.kind if fault is not None else "":
        case "expect_more":
            return tile_bytes + 16
        case "expect_less":
            return tile_bytes // 32 * 16
        case _:
            return tile_bytes
