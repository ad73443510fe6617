"""What a kernel does in relation to other kernels: waits and triggers of ``griddepcontrol``, and global accesses.

Of the accesses of an agent at one place two are kept: the first, or the first of lanes that have not waited, and the
last one. What a lane does after a wait stays after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.model.dependent_launch import LaunchAct
from pipesim.ptx.emit.record import StreamMark, StreamRecorder
from pipesim.ptx.emulate.global_memory.global_accesses import kind_of
from pipesim.ptx.emulate.lanes.exchanges import Way
from pipesim.ptx.emulate.memory import LOCAL_WINDOW_END, WINDOW
from pipesim.ptx.emulate.values import PerLane, Value, lanes_in
from pipesim.ptx.emulate.ways import DividedWarp
from pipesim.ptx.launch.image import Image
from pipesim.ptx.text.instruction import Instruction


@dataclass
class MarkedEvent(StreamMark):
    """An event with its place among the operations of its agent; ``when``: its number among all."""

    kind: LaunchAct
    agent: int
    position: int
    when: int
    base: int = -1  #: of the buffer, or the address of the tensor map
    waited: bool = False
    sure: bool = True


class LaunchEvents:
    """The events of a cluster. ``unsure``: of waits and triggers it is not known whether they happen."""

    def __init__(self, recorder: StreamRecorder, image: Image) -> None:
        self._recorder, self._image = recorder, image
        self._ways: dict[int, list[Way]] = {}  #: of each agent, on which it has waited
        self._found: dict[tuple[int, int, int, LaunchAct], list[MarkedEvent]] = {}
        self._count = 0
        self.unsure: set[int] = set()
        self.in_step: set[int] = set()  #: accesses that come after a wait of other lanes if the lanes run in step

    def __iter__(self) -> Iterator[MarkedEvent]:
        return iter(sorted((each for held in self._found.values() for each in held), key=lambda each: each.when))

    def control(self, warp: DividedWarp, position: int, kind: LaunchAct) -> None:
        """The lanes that execute wait for earlier kernels, or let dependent ones begin: their last operation."""
        if (warp.agent, position, -1, kind) not in self._found:
            self._add(warp, position, -1, kind, waited=self._has_waited(warp, position))
        if kind is LaunchAct.WAIT:
            warp.waited |= warp.mask
            self._ways.setdefault(warp.agent, []).append(warp.way)

    def access(self, warp: DividedWarp, each: Instruction, address: Value, *, sure: bool) -> None:
        """The lanes access global memory at these addresses, or by the tensor map at one; or may, if not ``sure``."""
        lanes = [address.each[lane] for lane in lanes_in(warp.mask)] if isinstance(address, PerLane) else [address]
        known = [int.__int__(one) for one in lanes if isinstance(one, int)]
        first, last = (min(known), max(known)) if known else (0, 0)
        if known and (WINDOW <= first < LOCAL_WINDOW_END or WINDOW <= last < LOCAL_WINDOW_END):
            return  # shared or local memory
        found = {self._image.buffer_at(one) for one in (first, last)} if len(known) == len(lanes) else {-1}
        kind = LaunchAct.STORE if kind_of(each.opcode, each.modifiers).writes else LaunchAct.LOAD
        for base in found:
            self._add(warp, each.position, base, kind, waited=self._has_waited(warp, each.position), sure=sure)

    def _has_waited(self, warp: DividedWarp, position: int) -> bool:
        """Whether the lanes that execute come after a wait of their warp.

        Lanes that have met those that waited where a branch ended, and no barrier, do so if they run in step.
        """
        if not warp.mask & ~warp.waited:
            return True
        now = {id(split): side for split, side in warp.way}
        ways = self._ways.get(warp.agent, ())
        if not any(all(now.get(id(split), side) == side for split, side in way) for way in ways):
            return False
        self.in_step.add(position)
        return True

    def _add(
        self, warp: DividedWarp, position: int, base: int, kind: LaunchAct, *, waited: bool = False, sure: bool = True
    ) -> None:
        self._count += 1
        at = len(self._recorder.streams[warp.agent].code) - (kind in (LaunchAct.WAIT, LaunchAct.TRIGGER))
        held = self._found.setdefault((warp.agent, position, base, kind), [])
        if held and held[0].waited and not waited:  # of other lanes
            held[0].at, held[0].when, held[0].waited = at, self._count, waited
        elif len(held) > 1:
            held[1].at, held[1].when, held[1].waited = at, self._count, waited
        else:
            held.append(MarkedEvent(at, kind, warp.agent, position, self._count, base, waited, sure))
            self._recorder.streams[warp.agent].marks.append(held[-1])
