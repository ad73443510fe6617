"""Which rules of PTX that the measured hardware does not need a verdict applies: each is a switch, off by default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Strictness:
    """Rules that are faults where they are broken; without the switch the verdict states an assumption, or notes it.

    ``proxies``: a fence between an access and a later write through the other proxy, also where the first one reads.
    ``init``: a fence after inits for copies and commits of their own CTA, also where a barrier of the CTA follows them.
    ``tensor_memory``: tensor memory is written before it is read. ``lanes``: lanes of a warp that parted run together
    only where PTX says so (``.aligned``, ``bar.warp.sync``, and other operations of all lanes).
    """

    proxies: bool = False
    init: bool = False
    tensor_memory: bool = False
    lanes: bool = False

    def arguments(self) -> tuple[str, ...]:
        """How a command line says it."""
        given = (
            ("proxies", self.proxies), ("init", self.init), ("tensor-memory", self.tensor_memory), ("lanes", self.lanes)
        )  # fmt: skip
        return tuple(f"--strict-{name}" for name, on in given if on)


LENIENT = Strictness()  #: what the commands check for if nothing is asked
#: Of a program by itself, for which no rules were chosen: those that are part of the machine and of the fences.
BY_ITSELF = Strictness(init=True, tensor_memory=True)
STRICTEST = Strictness(proxies=True, init=True, tensor_memory=True, lanes=True)
