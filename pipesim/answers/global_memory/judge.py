"""Whether two clusters of a launch can meet in global memory: what is sure to, what may, and what cannot be said.

Two accesses by different clusters to the same bytes, of which one writes, are a race unless both are atomic, or
something orders them: in a kernel in which no cluster looks at what others do, nothing does.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pipesim.answers.every_cta.conditions import Evaluation, completed, words_of
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.global_memory.grid_memory import (
    BOX,
    CHANGED,
    CONSTANT,
    DATA,
    INSIDE,
    LOST,
    MANY,
    MAYBE,
    ORDER,
    OUTSIDE,
    SCOPE,
    GlobalRace,
    GridMemory,
    MeetingInside,
)
from pipesim.answers.global_memory.memories import Chosen, Kinds, MappedMemory, Memory, PointedMemory
from pipesim.answers.global_memory.reading import MOST_INSTRUCTIONS, GlobalReading, read_global
from pipesim.answers.global_memory.roles import STRONG, WRITES, AccessRole, Roles, by_agent
from pipesim.answers.global_memory.spans import (
    ContestedBytes,
    Spans,
    TooManyError,
    contested,
    joined,
    met_by_any,
    met_by_each_other,
    met_by_others,
)
from pipesim.answers.global_memory.strong import lost_update, order_decides, order_decides_inside, strong_accesses
from pipesim.model.ops import Scope
from pipesim.ptx.coverage import kind_on_global
from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, GlobalAccess, kind_of
from pipesim.ptx.emulate.memory import MODULE_VARIABLES
from pipesim.ptx.flow.addresses import ParameterPlaces
from pipesim.ptx.flow.observations import ASKING, loads_behind
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.free.forms import Form, Terms, bounds
from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.launch.values import HANDED_OUT, LAUNCH_CONTROL
from pipesim.ptx.prepare import Kernel, on_global_memory
from pipesim.ptx.text.instruction import TensorAddress
from pipesim.trace.arrays import np

_MOST_CLUSTERS = 1 << 22  #: 100 bytes each while they are compared
_MOST_KINDS = 24  #: of clusters that are followed
_LOADED_ALONE, _STORED_TO = -1, -2  #: what tensor maps that the kernel changes lead to
_MOST_TIMES, _MOST_BESIDE = 8, 1 << 16  #: instructions of all of them: those of the first one, and as many more


def uses_global_memory(kernel: Kernel) -> bool:
    """Whether any of its instructions may."""
    return any(may_touch_global(each) or kind_on_global(each) for each in kernel.function.body)


def judge(kernel: Kernel) -> GridMemory:
    """What CTAs of a kernel do to the same bytes of global memory."""
    first = read_global(on_global_memory(kernel))
    instructions = min(MOST_INSTRUCTIONS, _MOST_TIMES * first.instructions + _MOST_BESIDE)
    every = EveryCta(first, asked=False, most=_MOST_KINDS, instructions=instructions)
    readings = [first, *every]
    cut = next((each.cut for each in readings if each.cut), "" if every.complete else "CTAs do too many things")
    if {name for each in readings for name in each.inputs.arrays_in_conditions()} - {HANDED_OUT}:
        return GridMemory(every.clusters, cut="contents decide")
    tiles = first.inputs.arrays.get(HANDED_OUT)
    if tiles is not None and tiles.rises is not None and tiles.count > tiles.most:  # then no other cluster runs
        return judge(kernel.with_setting(LAUNCH_CONTROL, tiles.count - 1))
    if every.clusters > _MOST_CLUSTERS:
        return GridMemory(every.clusters, cut="more CTAs than are compared")
    return _Judge(kernel, every, readings).judge(cut)


class _Judge:
    """One judgement: the memories with their accesses, compared one by one."""

    def __init__(self, kernel: Kernel, every: EveryCta[GlobalReading], readings: Sequence[GlobalReading]) -> None:
        self._body, self._every, self._readings = kernel.function.body, every, list(readings)
        self._tiles: dict[tuple[int, tuple[str, int]], int] = {}  #: kinds of tiles that are handed out
        self._races: list[GlobalRace] = []
        self._left_open: dict[int, str] = {}
        self._equal: set[int] = set()
        self._inside: list[tuple[int, MeetingInside]] = []  #: each with its kind
        self._talking: set[int] = set()  #: kinds whose warps may tell each other something by words of global memory
        self._launch, clusters = kernel.launch, every.clusters_of_kinds()
        inputs = readings[0].inputs
        self._kinds = Kinds(clusters, [Evaluation(completed(inputs, every.places(each))) for each in clusters])
        self._image = readings[0].image
        self._changes_maps = any(each.opcode == "tensormap" for each in self._body)
        self._changes_maps |= any(not each.maps.used.isdisjoint(each.maps.changes) for each in readings)
        self._by_changed: dict[int, set[Form]] = defaultdict(set)  #: maps that the kernel may change, by position
        self._places = ParameterPlaces(kernel.function, kernel.code.regions.uses)
        self._memories: dict[int, Memory] = {}
        self._uses, self._regions = kernel.code.regions.uses, kernel.code.regions
        observed = self._regions.observations
        self._looks, self._updates = observed.decide or any(each.unread for each in readings), observed.updates
        self._roles = Roles(self._body, self._uses, observed)

    def judge(self, cut: str) -> GridMemory:
        """Find what meets."""
        for n, reading in enumerate(tuple(self._readings)):
            if len(self._kinds.clusters[n]):
                for access in reading.accesses:
                    self._enter(n, access)
                self._equal |= {at for at in reading.alike if not self._roles.stores_one_value(at)}
                for position, leaf in reading.left_open.items():
                    why = f"{leaf.what} decides where" if leaf.what.startswith("the result of ") else DATA
                    waits = self._body[position].has_any(*ASKING) and self._regions.loops.polls(position)
                    self._leave_open((position,), ORDER if waits else why)
        written = {key for key, memory in self._memories.items() if any(a.kind.writes for _, a in memory.accesses)}
        where: dict[int, int | None] = {position: self._static_memory(position) for position in self._left_open}
        apart = (bool(written) or _STORED_TO in where.values()) and len({*self._memories, *where.values()}) > 1
        may_write = written | {where[position] for position in where if self._writes(position)}
        for position, key in where.items():  # what the kernel never writes may be read anywhere
            if not self._writes(position) and key is not None and may_write.isdisjoint((None, key)):
                del self._left_open[position]
        for position, why in (each for reading in self._readings for each in reading.maps.open.items()):
            self._leave_open((position,), why)
        for key in written:
            self._compare(self._memories[key])
            self._look_at_strong(self._memories[key])
            self._look_inside(self._memories[key])
            self._look_at_constant_loads(self._memories[key])
        x, y, z = self._launch.cluster
        made = GridMemory(self._every.clusters * x * y * z, tuple(self._races), self._left_open, apart=apart, cut=cut)
        unfenced = {at: each for reading in self._readings for at, each in reading.maps.faults.items()}
        inside = (replace(each, told=kind in self._talking) for kind, each in self._inside)
        in_step = frozenset(position for each in self._readings for position in each.in_step)
        return replace(made, equal=frozenset(self._equal), in_step=in_step, inside=tuple(inside), unfenced=unfenced)

    def _leave_open(self, positions: Iterable[int], why: str) -> None:
        for position in positions:
            self._left_open.setdefault(position, why)

    # memories

    def _enter(self, kind: int, access: GlobalAccess) -> None:
        forms = (Form(0, access.terms), *access.corner)
        memory, why = None, DATA
        if any(form.in_memory for form in forms):
            kind = self._kind_of_tiles(kind, forms)
        if kind >= 0:
            memory = self._bytes(kind, access) if access.map is None else self._tensor(access, access.map)
            changed = access.position in self._by_changed
            why = self._outside(access.position) if access.map is None else CHANGED if changed else BOX
        if memory is None:
            self._leave_open((access.position,), why)
        else:
            memory.accesses.append((kind, access))

    def _kind_of_tiles(self, kind: int, forms: Iterable[Form]) -> int:
        """The clusters whose work a cluster of this kind may be handed out, each by its number; -1 if there is more.

        A tile is handed out once: it is the work of the cluster which does not run. Nothing else decides about the
        access, and every tile is like the one of this run.
        """
        inputs, nowhere = self._readings[kind].inputs, Evaluation({})
        words = {word for form in forms for word in words_of(form, nowhere)}
        array = inputs.arrays.get(HANDED_OUT)
        if len(words) != 1 or array is None or array.step != 1 or (word := next(iter(words)))[0] != HANDED_OUT:
            return -1
        tiles = np.arange(1, self._every.clusters, dtype=np.int64)
        made = Evaluation({}, {word: tiles - array.low})
        asked = ((Form(0, each), condition) for each, condition in inputs.conditions.items())
        try:
            for form, condition in asked:
                if word in words_of(form, nowhere) and not np.all(condition.holds(made.sum(form))):
                    return -1
            for form in forms:
                made.sum(form)
        except KeyError:  # it depends on something else as well
            return -1
        if (kind, word) not in self._tiles:
            self._tiles[kind, word] = len(self._kinds.clusters)
            self._kinds.clusters.append(tiles)
            self._kinds.evaluations.append(made)
            self._readings.append(self._readings[kind])
        return self._tiles[kind, word]

    def _tensor(self, access: GlobalAccess, address: Form) -> Memory | None:
        if self._changes_maps and address.low < PARAMETERS:
            self._by_changed[access.position].add(address)
            return None
        given = None if address.terms else self._image.tensor_map(address.constant)
        if given is None or not access.box:
            return None
        name = self._image.place_of_map(address.constant)[0].partition(",")[0]
        return self._memories.setdefault(address.constant, MappedMemory(name, access.box, given.dims))

    def _bytes(self, kind: int, access: GlobalAccess) -> Memory | None:
        form = Form(0, access.terms)
        low, high = bounds(form)
        first, last = access.ranges[0][0], access.ranges[-1][1] - 1
        found, end = self._memory_at(low + first), self._memory_at(high + last)
        if found is None or found != end:
            values = self._kinds.values(kind, form, None)[1]
            found, end = self._memory_at(int(values.min()) + first), self._memory_at(int(values.max()) + last)
        if found is None or found != end:
            return None
        return self._memories.setdefault(found[0], PointedMemory(found[1], found[0]))

    def _memory_at(self, address: int) -> tuple[int, str] | None:
        """The first address of a memory, and its name; None where there is none."""
        if MODULE_VARIABLES <= address < PARAMETERS:
            return MODULE_VARIABLES, "the module's variables"
        return self._image.memory_at(address)

    def _static_memory(self, position: int) -> int | None:
        """The memory that an instruction accesses as far as its text says it; None if it does not."""
        each, by_changed = self._body[position], self._by_changed
        if position in by_changed:
            stored_by = set().union(*(maps for at, maps in by_changed.items() if self._writes(at)))
            return _LOADED_ALONE if by_changed[position].isdisjoint(stored_by) else _STORED_TO
        for operand in each.operands:
            if isinstance(operand, TensorAddress):
                offset = self._places.parameter(operand.map)
                return None if offset is None else PARAMETERS + offset
        pointer = self._pointer(position)
        value = self._image.parameter(pointer, 8) if pointer >= 0 else None
        found = None if value is None else self._image.memory_at(value)
        return None if found is None else found[0]

    def _pointer(self, position: int) -> int:
        """The offset of the parameter that holds the pointer of an instruction's address, -1 if not known."""
        each = self._body[position]
        first = each.opcode == "fence" or (self._writes(position) and each.opcode != "atom")
        return self._places.pointer(each.operands[0 if first else 1])

    def _outside(self, position: int) -> str:
        """Why an access of bytes is open; of one at a parameter that is a number, what to do."""
        pointer = self._pointer(position)
        if pointer < 0 or self._static_memory(position) is not None:
            return OUTSIDE
        name = self._image.place(PARAMETERS + pointer)
        parameter = f"the parameter at byte {name}" if name[0].isdigit() else name
        return f"{parameter} is not a pointer in the launch file: make it one"

    def _writes(self, position: int) -> bool:
        return kind_of(self._body[position].opcode, self._body[position].modifiers).writes

    # comparison

    def _compare(self, memory: Memory) -> None:
        """Find what meets in one memory."""
        equal: set[int] = set()
        try:
            if isinstance(memory, MappedMemory):
                memory.number(self._kinds)
            while (met := self._meeting(memory, memory.accesses, equal)) is not None:
                one, other, met = self._who(memory, met, equal)
                at = one[1].position
                if at != other[1].position or at in equal or not self._roles.stores_one_value(at):
                    break
                equal.add(at)
            self._equal |= equal
            if met is None:
                for at, loads in self._updates.items():
                    self._look_for_lost(memory, at, loads)
                return
            if not (one[1].sure and other[1].sure):  # there may be another one that is
                met = self._meeting(memory, [each for each in memory.accesses if each[1].sure], equal)
                one, other, met = (one, other, None) if met is None else self._who(memory, met, equal)
        except TooManyError:
            self._leave_open((each.position for _, each in memory.accesses), MANY)
            return
        if met is None or self._looks or not memory.exact or not (one[1].sure and other[1].sure):
            why = ORDER if self._looks else MAYBE
            self._leave_open((each.position for _, each in memory.accesses), why)
            return
        self._races.append(self._race(memory, one, other, met))

    def _race(self, memory: Memory, one: Chosen, other: Chosen, met: ContestedBytes) -> GlobalRace:
        ctas = self._cta(met.one, *one), self._cta(met.other, *other)
        first, second, words = one[1], other[1], memory.in_words(met.low, met.high)
        return GlobalRace(first.position, second.position, *ctas, words, second.kind.writes, first.agent)

    def _look_for_lost(self, memory: Memory, at: int, loads: Collection[int]) -> None:
        """Updates at a position that are not atomic."""
        meets, found = lost_update(memory, self._kinds, self._roles, at, loads)
        sure = found is not None and found[0][1].sure and found[1][1].sure
        if found is not None and sure and memory.exact and not self._looks:
            self._races.append(replace(self._race(memory, *found), lost=True))
        elif meets:
            self._leave_open({at, *loads}, LOST)

    def _look_at_strong(self, memory: Memory) -> None:
        """Strong accesses that meet are no race, but what is read, and what is left, may depend on their order."""
        try:
            self._leave_open(order_decides(memory, self._kinds, self._roles), ORDER)
            for kind, positions in order_decides_inside(memory, self._kinds, self._roles).items():
                self._talking.add(kind)
                self._leave_open(positions, INSIDE)
        except TooManyError:
            self._leave_open((access.position for _, access in strong_accesses(memory, self._roles)), MANY)

    def _look_inside(self, memory: Memory) -> None:
        """What warps of one cluster access alike in one memory."""
        for kind in range(len(self._kinds.clusters)):
            mine = [each for each in memory.accesses if each[0] == kind]
            agents = by_agent(mine)
            if len(agents) < 2:
                continue
            alike = isinstance(memory, PointedMemory) and self._move_together(
                kind, {access.terms for _, access in mine}
            )
            only = int(self._kinds.clusters[kind][0]) if alike else None
            try:
                met = contested([memory.parts(self._kinds, chosen, self._is_plain, only) for chosen in agents.values()])
            except TooManyError:
                self._leave_open((access.position for _, access in mine), MANY)
                continue
            try:
                narrow = self._meets_narrow(memory, mine, kind, only)
            except TooManyError:
                narrow = True
            if narrow:
                self._leave_open((access.position for _, access in mine), SCOPE)
                continue
            if not met:
                continue
            cluster = int(met.owner[0])
            there = met.take(met.owner == cluster)
            ranges = tuple(zip(there.start.tolist(), there.end.tolist(), strict=True))
            positions = frozenset(access.position for _, access in mine)
            not_followed = any(self._roles.has_no_operation(access) for _, access in mine)
            if not isinstance(memory, PointedMemory) or not_followed or self._store_what_differs(memory, mine, only):
                self._leave_open(positions, INSIDE)
                continue
            cta = self._every.first_cta_of(cluster)
            self._inside.append((kind, MeetingInside(cta, memory.name, memory.base, ranges, positions, alike)))

    def _store_what_differs(self, memory: Memory, mine: Sequence[Chosen], only: int | None) -> bool:
        """Whether warps store to the same bytes what they have made of loads at different addresses."""
        for at in {access.position for _, access in mine if access.kind is AccessKind.STORE}:
            loads, agents = loads_behind(at, self._body, self._uses), by_agent(e for e in mine if e[1].position == at)
            loaded: dict[int, set[object]] = {agent: set() for agent, *_ in agents}
            for each in self._readings[mine[0][0]].accesses:
                if each.position in loads and each.agent in loaded:
                    loaded[each.agent].add((each.position, each.terms, each.ranges))
            first, *others = loaded.values()
            if any(each != first for each in others):
                spans = (memory.spans(self._kinds, chosen, only) for chosen in agents.values())
                if contested([(each, each, each) for each in spans]):
                    return True
        return False

    def _look_at_constant_loads(self, memory: Memory) -> None:
        """Loads of constant data (``ld.global.nc``) whose bytes the grid writes: no order makes these right.

        PTX ISA, "ld.global.nc": the data is read-only while the kernel runs.
        """
        loads = [each for each in memory.accesses if not each[1].kind.writes and self._roles.strength(each[1]).nc]
        writes = [each for each in memory.accesses if each[1].kind.writes]
        try:
            written = _by_one(memory.spans(self._kinds, writes if loads else ()), 1)
            for each in loads:
                if met_by_others(written, _by_one(memory.spans(self._kinds, [each]), 0)):
                    self._leave_open((each[1].position,), CONSTANT)
        except TooManyError:
            self._leave_open((access.position for _, access in loads), MANY)

    def _move_together(self, kind: int, terms: Collection[Terms]) -> bool:
        """Whether addresses of these terms are equally far from each other in all clusters of a kind."""
        first, *others = (np.asarray(self._kinds.evaluations[kind].sum(Form(0, each))) for each in terms)
        return all(bool(np.all(each - first == (each - first).flat[0])) for each in others)

    def _is_plain(self, access: GlobalAccess) -> bool:
        return not self._roles.is_strong(access) or access.position in self._updates

    def _is_narrow(self, access: GlobalAccess) -> bool:
        return self._roles.is_strong(access) and self._roles.strength(access).scope is Scope.CTA

    def _meets_narrow(self, memory: Memory, mine: list[Chosen], kind: int, only: int | None) -> bool:
        """Whether strong accesses of CTA scope meet those of another CTA of the cluster, which it does not include."""
        ranks = defaultdict(list)
        for each in mine:
            ranks[self._readings[kind].ranks[each[1].agent]].append(each)
        parts = [
            memory.parts(self._kinds, chosen, self._is_narrow, only) for chosen in ranks.values() if len(ranks) > 1
        ]
        return any(narrow for _, _, narrow in parts) and bool(contested(parts))

    def _meeting(self, memory: Memory, accesses: Sequence[Chosen], equal: Collection[int]) -> ContestedBytes | None:
        """Two clusters whose accesses are a race unless something orders them; the first one writes."""

        def of(*roles: AccessRole) -> Spans:
            return memory.spans(self._kinds, [each for each in accesses if self._roles.of(each[1], equal) in roles])

        writes, strong = of(AccessRole.WRITE), of(AccessRole.STRONG_WRITE)
        found = met_by_each_other(writes) if writes else None
        found = found or met_by_others(writes, of(*set(AccessRole) - {AccessRole.WRITE}))
        found = found or met_by_any(strong, of(AccessRole.READ))
        for at in equal if found is None else ():
            parts = ([each for each in accesses if (each[1].position == at) is mine] for mine in (True, False))
            found = found or met_by_any(*(memory.spans(self._kinds, part) for part in parts))
        return found

    def _who(
        self, memory: Memory, met: ContestedBytes, equal: Collection[int]
    ) -> tuple[Chosen, Chosen, ContestedBytes]:  # fmt: skip
        """The accesses of both clusters that meet, and where they do."""
        for one, low, high in memory.accessing(self._kinds, met.one, met.low, met.high):
            for other, begin, end in memory.accessing(self._kinds, met.other, low, high):
                roles = {self._roles.of(one[1], equal), self._roles.of(other[1], equal)}
                alike = roles <= STRONG or (roles == {AccessRole.EQUAL} and one[1].position == other[1].position)
                if self._roles.of(one[1], equal) in WRITES and not alike:
                    return one, other, ContestedBytes(met.one, met.other, begin, end)
        raise TooManyError

    def _cta(self, cluster: int, kind: int, access: GlobalAccess) -> int:
        """The number in the grid of the CTA of a cluster that makes an access."""
        rank, (x, y, _) = self._readings[kind].ranks[access.agent], self._launch.cluster
        gx, gy, _ = self._launch.grid
        return self._every.first_cta_of(cluster) + rank % x + gx * (rank // x % y + gy * (rank // (x * y)))


def _by_one(spans: Spans, owner: int) -> Spans:
    """The ranges as those of one cluster."""
    return joined([Spans(spans.start, spans.end, np.full(len(spans.owner), owner))])
