"""From recordings to a flat program: the prologue, side tables, names of barriers, and packed registers."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author import run
from pipesim.lang.recorder import Recorder, Tables
from pipesim.lang.shared_mem_barrier import BarrierStorage, Label
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.coverage import Assumed, Assumption, Coverage
from pipesim.model.groups import (
    ACCESS,
    ACCESSES,
    BARRIER,
    BLOCKING_WAITS,
    HANDS_ON,
    MEETING_WAITS,
    MEETINGS,
    PRIVATE,
    READS_REGISTER,
    WRITES_REGISTER,
)
from pipesim.model.ops import OPERANDS, Fence, Op, Operation, Order, Scope, Space, operand, order_of, semantics
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import executes_as_warp_group
from pipesim.model.tables import Access, Agent, Barrier, Tile, Work

InitBody = Callable[[], None]
RoleBody = Callable[[Warp], None]

ALL_LANES = (1 << 32) - 1
#: After a role's name, where its lanes are apart: a lane that is not elected, and the others that are not.
ANOTHER, OTHERS = "_lane1", "_others"


@dataclass(frozen=True)
class Prologue:
    """How the mbarriers of a protocol are initialised: by the author's init, by their counts, or by a role."""

    protocol: str  #: its name
    cluster: int  #: CTAs
    warps: int  #: of one CTA
    storages: Sequence[BarrierStorage]
    counts: Mapping[str, int]  #: of the storages that were given one, by name
    declared: Mapping[str, str]  #: of each storage the author's line
    init: InitBody | None
    line: str  #: where the author reads what is added: at the init, or where the first mbarriers are named

    @property
    def is_added(self) -> bool:
        """True but where the roles alone initialise: then fence and barrier are theirs as well, or forgotten."""
        return self.init is not None or bool(self.counts) or not self.storages

    @property
    def notes(self) -> tuple[str, ...]:
        """What the flattener has added to the author's description."""
        if self.init is not None:
            return ("the flattener adds fence.mbarrier_init and the CTA barrier after the init",)
        if self.is_added:
            return (
                "no init was given: the flattener adds the usual prologue (init, fence.mbarrier_init, CTA barrier)",
            )
        return ("no init was given, and a role initialises the mbarriers: the flattener adds no prologue",)

    def record(self, rec: Recorder, warp: int) -> None:
        """What this warp of a CTA executes before its role, if the flattener adds it."""
        if self.is_added:
            if warp == 0:
                self._record_init(rec)
            self._record_sync(rec)

    def require_initialised(self, recorders: Sequence[Recorder]) -> None:
        """Raise ProtocolError if no agent initialises anything of a storage that has no count, and there is no init.

        One that is initialised in part is a fault of the modelled program: only its schedules can tell.
        """
        uncounted = [s for s in self.storages if s.name not in self.counts]
        if self.init is not None or not uncounted:
            return
        per_cta = uncounted[0].per_cta[0]
        inits = {op[BARRIER] % per_cta for rec in recorders for op in rec.code if op[0] == Op.INIT}
        missing = [s.name for s in uncounted if inits.isdisjoint(range(s.first, s.first + s.size))]
        if missing:
            raise ProtocolError(
                f"no role initialises {', '.join(missing)}",
                place=self.declared[missing[0]],
                correction="mark a function @protocol.init, name the count: protocol.mbarriers(name, size, 1), or "
                "initialise in a role",
            )

    def _record_init(self, rec: Recorder) -> None:
        """One lane initialises; without an init, the barriers that named a count are initialised as usual."""
        with rec.narrow_to(1):
            if self.init is not None:
                with rec.name_pipeline(""):  # a pipeline that only initialises its barriers belongs to no role
                    run(self.init, f"the init of {self.protocol}")
            else:
                for storage in self.storages:
                    for index in range(storage.size if storage.name in self.counts else 0):
                        storage[index].init(self.counts[storage.name], line=self.declared[storage.name])
            rec.emit(Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER), line=self.line)

    def _record_sync(self, rec: Recorder) -> None:
        if self.cluster > 1:
            rec.emit(Op.CLUSTER_ARRIVE, semantics(scope=Scope.CLUSTER), line=self.line)
            rec.emit(Op.CLUSTER_WAIT, semantics(scope=Scope.CLUSTER), line=self.line)
        else:
            rec.emit(
                Op.BAR_SYNC, rec.tables.named_barrier(rec.cta, 0), 32 * self.warps, rec.counted_lanes, line=self.line
            )


_NONE = -1  #: the ring of a barrier that no pipeline has named


@dataclass(frozen=True)
class Role:
    """A role: ``warps`` warps of every CTA run ``body``, starting at warp ``first_warp``.

    ``lanes_apart``: the lanes of each warp run independently. ``align``: ``first_warp`` is a multiple of it, 0 if the
    author says nothing.
    """

    name: str
    warps: int
    first_warp: int
    body: RoleBody
    lanes_apart: bool = False
    align: int = 0

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """The agents of a warp: what each is called, and the bit mask of its lanes. The first has the elected lane.

        The others all do the same. One of them is an agent of its own, so that what two of them do to each other is
        found; the rest can be one agent, because any two lanes are like that one and one of the rest.
        """
        if not self.lanes_apart:
            return ((self.name, ALL_LANES),)
        return (self.name, 1), (f"{self.name}{ANOTHER}", 2), (f"{self.name}{OTHERS}", ALL_LANES - 3)


class KernelDescription:
    """What the flat program needs of a kernel's description."""

    name: str
    cluster: int
    grid: int
    launch_registers: int
    architecture: int
    roles: list[Role]
    tiles: list[TileArray]
    storages: list[BarrierStorage]

    @property
    def ctas(self) -> int:
        """The CTAs that are described: those of the cluster, or of a grid of single CTAs."""
        return max(self.grid, self.cluster)


def assemble(
    protocol: KernelDescription,
    recorders: list[Recorder],
    tables: Tables,
    params: dict[str, int],
    notes: tuple[str, ...],
    smem_bytes: int,
) -> Program:
    """The flat program of one recording of every agent of ``protocol``, a CTA of which has ``smem_bytes``."""
    agents = tuple(
        Agent(cta, role.first_warp + index, lanes, name, index)
        for cta in range(protocol.ctas)
        for role in protocol.roles
        for name, lanes in role.parts
        for index in range(role.warps)
    )
    packed = [pack_registers(rec.code) for rec in recorders]
    return Program(
        name=protocol.name,
        params=params,
        agents=agents,
        barriers=_barriers(protocol),
        accesses=tuple(Access(*each) for each in tables.accesses),
        tiles=tuple(
            Tile(t.name, t.space, cta, t.offset, t.nbytes, t.slots)
            for cta in range(protocol.ctas)
            for t in protocol.tiles
            if t.space != Space.GLOBAL or not cta
        ),
        code=tuple(tuple(code) for code, _ in packed),
        lines=tuple(tuple(rec.lines) for rec in recorders),
        sources=tuple(tables.lines()),
        named_barriers=tuple(tables.named_barriers),
        loops=tuple(tables.loops),
        registers=max((count for _, count in packed), default=0),
        ctas=protocol.ctas,
        smem_bytes=smem_bytes,
        notes=notes,
        pipelines=tuple(tables.pipelines),
        launch_registers=protocol.launch_registers,
        architecture=protocol.architecture,
        work=tuple(Work(line, name, amounts) for (_, name, amounts), line in tables.works.items()),
        coverage=Coverage(assumed=_lanes_together(agents, recorders, tables)),
        overlaps=tuple(said for storage in protocol.storages for said in _overlaps(storage)),
    )


def _lanes_together(agents: Sequence[Agent], recorders: Sequence[Recorder], tables: Tables) -> tuple[Assumed, ...]:
    """Where roles rest on the lanes of a warp being together, each role and line once."""
    sources = tables.lines()
    tensor = {number for (space, *_), number in tables.accesses.items() if space == Space.TENSOR}
    places = {
        (agent.role, sources[rec.lines[pc]]): None
        for agent, rec in zip(agents, recorders, strict=True)
        if not rec.is_part
        for pc in rests_on_lanes(_with_words(rec), rec.narrowed, rec.meets, tensor, _relaxed(rec))
    }
    return tuple(Assumed(Assumption.LANES, f"the lanes of {role} are together", (line,)) for role, line in places)


def _with_words(rec: Recorder) -> list[Operation]:
    """The operations with those on barriers that words will be."""
    kinds = {pc: (int(Op.ARRIVE if each.act.writes else Op.WAIT),) for pc, each in rec.words.items()}
    return [kinds.get(pc, op) for pc, op in enumerate(rec.code)] if kinds else rec.code


def _relaxed(rec: Recorder) -> set[int]:
    """The places of operations that are neither a release nor an acquire."""
    orders = {pc: order_of(operand(op, "semantics")) for pc, op in enumerate(rec.code) if op[0] in _ORDERED}
    orders |= {pc: order_of(each.written) for pc, each in rec.words.items()}
    return {pc for pc, order in orders.items() if order is Order.RELAXED}


def _overlaps(storage: BarrierStorage) -> Iterator[str]:
    """The barriers of a storage that several pipelines have, in words; those of the same pipelines together."""
    found: dict[tuple[int, ...], list[int]] = {}
    for index, places in sorted(storage.places.items()):
        if len(places) > 1:
            found.setdefault(tuple(sorted({ring for ring, _ in places})), []).append(index)
    for rings, indices in found.items():
        barriers = " and ".join(f"{storage.name}[{index}]" for index in dict.fromkeys((indices[0], indices[-1])))
        several = "belong" if len(indices) > 1 else "belongs"
        which = f"{barriers}{' and those between' if len(indices) > 2 else ''} {several} to several pipelines"
        begins = " and ".join(f"{storage.name}[{ring}]" for ring in rings)
        yield f"{which}, which begin at {begins}" if len(rings) > 1 else f"{which} of different size at {begins}"


def _barriers(protocol: KernelDescription) -> tuple[Barrier, ...]:
    """Names: the group that a pipeline gave, after its storage's name where two storages have a group of that name.

    Where several pipelines in one storage have such a group, also after the barrier that its pipeline begins at.
    """
    named = [[s.labels.get(index, Label(s.name, index, _NONE)) for index in range(s.size)] for s in protocol.storages]
    rings = [Counter(group for group, _ in {(each.group, each.ring) for each in labels}) for labels in named]
    storages = Counter(group for groups in rings for group in groups)
    names: list[tuple[str, int]] = []
    for storage, labels, groups in zip(protocol.storages, named, rings, strict=True):
        for group, stage, ring in labels:
            if ring != _NONE and groups[group] > 1:
                group = f"{storage.name}[{ring}].{group}"
            elif ring != _NONE and storages[group] > 1:
                group = f"{storage.name}.{group}"
            names.append((group, stage))
    return tuple(Barrier(cta, name, stage) for cta in range(protocol.ctas) for name, stage in names)


def pack_registers(code: list[Operation]) -> tuple[list[Operation], int]:
    """Give results the lowest register that is free, and none to results that no agent reads; the code and its width.

    The recorder hands out a new register for every result. A straight line needs only as many as are live concurrently.
    """
    last_read: dict[int, int] = {}
    for pc, operation in enumerate(code):
        if operation[0] in _READ_AT:
            for at in _READ_AT[operation[0]]:
                last_read[operation[at]] = pc
    free: list[int] = []
    width = 0
    held: dict[int, int] = {}
    packed: list[Operation] = []
    for pc, operation in enumerate(code):
        if operation[0] not in _TOUCHES_REGISTERS:
            packed.append(operation)
            continue
        reads, writes = _READ_AT.get(operation[0], ()), _WRITTEN_AT.get(operation[0], ())
        operands = list(operation)
        for at in reads:
            operands[at] = held.get(operation[at], -1)
        for at in writes:
            if operation[at] in last_read:
                if not free:
                    heapq.heappush(free, width)
                    width += 1
                operands[at] = held[operation[at]] = heapq.heappop(free)
            else:
                operands[at] = -1
        for ended in {operation[at] for at in reads if last_read[operation[at]] == pc and operation[at] in held}:
            heapq.heappush(free, held[ended])
        packed.append(tuple(operands))
    return packed, width


def _positions(wanted: Callable[[Op, str], bool]) -> dict[int, tuple[int, ...]]:
    """For each operation that has such operands their positions in its tuple."""
    found = {
        int(op): tuple(at for at, name in enumerate(names, 1) if wanted(op, name)) for op, names in OPERANDS.items()
    }
    return {op: positions for op, positions in found.items() if positions}


_READ_AT = _positions(lambda op, name: name == "state_register" or (name == "register" and op in READS_REGISTER))
_WRITTEN_AT = _positions(lambda op, name: name == "register" and op in WRITES_REGISTER)
_TOUCHES_REGISTERS = frozenset(_READ_AT) | frozenset(_WRITTEN_AT)


_ORDERED = frozenset(op for op, names in OPERANDS.items() if "semantics" in names)

Narrowed = Sequence[tuple[int, int]]  #: first and end of operations that only some lanes execute, in order


def rests_on_lanes(
    code: Sequence[Operation],
    narrowed: Narrowed,
    meets: Sequence[int],
    aligned: Set[int] = frozenset(),
    weak: Set[int] = frozenset(),
) -> list[int]:
    """The places of operations before which the lanes are taken to be together, and PTX does not say so.

    A role is recorded as if the lanes of each of its warps executed in step. PTX lets threads of a warp run
    independently: they are together at ``.aligned`` instructions and at ``bar.warp.sync`` (PTX ISA, "bar.warp.sync";
    "Independent Thread Scheduling" in the CUDA programming guide); in between, an elected lane may be ahead, or late.

    Of all lanes after some of them have done something alone; and of some lanes, where it signals others what all lanes
    have done before: read, written, or waited for, since who waits late misses a phase that has gone by. What only has
    lanes execute together shows that all have waited, and does not order what they have accessed: wgmma, ``bar.arrive``
    and a barrier of the cluster whose arrive was relaxed. ``meets``: where ``bar.warp.sync`` comes before an operation.
    ``aligned``: accesses of tensor memory, whose instructions are; ``weak``: operations that are no release or acquire:
    a fence makes them one for its own lane, which has to come after what the others have done, or before what they do.
    """
    found: list[int] = []
    parted = waited = accessed = relaxed = False
    intervals, together = iter((*narrowed, (len(code), len(code)))), frozenset(meets)
    first, end = next(intervals)
    fences = _LaneFences(found)
    for pc, op in enumerate(code if narrowed else ()):
        while pc >= end:
            first, end = next(intervals)
        if op[0] == Op.CLUSTER_ARRIVE:
            relaxed = order_of(operand(op, "semantics")) is Order.RELAXED
        orders = op[0] in MEETING_WAITS and not (op[0] == Op.CLUSTER_WAIT and relaxed)
        if pc in together or (pc < first and orders):
            parted = waited = accessed = False
            fences.meet()
        if op[0] == Op.FENCE:
            parted |= fences.fence(pc, Fence(operand(op, "fence")), alone=pc >= first, accessed=accessed)
        if op[0] in PRIVATE:
            continue
        fences.operation(pc in weak, op, alone=pc >= first, accessed=accessed)
        if pc >= first:
            if (waited or accessed) and op[0] in HANDS_ON:
                found.append(pc)
                waited = accessed = False
            parted = True
        elif op[0] in MEETINGS or executes_as_warp_group(op) or (op[0] in ACCESSES and op[ACCESS] in aligned):
            parted = waited = False
        else:
            if parted:
                found.append(pc)
            parted, accessed, waited = False, accessed or op[0] in ACCESSES, waited or op[0] not in ACCESSES
    return found


class _LaneFences:
    """The fences of one role. ``places``: gets those before which all lanes are taken to be together."""

    def __init__(self, places: list[int]) -> None:
        self._places = places
        self._early = self._release = -1  #: fences that come before what other lanes have accessed, perhaps
        self._of_one = False  #: whether one lane alone has executed the second
        self._waited: dict[bool, None] = {}  #: whether one lane has waited relaxed, or all

    def meet(self) -> None:
        """All lanes meet: what the copies of others use one of them has fenced too early."""
        self._places += [self._early] if self._early >= 0 else []
        self._early = -1

    def fence(self, pc: int, kind: Fence, *, alone: bool, accessed: bool) -> bool:
        """Lanes execute a fence. True if the others have to meet it before what they access."""
        if kind is Fence.PROXY_ASYNC:
            self._early = pc if alone and accessed else -1
        if kind not in (Fence.ACQ_REL, Fence.SC):
            return False
        self._release, self._of_one = pc if accessed else -1, alone
        parts = bool(self._waited) and (alone or True in self._waited)
        self._waited = {}
        return parts

    def operation(self, weak: bool, op: Operation, *, alone: bool, accessed: bool) -> None:  # noqa: FBT001
        """Anything else, by one lane or by all."""
        if weak and op[0] in BLOCKING_WAITS:
            self._waited[alone] = None
        elif op[0] in HANDS_ON:
            self._early = -1 if alone and accessed else self._early
            if weak and self._release >= 0 and (self._of_one or (alone and not accessed)):
                self._places.append(self._release)
                self._release = -1
