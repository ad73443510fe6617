"""One access of a run, as those who compare accesses keep it."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.ops import Engine

OWN = 0  #: "flight" of an access that an agent makes itself


class AccessEvent(NamedTuple):
    """One access: its operation, whether it writes, the flight that makes it, and the cells ``first..end``."""

    agent: int
    pc: int
    writes: bool
    flight: int
    engine: int
    first: int
    end: int
    past: tuple[int, ...] = ()  #: operations of each agent that occur before it, on request
    written: int = -1  #: the same of writes that are no race whatever their order, -1 of any other access

    @property
    def generic(self) -> bool:
        """True if it is made through the generic proxy: by a thread, or by ``cp.async`` (PTX ISA, async proxy)."""
        return self.flight == OWN or self.engine == Engine.CP_ASYNC
