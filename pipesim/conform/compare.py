"""One trace against one program: behaviour first, then time."""

from __future__ import annotations

from pipesim.conform.replay import conform
from pipesim.conform.result import Comparison
from pipesim.conform.timing import compare_timing
from pipesim.model.program import Program
from pipesim.trace.schema import Trace


def compare(program: Program, measured: Trace, simulated: Trace | None = None, bound_millicycles: int | None = None) -> Comparison:
    """Replay ``measured`` on the machine, and set it beside ``simulated`` if that is given.

    ``bound_millicycles`` is the ring law's period, shown as a third number. Raises EvidenceError if the trace was
    recorded from another kernel than ``program`` describes.
    """
    behaviour = conform(program, measured)
    timing = None if simulated is None else compare_timing(simulated, measured, bound_millicycles)
    return Comparison(behaviour, timing)
