"""A delay: which warp sleeps for how long, before or after which execution of an instruction of its kernel."""

from dataclasses import dataclass

from pipesim.model.groups import ACCESSES
from pipesim.model.program import Program
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.record import IF_NOT_YET, MEET, Stream
from pipesim.ptx.prepare import Kernel

LONGEST_NS = 1_000_000  #: of one nanosleep (PTX ISA, "nanosleep")
MOST_OF_A_WARP = 7  #: delays in its row of a table


@dataclass(frozen=True)
class DelayPlace:
    """An execution of a statement: the ``nth`` one of a warp, from 0.

    ``cta``: the rank in its cluster, or the number in the grid where CTAs are followed together. ``begin``: where the
    statement begins in the text of the PTX file, ``line`` its line there, ``source`` the author's. ``after``: not
    before it. ``position``: in the kernel with its calls inlined; -1 is the kernel's beginning.
    """

    agent: str
    cta: int
    warp: int
    position: int
    begin: int
    line: int
    source: str
    opcode: str
    nth: int
    after: bool = False


@dataclass(frozen=True)
class Delay:
    """A warp sleeps ``ns`` nanoseconds there; ``until``: a turn, at most until another warp of the cluster did this."""

    place: DelayPlace
    ns: int
    until: DelayPlace | None = None


def place_of(kernel: Kernel, program: Program, stream: Stream, agent: int, pc: int) -> DelayPlace:
    """Where an agent can be held before one of its operations, with nothing that others see in between.

    A wait is held before its first try; an access of shared memory after what the warp synchronised by before it.
    """
    name, body, code = program.agent_name(agent), kernel.function.body, program.code[agent]
    after = code[pc][0] in ACCESSES
    while after and pc >= 0 and code[pc][0] in ACCESSES:  # known when the next step is executed, which comes after it
        pc -= 1
    at = _unconditional(stream, stream.steps[pc][after]) if pc >= 0 else -1
    if at < 0:
        return DelayPlace(name, stream.cta, stream.warp, -1, -1, kernel.entry.line, "", "", 0)
    step = stream.path[at]
    each = body[step.position]
    nth = sum(1 for other in stream.path[:at] if other.position == step.position and other.lanes & step.lanes)
    source = source_of(each, kernel.module)
    mnemonic = ".".join((each.opcode, *each.modifiers[:1]))
    return DelayPlace(name, stream.cta, stream.warp, step.position, each.begin, each.line, source, mnemonic, nth, after)


def _unconditional(stream: Stream, at: int) -> int:
    """The step itself; of one that depends on whether a try succeeds, the last step before that is asked."""
    depth = 0
    for n in range(at, -1, -1):
        position = stream.path[n].position
        if position == MEET:
            depth += 1
        elif position == IF_NOT_YET:
            depth -= 1
            if depth < 0:
                at, depth = n - 1, 0
    return at if at < 0 or stream.path[at].position >= 0 else -1
