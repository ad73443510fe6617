"""Whether the warps of one cluster access the same bytes of global memory in order: by the program that has them."""

from __future__ import annotations

import re
from dataclasses import replace

from pipesim.answers.global_memory.grid_memory import MeetingInside
from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Space
from pipesim.model.program import Program
from pipesim.model.tables import Tile
from pipesim.prove.refutation import Refutation
from pipesim.ptx.emulation import Kernel, emulate, on_global_memory
from pipesim.ptx.extract import Extraction, emit


def with_accesses(kernel: Kernel, met: MeetingInside) -> Extraction:
    """The kernel in that CTA, as a program that has the accesses to those bytes of global memory as operations."""
    made = on_global_memory(kernel)
    made.code.global_operations, made.code.global_base = met.ranges, met.base
    made = replace(made, launch=replace(made.launch, cta=met.cta)) if met.cta else made
    found = emit(made, emulate(made))
    name = re.sub(r"\W", "_", met.name.rpartition("(")[2].rstrip(")"))
    tile = Tile(name, Space.GLOBAL, 0, 0, met.ranges[-1][1] - met.base, 1)
    return replace(found, program=replace(found.program, tiles=(*found.program.tiles, tile)))


#: What is said of an order that is missing. That a reader may come first shows as a race.
_OF_ORDER = frozenset({FaultKind.RACE, FaultKind.WRONG_ITEM, *MEMORY_ORDER})


def is_on_global_memory(program: Program, found: Refutation) -> bool:
    """Whether a finding is about an access to global memory."""
    fault = found.fault
    if fault is None or fault.kind not in _OF_ORDER or fault.pc >= len(program.code[fault.agent]):
        return False
    accesses = program.accesses_of(program.code[fault.agent][fault.pc])
    return any(program.accesses[each].space is Space.GLOBAL for each in accesses)
