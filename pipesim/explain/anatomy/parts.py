"""The anatomy of one CTA of a program, as plain data: roles, barriers, memory and the totals of these."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pipesim.explain.ledger import Extent, Means
from pipesim.model.ops import Engine, Space


class TouchKind(Enum):
    """How an agent reads or writes memory."""

    COPY = "bulk copy"
    WRITE = "store"
    TRANSFER_WRITE = "transfer that writes"
    READ = "load"
    TRANSFER_READ = "transfer that reads"


@dataclass(frozen=True)
class RolePart:
    """A role of the CTA. ``registers`` is what each of its warps has after its last ``setmaxnreg``, None without one.

    ``agents`` differs from the number of warps only where the lanes of a warp go different ways.
    """

    name: str
    warps: tuple[int, ...]
    agents: int
    registers: Extent | None


@dataclass(frozen=True)
class Signal:
    """What each of ``agents`` agents of a role does for the phases of a group's barriers.

    ``ctas``: where those agents are (this many in each of these CTAs). ``to``: the CTAs that a multicast reaches, ()
    for what reaches one. ``arrivals`` and ``nbytes`` are of one operation. ``each_phase``: operations of one agent in
    each phase, None where the program's arrivals do not come out even; ``in_all`` on all barriers of the group.
    """

    role: str
    ctas: tuple[int, ...]
    agents: int
    means: Means
    engine: Engine | None
    to: tuple[int, ...]
    arrivals: Extent
    nbytes: Extent
    each_phase: int | None
    in_all: int


@dataclass(frozen=True)
class Wait:
    """A role that waits for the phases of a group. ``agents``: this many agents of the role on each barrier.

    ``blocks`` is False where it only tests. ``first_free``: its first wait on each barrier passes immediately (parity
    1, as that of every agent that waits for it).
    """

    role: str
    agents: int
    blocks: bool
    first_free: bool
    in_all: int


@dataclass(frozen=True)
class Group:
    """Barriers of one name that are used alike. A name whose barriers are not is several groups.

    ``size``: barriers of this name. ``count``: arrivals of a phase as initialised, None if no agent initialises it.
    ``signals`` reach the barriers of this CTA; ``sent`` are what its agents do for the copies in other CTAs only, which
    ``to`` then names.
    """

    name: str
    stages: tuple[int, ...]
    size: int
    count: int | None
    signals: tuple[Signal, ...]
    waits: tuple[Wait, ...]
    sent: tuple[Signal, ...]


@dataclass(frozen=True)
class Use:
    """What each of ``agents`` agents of a role does with a tile; the fields are those of :class:`Signal`."""

    role: str
    ctas: tuple[int, ...]
    agents: int
    how: TouchKind
    engine: Engine | None
    to: tuple[int, ...]
    nbytes: Extent


@dataclass(frozen=True)
class TilePart:
    """A named array of slots, who writes it and who reads it. Memory that is touched outside all tiles has no name."""

    name: str
    space: Space
    slots: int
    nbytes: int
    writers: tuple[Use, ...]
    readers: tuple[Use, ...]


@dataclass(frozen=True)
class Member:
    """A role at a named barrier (or the cluster barrier): each of its agents comes this many times. It may wait
    there.
    """

    role: str
    agents: int
    waits: bool
    times: Extent


@dataclass(frozen=True)
class Meeting:
    """A named barrier of the CTA, or the cluster barrier (``number`` None), whose threads are all of the cluster."""

    number: int | None
    threads: Extent
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Totals:
    """The totals of the CTA. ``registers`` counts those that ``setmaxnreg`` gives, to ``register_warps`` warps."""

    warps: int
    smem_bytes: int
    barrier_bytes: int
    tmem_bytes: int
    registers: int
    register_warps: int


@dataclass(frozen=True)
class Other:
    """Another CTA of the cluster, and what is not the same there: names of roles, barriers, tiles; () if all is.

    The same means: seen from there, with every rank counted from there.
    """

    cta: int
    differs: tuple[str, ...]


@dataclass(frozen=True)
class CtaKindParts:
    """CTAs of a kernel's launch that do the same, the first of them, and what is so there, and not before.

    ``contents``: of free arrays, where they do. ``other``: the roles, barriers and tiles that are not those of CTA 0.
    """

    cta: int
    ctas: int
    differs: str
    line: str
    contents: Mapping[str, int]
    other: tuple[str, ...]


@dataclass(frozen=True)
class Anatomy:
    """One CTA of a program, how the others of its cluster differ from it, and the kinds of CTAs of the launch.

    ``talk``: the others are clusters of their own, with which it talks by words of global memory.
    """

    name: str
    params: Mapping[str, int]
    grid: int
    ctas: int
    cta: int
    roles: tuple[RolePart, ...]
    groups: tuple[Group, ...]
    tiles: tuple[TilePart, ...]
    meetings: tuple[Meeting, ...]
    totals: Totals
    others: tuple[Other, ...]
    kinds: tuple[CtaKindParts, ...] = ()
    talk: bool = False
