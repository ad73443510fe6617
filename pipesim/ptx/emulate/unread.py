"""What an instruction may touch that is not understood, or whose address is not known, and who else uses that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import AT, Space
from pipesim.ptx.emit.record import StreamRecorder
from pipesim.ptx.text.module import Variable

EVERYWHERE = (0, 1 << 24)  #: all of the shared memory that a CTA can have


class UnreadAccess(NamedTuple):
    """The instruction's position, the agent, and the bytes ``first..end`` of shared memory that it may touch.

    CTAs are not distinguished: an address that is not known may be another one's.
    """

    position: int
    agent: int
    writes: bool
    first: int
    end: int


class _Use(NamedTuple):
    """Use of the bytes ``first..end`` by ``agent``; -1: by an engine or an mbarrier, which belong to no agent."""

    agent: int
    writes: bool
    first: int
    end: int


def around(variables: Sequence[Variable], offset: int) -> tuple[int, int]:
    """The bytes of the variable of a known size that an offset is in; everywhere if it is in none."""
    for each in variables:
        if not each.external and each.offset <= offset < each.offset + each.size:
            return each.offset, each.offset + each.size
    return EVERYWHERE


def touching_others(accesses: Sequence[UnreadAccess], recorder: StreamRecorder) -> frozenset[int]:
    """The positions of those that may touch what other warps, copies or mbarriers use; reads do not disturb reads."""
    return _touching(accesses, frozenset(_uses(recorder)) if accesses else frozenset())


def touching_engines(accesses: Sequence[UnreadAccess], recorder: StreamRecorder) -> frozenset[int]:
    """The positions of those that may touch what copies or mbarriers use."""
    return _touching(accesses, frozenset(use for use in _uses(recorder) if use.agent < 0) if accesses else frozenset())


def _touching(accesses: Sequence[UnreadAccess], uses: frozenset[_Use]) -> frozenset[int]:
    return frozenset(
        one.position
        for one in accesses
        if any(
            one.first < use.end and use.first < one.end and one.agent != use.agent and (one.writes or use.writes)
            for use in uses
        )
    )


def _uses(recorder: StreamRecorder) -> Iterator[_Use]:
    ranges = list(recorder.accesses)
    for agent, stream in enumerate(recorder.streams):
        for op in stream.code:
            if op[0] in TOUCHES_MEMORY:
                access = ranges[op[AT["access"][op[0]]]]
                if access.space is Space.SHARED:
                    user = agent if op[0] in ACCESSES else -1
                    yield _Use(user, op[0] in WRITES_MEMORY, access.offset, access.offset + access.nbytes)
    for _, offset in recorder.barriers:
        yield _Use(-1, False, offset, offset + 8)
