"""What a verdict may assume beyond the program, by name. Each assumption has a switch with which nothing is assumed."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from pipesim.errors import UsageError


class Assumption(Enum):
    """What a verdict may rest on. The value is its name: ``--strict-NAME``, ``pipesim explain NAME``, and in JSON.

    Those of :data:`RULES` are rules of PTX that the measured hardware does not need: with the switch what breaks them
    is a finding. The others are facts about the launch, about other kernels or about the compiler that a program does
    not show: with the switch a proof that needs one is unknown. Words for each: :mod:`pipesim.findings.assumptions`.
    """

    PROXIES = "proxies"  #: reads complete before the arrive that follows them, without a proxy fence
    INIT = "init"  #: an init is visible to copies and commits of its CTA, without a fence
    TENSOR_MEMORY = "tensor-memory"  #: tensor memory may be read where nothing has been written
    TENSOR_FENCES = "tensor-fences"  #: threads that synchronise order their accesses to tensor memory, without a fence
    LANES = "lanes"  #: lanes of a warp that parted are together again, where PTX does not say so
    COMMITS = "commits"  #: commits of one thread complete in the order in which they were issued
    EXIT = "exit"  #: what is under way when its CTA ends still reads the CTA's memory, and completes
    PATTERN = "pattern"  #: roles keep repeating the pattern seen in the sizes that were checked
    REGISTERS = "registers"  #: the registers of a thread at the launch
    TIME_OUTS = "time-outs"  #: a wait with a time limit does not time out
    GLOBAL_LOOPS = "global-loops"  #: a loop ends that waits for global memory
    GLOBAL_WORDS = "global-words"  #: a word of global memory is read before another warp changes it
    TRAPS = "traps"  #: a trap is not reached
    POLICIES = "policies"  #: what cluster launch control, a counter or a lock answers
    EQUAL_STORES = "equal-stores"  #: warps that store to the same bytes store equal values
    EXITED_THREADS = "exited-threads"  #: threads that have ended count at a barrier of all threads
    GENERIC_ADDRESSES = "generic-addresses"  #: of a generic address given to .shared the low 32 bits count
    TENSOR_LANES = "tensor-lanes"  #: of an address of tensor memory in lanes 0 to 31 a warp means its own 32 lanes
    TENSOR_LOADS = "tensor-loads"  #: tcgen05.ld has ended where its registers are read, without tcgen05.wait::ld

    @property
    def switch(self) -> str:
        """``--strict-proxies``."""
        return f"--strict-{self.value}"


Strictness = frozenset[Assumption]  #: the assumptions that may not be made

#: What is a rule of the machine or of the memory model: where it is strict, what breaks it is a finding.
RULES = Strictness(
    {
        Assumption.PROXIES,
        Assumption.INIT,
        Assumption.TENSOR_MEMORY,
        Assumption.TENSOR_FENCES,
        Assumption.LANES,
        Assumption.COMMITS,
        Assumption.EXIT,
    }
)
LENIENT = Strictness()  #: what the commands check for if nothing is asked
#: Of a program by itself, for which no rules were chosen: those that are part of the machine and of the fences.
BY_ITSELF = Strictness({Assumption.INIT, Assumption.TENSOR_MEMORY})
STRICTEST = Strictness(Assumption)


def switches(strict: Strictness) -> tuple[str, ...]:
    """How a command line says it."""
    if strict == STRICTEST:
        return ("--strict",)
    return tuple(each.switch for each in Assumption if each in strict)


def strictness_from(strict: Collection[str] | bool) -> Strictness:  # noqa: FBT001 - a keyword of every caller
    """What ``strict=True`` (all) or ``strict=("proxies", "init")`` of the Python API means; UsageError if unknown."""
    if isinstance(strict, bool):
        return STRICTEST if strict else LENIENT
    known = {each.value: each for each in Assumption}
    named = [strict] if isinstance(strict, str) else list(strict)
    if unknown := [str(name) for name in named if name not in known]:
        raise UsageError(
            f"strict: no assumption is called {', '.join(map(repr, unknown))}",
            correction=f"use True for all, or some of: {', '.join(known)}",
        )
    return Strictness(known[name] for name in named)
