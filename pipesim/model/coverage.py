"""What a program leaves out of the kernel that it was read from, and what its front end took for granted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coverage:
    """Sentences, each with its place, in the words of reports.

    ``stopped``: agents that were not followed to their end, so that nothing can be proved or refuted of the kernel.
    ``blocked``: agents that waited when no agent could go on, so that nothing can be proved. ``left_out``: accesses and
    instructions that the program does not have; no verdict is about them. ``inferred``: sizes that were worked out.
    ``assumed``: what the verdict rests on beyond the program. ``rejoined``: places where lanes of a warp that parted
    are taken to meet again, which PTX does not promise. ``undefined``: what PTX leaves undefined, such as registers
    that are read before what writes them is complete, so that nothing can be proved. ``weakened``: an order that the
    kernel has and the program has not, so that what is refuted of the program may be right in the kernel.
    ``extracted``: what was read, in numbers.
    """

    stopped: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    rejoined: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every agent was followed to its end."""
        return not self.stopped and not self.blocked


WHOLE = Coverage()  #: of a program that describes all there is
