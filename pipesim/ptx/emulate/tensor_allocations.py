"""Tensor memory of one CTA: which columns are allocated, and what PTX forbids (PTX ISA, "Tensor Memory Allocation",
"tcgen05.alloc, dealloc, relinquish_alloc_permit").

An allocation has 32, 64, 128, 256 or 512 columns, of the 512 of a CTA; one that does not fit waits until others are
released. After ``relinquish_alloc_permit`` nothing is allocated; what was allocated is released as a whole, by address
and columns, before the kernel ends. All ``tcgen05`` instructions of a kernel have the same ``.cta_group``.
"""

from dataclasses import dataclass, field

COLUMNS = 512  #: of tensor memory
_SIZES = (32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Allocation:
    """Columns from ``first`` on, the position of the instruction and the warp that executed it."""

    first: int
    columns: int
    position: int
    warp: int


@dataclass
class TensorAllocations:
    """``live`` by their first column; ``faults``: positions with what is wrong there, each once.

    ``waiting``: allocations beyond the columns of the CTA, which may wait for another warp's release.
    """

    live: dict[int, Allocation] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    waiting: list[Allocation] = field(default_factory=list)
    requests: int = 0  #: allocations and releases so far
    last: int = 0  #: the position of the last of them
    group: str = ""  #: ``cta_group::1``, of the first instruction
    _ever: bool = False
    _relinquished: bool = False
    _releasing: set[int] = field(default_factory=set)  #: warps that have released columns

    @property
    def end(self) -> int:
        """The first column after all that are allocated."""
        return max((each.first + each.columns for each in self.live.values()), default=0)

    def allocate(self, columns: int, position: int, warp: int) -> int:
        """The first column of a new allocation: the first gap that is large enough."""
        self._ever, self.requests, self.last = True, self.requests + 1, position
        if columns not in _SIZES:
            self.faults.setdefault(position, f"{columns} columns are no power of two from 32 to 512")
        if self._relinquished:
            self.faults.setdefault(position, "the CTA has given its permit to allocate up")
        first = next((n for n in range(0, COLUMNS - columns + 1, 32) if self._is_free(n, columns)), self.end)
        made = Allocation(first, columns, position, warp)
        if first + columns > COLUMNS:
            self.waiting.append(made)
        self.live[first] = made
        return first

    def release(self, first: int, columns: int, position: int, warp: int) -> None:
        """``tcgen05.dealloc`` of these columns."""
        self.requests, self.last = self.requests + 1, position
        self._releasing.add(warp)
        made = self.live.pop(first, None)
        if made is None:
            self.faults.setdefault(position, f"no allocation begins at column {first}")
        elif made.columns != columns:
            said = f"{columns} columns are released from {first} on, where {made.columns} were allocated"
            self.faults.setdefault(position, said)

    def relinquish(self) -> None:
        """``tcgen05.relinquish_alloc_permit``."""
        self._relinquished = True

    def use(self, first: int, columns: int, position: int) -> None:
        """An instruction accesses these columns; nothing is said of a kernel that never allocates any."""
        if not self._ever:
            return
        at, end = first, first + columns
        while at < end:
            inside = next((a for a in self.live.values() if a.first <= at < a.first + a.columns), None)
            if inside is None:
                self.faults.setdefault(position, f"column {at} is not allocated")
                return
            at = inside.first + inside.columns

    def have_group(self, group: str, position: int) -> None:
        """An instruction has this ``.cta_group``."""
        self.group = self.group or group
        if group != self.group:
            self.faults.setdefault(position, f"it has .{group}, the instructions before it .{self.group}")

    def at_end(self) -> dict[int, str]:
        """All that is wrong, when every warp has ended."""
        found = dict(self.faults)
        for each in self.waiting:
            if not self._releasing - {each.warp}:  # no other warp releases columns while it waits
                found.setdefault(each.position, f"it waits for {each.columns} columns, and the CTA has too few left")
        for each in self.live.values():
            found.setdefault(each.position, f"its {each.columns} columns are not released before the kernel ends")
        return found

    def _is_free(self, first: int, columns: int) -> bool:
        others = self.live.values()
        return all(first + columns <= each.first or each.first + each.columns <= first for each in others)


def allocation_faults(ctas: list[TensorAllocations], *, ended: bool) -> dict[int, str]:
    """What is wrong, by position; ``ended``: every warp was followed to its end."""
    found: dict[int, str] = {}
    for each in ctas:
        found |= each.at_end() if ended else each.faults
    for one, other in zip(ctas[::2], ctas[1::2], strict=False):
        if ended and "cta_group::2" in (one.group, other.group) and one.requests != other.requests:
            more, fewer = max(one.requests, other.requests), min(one.requests, other.requests)
            found.setdefault(
                max(one.last, other.last), f"one CTA of the pair allocates and releases {more} times, the other {fewer}"
            )
    return found
