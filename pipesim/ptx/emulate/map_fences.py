"""How a kernel orders its changes of a tensor map in global memory with the copies that use the map.

Copies read a map through a proxy of its own. A change through the generic proxy has to be released, and a copy by the
map comes after an acquire of its 128 bytes (PTX ISA, "membar, fence", "tensormap.cp_fenceproxy"). That the acquire
comes after the change in every schedule is asked as of other accesses: one loads these bytes, the other stores them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import form_of

MAP_BYTES = 128


@dataclass
class MapChange:
    """The last change of a map. ``acquired``: the lanes that did since its release, by agent; ``sure``: whether all of
    this is known. ``steps``: how many its agent had made before it. ``late``: whether the agent synchronised before it
    released the change: that another agent acquires it after that is not asked.
    """

    agent: int
    cta: int
    position: int
    lanes: int
    released: bool
    sure: bool
    steps: int = field(compare=False)
    late: bool = False
    acquired: dict[int, int] = field(default_factory=dict)


@dataclass
class MapFences:
    """Those of a cluster. ``faults``: copies that lack a fence, by position: the agent, where the map was changed, and
    the fence. ``open``: where it is not known. ``used``: maps by which copies were issued.
    """

    changes: dict[Form, MapChange] = field(default_factory=dict)
    faults: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    open: dict[int, str] = field(default_factory=dict)
    used: set[Form] = field(default_factory=set)

    def change(self, places: Iterable[Form], warp: EmulatedWarp, position: int, *, released: bool) -> None:
        """A warp changes maps."""
        for at in places:
            if any(_may_overlap(at, each) for each in self.used):
                self.open.setdefault(position, "copies by the map as it was may still read it")
            now = len(warp.cluster.recorder.streams[warp.agent].path)
            sure = _is_sure(warp) and warp.code.body[position].opcode != "cp"  # when it is complete is not asked
            self.changes[at] = MapChange(warp.agent, warp.cta, position, warp.mask, released, sure, now)

    def release(self, warp: EmulatedWarp) -> None:
        """``fence.proxy.tensormap::generic.release``: of what these lanes have changed; of others it is in doubt."""
        for each in self.changes.values():
            if not each.released:
                each.sure &= _is_sure(warp) and each.agent == warp.agent and not each.lanes & ~warp.mask
                each.released = True
                since = warp.cluster.recorder.streams[warp.agent].path[each.steps :]
                each.late = any(warp.code.body[step.position].opcode != "fence" for step in since)
                each.acquired.clear()

    def acquire(self, at: Form | None, warp: EmulatedWarp, lanes: int) -> None:
        """``fence.proxy.tensormap::generic.acquire`` by lanes of a map, None where it is not known of which."""
        for each in self.changes.values() if at is None else filter(None, (self.changes.get(at),)):
            each.sure &= at is not None and _is_sure(warp)
            each.acquired[warp.agent] = each.acquired.get(warp.agent, 0) | lanes

    def use(self, at: Form, warp: EmulatedWarp, position: int, lanes: int) -> None:
        """Lanes issue copies by a map."""
        what = "it is not known whether a change of its tensor map is released and acquired before it"
        self.used.add(at)
        if any(each != at and _may_overlap(each, at) for each in self.changes):
            self.open.setdefault(position, what)
        if (change := self.changes.get(at)) is None:
            return
        missing = "release" if not change.released else "" if change.acquired else "acquire"
        known = change.sure and _is_sure(warp) and change.cta == warp.cta  # of another CTA the scope would matter
        acquired = 0 if change.late and warp.agent != change.agent else change.acquired.get(warp.agent, 0)
        if missing and known:
            self.faults.setdefault(position, (warp.agent, change.position, missing))
        elif not known or lanes & ~acquired:
            self.open.setdefault(position, what)

    def snapshot(self) -> dict[object, object]:
        """What decides on the copies to come."""
        used: dict[object, object] = {"used": frozenset(self.used)}
        return used | {at: replace(each, acquired=dict(each.acquired)) for at, each in self.changes.items()}


def _may_overlap(one: Form, other: Form) -> bool:
    if one.terms == other.terms:
        return abs(one.constant - other.constant) < MAP_BYTES
    return one.low < other.high + MAP_BYTES and other.low < one.high + MAP_BYTES


def _is_sure(warp: EmulatedWarp) -> bool:
    return not warp.maybe and not warp.has_two_ways


def place_of_map(address: int, size: int = 1) -> Form:
    """Where the map at an address is, or (``size`` 128) one at a multiple of 128 which contains the address."""
    form = form_of(address)
    return Form(form.constant // size * size, form.terms)
