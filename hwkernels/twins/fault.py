"""Faults that can be injected into a twin: each happens once, at one iteration of one agent."""

from dataclasses import dataclass

from pipesim.errors import ParameterError
from pipesim.trace.schema import FAULTS


@dataclass(frozen=True)
class KernelFault:
    """What fails, one of ``FAULTS``, and at which iteration."""

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
