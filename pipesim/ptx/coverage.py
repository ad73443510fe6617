"""What was read of a kernel, in sentences: what was not followed or left out, what is assumed, what is not judged."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pipesim.model.coverage import Assumed, Assumption, Coverage, Forbidden, NotJudged, NotJudgedKind, never_wrapped
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op, Space, operand
from pipesim.model.tables import number_runs
from pipesim.ptx.emit.names import barrier_names, source_of
from pipesim.ptx.emit.record import BARRIER_BYTES, Stream, wgmma_groups
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.global_memory.global_accesses import kind_of
from pipesim.ptx.emulate.shared_uses import storing_at_once, touching_others
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulate.tensor_allocations import allocation_faults
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.emulation import Emulation, launch_events, used_once
from pipesim.ptx.flow.loop_ends import uncounted_loops
from pipesim.ptx.flow.opcodes import may_touch_global, on_tensor_maps
from pipesim.ptx.flow.open_results import unfenced_products, waiting_loops
from pipesim.ptx.flow.slice import LaunchNeed, Need
from pipesim.ptx.flow.uses import stores_one_value
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.instruction import Instruction

_MOST_LISTED = 8  #: entries of a kind in the coverage


def coverage_of(kernel: Kernel, emulation: Emulation) -> Coverage:
    """What the emulation did not follow, left out and assumed, in sentences."""
    words = _Words(kernel, emulation.cluster)
    followed = emulation.cluster.launch_events is not None
    dependent = launch_events(kernel, emulation.cluster, words.place_of) if followed else ()
    stopped, blocked = _where_it_ends(words, emulation.unsolved)
    if emulation.left_out:
        stopped = (*stopped, f"{emulation.left_out:,} warp instructions of laps like others are left out")
    notes, at = emulation.cluster.notes, words.place_of
    return Coverage(
        stopped=stopped,
        blocked=blocked,
        left_out=_few(_left_out(words, unread=False)),
        unread=_few(_left_out(words, unread=True)),
        perhaps=_few([f"{at(p)}: what depends on {what} may not happen" for p, what in sorted(notes.perhaps.items())]),
        inferred=_few([f"{at(p)}: {what}" for p, what in sorted(notes.inferred.items())]),
        unsized=tuple(_without_boxes(words)),
        weakened=_few(_unknown_order(words)),
        fences=_few(
            [f"{at(p)}: whether this fence runs depends on {_VALUE}" for p in sorted(notes.fences)]
            + [f"{at(p)}: {_OF_OTHER_LANES}" for p in sorted(notes.fences_apart)]
        ),
        reductions=_few([f"{at(p)}: {_IN_ANY_ORDER}" for p in sorted(notes.reductions)]),
        ahead=tuple(at(p).partition(" ")[0] for p in sorted(notes.ahead)),
        assumed=tuple(_assumptions(words)),
        undefined=_few(_undefined_behaviour(words)),
        partial=tuple(f"{at(p)} warp {number}" for p, number in sorted(notes.partial.items())),
        forbidden=tuple(_forbidden(words, ended=not stopped and not blocked)),
        extracted=(_instructions(emulation), *_operation_counts(emulation.cluster)),
        not_judged=tuple(_not_judged(words, of_launches=bool(dependent))),
        ctas=_followed(kernel.launch),
        dependent=dependent,
    )


_VALUE = "a value that is not known"
_OF_OTHER_LANES = "lanes have waited before this fence, or signal after it, for which it orders nothing"
_MANY_WAYS = "its lanes signal and wait on more ways of branches than are followed apart"
_IN_ANY_ORDER = "several reductions change the same bytes in any order"


def loop_ends(place: str) -> str:
    """What is assumed of a loop at a place that waits for global memory."""
    return f"the loop at {place} ends, which waits for global memory"


def place_in(kernel: Kernel, position: int) -> str:
    """A place of a kernel: the source line, if it is known, and the line of the PTX."""
    module, body = kernel.module, kernel.function.body
    each = body[min(position, len(body) - 1)]
    return f"{source_of(each, module)} ({module.name}:{each.line})" if each.source else f"{module.name}:{each.line}"


@dataclass(frozen=True)
class _Words:
    """A kernel and what was done with it, and how places and warps are named."""

    kernel: Kernel
    cluster: Cluster

    @property
    def asked(self) -> Collection[int]:
        """Where data decides what a CTA does, and its answers are any."""
        return self.cluster.data.asked if self.cluster.data is not None else ()

    def place_of(self, position: int) -> str:
        """A place of the kernel."""
        return place_in(self.kernel, position)

    def who(self, *warps: EmulatedWarp) -> str:
        """Some warps: ``warps 0 to 3, 5 of CTA 1``."""
        said = []
        for cta in sorted({warp.cta for warp in warps}):
            numbers = sorted({warp.number for warp in warps if warp.cta == cta})
            runs = "warp " + number_runs(numbers) if len(numbers) == 1 else "warps " + number_runs(numbers)
            said.append(runs + (f" of CTA {cta}" if self.cluster.ctas > 1 else ""))
        return ", ".join(said)


def _where_it_ends(words: _Words, unsolved: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The warps that were not followed to their end, and those that wait when all do."""
    stopped: dict[str, list[EmulatedWarp]] = {unsolved: []} if unsolved else {}
    blocked: dict[str, list[EmulatedWarp]] = {}
    for warp in words.cluster.warps:
        if warp.status is Status.STOPPED and warp.stop is not None:
            leaf, what = warp.stop.leaf, warp.stop.what
            if leaf is not None:
                known = f"{leaf.what} (line {leaf.line} of the PTX)" if leaf.line else leaf.what
                open_ = known if leaf.option else f"{known}, which is not known"
                what = what.replace(_VALUE, open_) if _VALUE in what else f"{what}: {known}"
            why = f"not followed beyond {words.place_of(warp.stop.position)}: {what}"
            stopped.setdefault(why, []).append(warp)
        elif warp.status is Status.BLOCKED:
            blocked.setdefault(f"waiting at {words.place_of(warp.pc)} when every warp waits", []).append(warp)
    leaves = [warp.stop.leaf for warp in words.cluster.warps if warp.stop is not None]
    wanted = words.kernel.code.wanted
    stops = dict.fromkeys(leaf.option for leaf in leaves if leaf is not None and leaf.option)
    options = list(dict.fromkeys([*(missing_options(words.cluster.image, wanted) if stops else ()), *stops]))
    threads, most = prod(words.kernel.launch.block), prod(words.kernel.entry.directives.get("maxntid", ()))
    fewer = f"the block has {threads:,} threads, and the kernel is compiled for {most:,} (.maxntid)"
    return (
        tuple(f"{words.who(*warps)}: {why}" if warps else why for why, warps in stopped.items())
        + (
            (f"give all that the kernel needs with {' '.join(options)}",)
            if " ".join(options).count("VALUE") > 1
            else ()
        ),
        tuple(f"{words.who(*warps)}: {why}" for why, warps in blocked.items())
        + ((fewer,) if blocked and threads < most else ()),
    )


def missing_options(image: Image, wanted: Sequence[LaunchNeed]) -> list[str]:
    """The options for all words of the parameters, and boxes of tensor maps, that are not known and that it needs."""
    found = []
    maps = {each.offset for each in wanted if each.need is Need.TENSOR_MAP}
    for need, offset, nbytes, kind, _ in wanted:
        in_map = any(each <= offset < each + 128 for each in maps)
        if need is Need.PARAMETER and not in_map and image.parameter(offset, nbytes) is None:
            found.append(f"--set {image.place(PARAMETERS + offset)}=VALUE")
        made = image.tensor_map(PARAMETERS + offset) if need is Need.TENSOR_MAP else None
        if made is not None and not made.box_bytes:
            found.append(_box(image.place(PARAMETERS + offset), int(kind[0])))
    return list(dict.fromkeys(found))


def _left_out(words: _Words, *, unread: bool) -> list[str]:
    """Accesses at unknown addresses, and instructions that are not known: those that may disturb others, or not."""
    at, notes, body, recorder = words.place_of, words.cluster.notes, words.kernel.function.body, words.cluster.recorder
    found = {p: f"{at(p)}: {body[p].mnemonic}: {why}" for p, why in sorted(notes.left_out.items())}
    found |= {p: f"{at(p)}: {mnemonic} is not known" for p, mnemonic in sorted(notes.unread.items())}
    disturbs = touching_others(list(notes.accesses), recorder) | recorder.reused if found else ()
    return [said for p, said in found.items() if (p in disturbs) is unread]


def _box(place: str, rank: int) -> str:
    """The option that gives a box with this number of dimensions."""
    return f"--box {place}={','.join(['TYPE:SIZE', *['SIZE'] * (rank - 1)])}"


MEMORY_OF_ONE = "what the kernel writes is the memory of one pointer or tensor map alone"


def _assumptions(words: _Words) -> Iterator[Assumed]:
    """What is assumed, place by place."""
    at, notes, kernel, memory = words.place_of, words.cluster.notes, words.kernel, words.cluster.globals
    tables = words.cluster.image.tables_read
    accesses = list(notes.accesses)
    at_once = storing_at_once(accesses, words.cluster.recorder) if accesses else frozenset[int]()
    followed = kernel.code.kept - notes.passed_over
    waits = waiting_loops(kernel.function, kernel.code.regions.graph, followed)
    regions, values = kernel.code.regions, words.cluster.image.values_of
    computes = uncounted_loops(kernel.function, regions.graph, regions.uses, followed, values)
    contested = memory.contested if words.cluster.words is None else ()  # of CTAs together they are operations
    policies = sorted((notes.policies | memory.policies).items())
    apart = sorted(notes.apart | kernel.code.of_lanes_together)
    data, on_global = words.cluster.data, filter(may_touch_global, kernel.function.body)
    is_apart = data is not None and data.asked and notes.alike  # what data decides is the same for all
    is_apart = is_apart and any(kind_of(each.opcode, each.modifiers).writes for each in on_global)
    loaded = dict.fromkeys(reader for p, reader in kernel.too_early if kernel.function.body[p].opcode != "wgmma")
    for kind, said in (
        (
            Assumption.TENSOR_LOADS,
            (
                f"tensor memory is loaded where its registers are read before tcgen05.wait::ld, at {at(p)}"
                for p in loaded
            ),
        ),
        (Assumption.TENSOR_LANES, (f"each warp accesses its own lanes at {at(p)}" for p in sorted(notes.own_lanes))),
        (Assumption.LANES, map(at, apart)),
        (Assumption.TIME_OUTS, (f"the wait at {at(p)} does not time out" for p in sorted(notes.time_outs))),
        (Assumption.LOOPS, (f"the loop at {at(p)} ends" for p in computes if p not in waits)),
        (Assumption.GLOBAL_LOOPS, (loop_ends(at(p)) for p in waits)),
        (Assumption.TRAPS, (f"the trap after {at(p)} is not reached" for p in sorted(notes.traps))),
        (Assumption.POLICIES, (f"{at(p)}: {what}" for p, what in policies)),
        (Assumption.GLOBAL_WORDS, (f"{word} is read by one warp before another one changes it" for word in contested)),
        (Assumption.BUFFERS, [MEMORY_OF_ONE] if is_apart else []),
        (Assumption.GLOBAL_WORDS, map("{} in constant memory holds its initial values".format, tables)),
        (
            Assumption.EQUAL_STORES,
            (
                f"warps or lanes that store to the same bytes at {at(p)} store the same"
                for p in sorted(notes.equal_stores | at_once)
                if not stores_one_value(p, kernel.function.body, kernel.code.regions.uses)
            ),
        ),
        (
            Assumption.EXITED_THREADS,
            (f"threads that have ended count at the barrier at {at(p)}" for p in sorted(notes.ended)),
        ),
        (
            Assumption.GENERIC_ADDRESSES,
            (
                f"of a generic address given to .shared the low 32 bits are taken, at {at(p)}"
                for p in sorted(notes.generic)
            ),
        ),
    ):
        yield from (Assumed(kind, each) for each in said)
    for p in sorted(notes.exchanged):
        what = "a lane accesses what others of its warp have accessed before"
        yield Assumed(Assumption.LANES, what, (at(p).partition(" ")[0],))


#: What a verdict says of instructions of these opcodes, if they are on global memory.
_GLOBAL = {
    **dict.fromkeys(("ld", "ldu", "tex", "tld4", "suld"), NotJudgedKind.GLOBAL_LOADS),
    **dict.fromkeys(("st", "sust", "discard"), NotJudgedKind.GLOBAL_STORES),
    **dict.fromkeys(("atom", "red", "sured"), NotJudgedKind.GLOBAL_ATOMICS),
}
#: The same by a modifier.
_FORMS = {
    "multimem": {
        "ld_reduce": NotJudgedKind.GLOBAL_LOADS,
        "st": NotJudgedKind.GLOBAL_STORES,
        "red": NotJudgedKind.GLOBAL_ATOMICS,
    },
    "wmma": {"load": NotJudgedKind.GLOBAL_LOADS, "store": NotJudgedKind.GLOBAL_STORES},
}
_SPACES = ("global", "shared", "local", "param", "const")


def _not_judged(words: _Words, *, of_launches: bool) -> Iterator[NotJudged]:
    """What the verdict is not about: instructions of the kernel, and sizes that were worked out.

    ``of_launches``: its order with earlier kernels was read; then only what lets dependent ones begin is not judged.
    """
    cluster = words.cluster
    shared = {at for stream in cluster.recorder.streams for at in stream.positions}
    kinds = (kind_on_global(each, shared) for each in words.kernel.function.body)
    found = Counter(kind for kind in kinds if kind is not None)
    body = words.kernel.function.body
    launches = [each for each in body if each.opcode == "griddepcontrol" and not (of_launches and each.has("wait"))]
    found[NotJudgedKind.DEPENDENT_LAUNCH] = len(launches) or (cluster.launch_events is not None and not of_launches)
    left_out = len(cluster.notes.left_out) + len(cluster.notes.unread)
    found += Counter({NotJudgedKind.LEFT_OUT: left_out, NotJudgedKind.INFERRED_BYTES: len(cluster.notes.inferred)})
    yield from (NotJudged(kind, found[kind]) for kind in NotJudgedKind if found[kind])
    if unknown := sorted(cluster.notes.unknown_meetings):
        yield NotJudged(NotJudgedKind.LANES_MEET, len(unknown), tuple(map(words.place_of, unknown)))
    graph = words.kernel.code.regions.graph
    in_loops = {at for at in words.asked if any(graph.block_of[at] in loop.blocks for loop in graph.loops)}
    if asked := sorted(in_loops):
        yield NotJudged(NotJudgedKind.DATA_LAPS, len(asked), tuple(map(words.place_of, asked)))
    if once := used_once(words.kernel, cluster):
        kernel = words.kernel
        names = barrier_names(
            cluster.recorder, cluster.initialised, kernel.function, kernel.module, kernel.launch.names
        )
        yield never_wrapped([names[place] for place in once], names.values())


def kind_on_global(each: Instruction, shared: Collection[int] = ()) -> NotJudgedKind | None:
    """What an instruction does to global memory, None if nothing; ``shared``: positions whose address is shared."""
    spaces = [name for name in (part.partition("::")[0] for part in each.modifiers) if name in _SPACES]
    if on_tensor_maps(each):
        return NotJudgedKind.TENSOR_MAPS if may_touch_global(each) else None
    if (each.opcode == "cp" or each.has("cp")) and "global" in spaces and not each.has("prefetch"):
        if spaces[0] != "global":
            return NotJudgedKind.GLOBAL_LOADS
        return NotJudgedKind.GLOBAL_ATOMICS if each.has("reduce") else NotJudgedKind.GLOBAL_STORES
    elsewhere = spaces != ["global"] if spaces else each.position in shared
    if elsewhere:
        return None
    forms = _FORMS.get(each.opcode, {})
    return next((kind for form, kind in forms.items() if each.has(form)), _GLOBAL.get(each.opcode))


def _followed(launch: Launch) -> tuple[int, ...]:
    """The CTAs of the grid that are followed: those of one cluster."""
    (gx, gy, _), (cx, cy, cz) = launch.grid, launch.cluster
    if launch.together:
        return tuple((z * gy + y) * gx + x for x, y, z in launch.followed_together)
    x, y, z = launch.first_cta
    return tuple(((z + k) * gy + y + j) * gx + x + i for k in range(cz) for j in range(cy) for i in range(cx))


def _unknown_order(words: _Words) -> list[str]:
    """What makes some of the order between warps unknown."""
    at, notes = words.place_of, words.cluster.notes
    parts = [warp for warp in words.cluster.warps if warp.is_part]
    weakened = [f"{words.who(warp)}: lanes {warp.lanes:#010x} are followed apart from the others" for warp in parts]
    polled = "a warp looks at a word of shared memory, and what this orders is not followed"
    weakened += [f"{at(p)}: {polled}" for p in sorted(notes.polls - words.cluster.settled)]
    again = "it waits for each phase, also where a try before it was answered yes"
    return weakened + [f"{at(p)}: {again}" for p in sorted(notes.asked_together)]


def _without_boxes(words: _Words) -> Iterator[str]:
    """The tensor maps whose boxes a proof needs, and last the options that give all of them.

    A store's bytes are nowhere counted, and those of loads are inferred from the phases that a proof is about.
    """
    copies, image = words.cluster.boxless, words.cluster.image
    options = []
    for key in sorted(copies.uses, key=lambda each: each if isinstance(each, int) else 1 << 64):
        use = copies.uses[key]
        what, place = image.place_of_map(key) if isinstance(key, int) else ("", "")
        options += [_box(place, use.rank)] if place else []
        known = copies.sizes.get(key, 0) if key not in copies.open else 0
        fits = f": {known:,} bytes each, alone in a phase" if known and use.loads else ""
        fits = ": no box fits all of their phases" if copies.none_fits and use.loads else fits
        places = [words.place_of(position).partition(" ")[0] for position in sorted({*use.loads, *use.stores})]
        at = f"{places[0]}{f' and {len(places) - 1} more' if places[1:] else ''}"
        yield f"{what or 'a tensor map at an address that is not known'}, copied at {at}{fits}"
    if options:
        yield f"give {'them' if options[1:] else 'it'} with {' '.join(options)}; TYPE:SIZE,SIZE as bf16:64,128"


def _undefined_behaviour(words: _Words) -> list[str]:
    """What PTX does not define."""
    at, kernel, cluster = words.place_of, words.kernel, words.cluster
    noted = [f"{at(p)}: {what}" for p, what in sorted(cluster.notes.undefined.items())]
    noted += [f"{words.who(warp)}: {_MANY_WAYS}" for warp in cluster.warps if warp.apart.to_part]
    return [*noted, *_outside(kernel, cluster), *_overwritten(cluster, at), *_read_too_early(kernel, at)]


def _forbidden(words: _Words, *, ended: bool) -> Iterator[Forbidden]:
    """What is wrong in the code whatever the schedule: with how tensor memory is allocated, and with operands."""
    at, body = words.place_of, words.kernel.function.body
    has_tensor_memory = any(each.opcode == "tcgen05" for each in body)
    allocated = allocation_faults(words.cluster.columns, ended=ended) if has_tensor_memory else {}
    yield from unfenced_maps(words.kernel, words.cluster.maps.faults)
    for p, what in sorted(allocated.items()):
        yield Forbidden(FaultKind.TENSOR_ALLOCATION, at(p), body[p].mnemonic, what)
    for writer, reader, agent in _read_early_for_sure(words):
        what = f"{body[reader].mnemonic} at {at(reader)} reads registers that this wgmma writes, before a wait for it"
        yield Forbidden(FaultKind.READ_BEFORE_WAIT, at(writer), body[writer].mnemonic, what, agent=agent)
    notes = words.cluster.notes
    for unless, found in (("", notes.illegal), (Assumption.TENSOR_LANES.value, notes.own_lanes)):
        for p, (agent, what, correction) in sorted(found.items()):
            yield Forbidden(FaultKind.ILLEGAL_OPERAND, at(p), body[p].mnemonic, what, correction, agent, unless)
    regions = words.kernel.code.regions
    unfenced = unfenced_products(words.kernel.function, regions.graph, regions.uses, _ways(words))
    products: dict[str, list[tuple[int, str]]] = {}
    for p, register in sorted(unfenced.items()):
        what, moved = f"no fence since an access to {register}", _moved_past(words, p, register) if register else None
        if moved is not None:
            what += f" at {at(moved[0])}, which the compiler has moved past the fence at {at(moved[1])}"
        products.setdefault(_BIND if moved else _FENCE, []).append(
            (p, what if register else "no fence at all comes before it")
        )
    for correction, ((p, what), *others) in products.items():
        lines = [*dict.fromkeys(at(other).partition(" (")[0] for other, _ in others)]
        more = f"; nor before {len(others):,} more, at {', '.join(lines[:_MOST_LISTED])}" if others else ""
        yield Forbidden(FaultKind.WGMMA_FENCE, at(p), body[p].mnemonic, what + more, correction)


def unfenced_maps(kernel: Kernel, faults: Mapping[int, tuple[int, int, str]]) -> Iterator[Forbidden]:
    """Copies by tensor maps that the kernel has changed, without a fence (:class:`.map_fences.MapFences`)."""
    for p, (agent, change, fence) in sorted(faults.items()):
        said, where = ("d", "after the change") if fence == "release" else ("d in this CTA since", "before the copy")
        what = f"the tensor map of this copy is changed at {place_in(kernel, change)}, and not {fence}{said}"
        correction = f"execute fence.proxy.tensormap::generic.{fence} {where}"
        place, mnemonic = place_in(kernel, p), kernel.function.body[p].mnemonic
        yield Forbidden(FaultKind.TENSOR_MAP_FENCE, place, mnemonic, what, correction, agent)


def _moved_past(words: _Words, product: int, register: str) -> tuple[int, int] | None:
    """The last write of a register before a product, and a fence before it that the source has after that write.

    A compiler orders an ``asm volatile`` with memory, and not with registers that it does not name.
    """
    body, writes = words.kernel.function.body, words.kernel.code.regions.uses.writes
    write = next((p for p in range(product - 1, -1, -1) if register in writes[p]), -1)
    fence = next((p for p in range(write, -1, -1) if body[p].opcode == "wgmma" and body[p].has("fence")), -1)
    sources = [body[p].source for p in (write, fence, product) if p >= 0]
    lines = [source.frames[0] for source in sources if source is not None]
    if len(lines) < 3 or len({(each.file, each.function) for each in lines}) > 1:
        return None
    return (write, fence) if lines[0].line < lines[1].line < lines[2].line else None


#: As CUTLASS's warpgroup_fence_operand does.
_BIND = 'name the registers as operands ("+r") of an empty asm volatile between that access and the fence'
_FENCE = "execute wgmma.fence before it, after that access"


def _ways(words: _Words) -> frozenset[int]:
    """The blocks that an agent has run, and those of which nothing was kept: they may have run."""
    code, graph = words.kernel.code, words.kernel.code.regions.graph
    decisive = {graph.block_of[p] for p in code.kept}
    ran = {graph.block_of[p] for p in words.cluster.recorder.ran if p < code.end}
    return frozenset(ran | (set(range(len(graph.blocks))) - decisive))


def _instructions(emulation: Emulation) -> str:
    left_out = emulation.left_out
    said = f"{emulation.instructions + left_out:,} warp instructions"
    return f"{said}, {left_out:,} of them in laps like others" if left_out else said


def _operation_counts(cluster: Cluster) -> list[str]:
    """How many operations of each kind the program has."""
    kinds = Counter(Op(op[0]).name for stream in cluster.recorder.streams for op in stream.code if op[0] != Op.WORK)
    return [f"{count:,} {name}" for name, count in sorted(kinds.items())]


def _outside(kernel: Kernel, cluster: Cluster) -> list[str]:
    """What is touched beyond the shared memory of a CTA, where the launch says how much that is."""
    given, variables = kernel.launch.dynamic_shared, kernel.function.shared
    if not given and any(each.external for each in variables):
        return []
    end = kernel.function.shared_bytes(given)
    recorder = cluster.recorder
    most = max((each.offset + each.nbytes for each in recorder.accesses if each.space is Space.SHARED), default=0)
    most = max(most, *(offset + BARRIER_BYTES for _, offset in recorder.barriers), 0)
    return [f"byte {most - 1:,} of shared memory is used, of which a CTA has {end:,}"] if most > end else []


def _overwritten(cluster: Cluster, at: Callable[[int], str]) -> list[str]:
    """Mbarriers over which something is written while they live."""
    return [
        f"{at(position)}: it writes over the mbarrier of {at(cluster.initialised[place])}, which is in use"
        for place, position in cluster.recorder.overwritten.items()
    ]


def _read_too_early(kernel: Kernel, at: Callable[[int], str]) -> list[str]:
    """Registers of wgmmas that are read while they may be written: what follows from them is not known."""
    return [
        f"{at(writer)}: registers that it writes are read at {at(reader)} before a wait for it"
        for writer, reader in kernel.too_early
        if kernel.function.body[writer].opcode == "wgmma"
    ]


def _read_early_for_sure(words: _Words) -> Iterator[tuple[int, int, int]]:
    """Those of which an agent that was followed to its end executes the last one and no wait for its group."""
    kernel, streams = words.kernel, words.cluster.recorder.streams
    ended = [warp.agent for warp in words.cluster.warps if warp.status is Status.ENDED]
    for writer in sorted(kernel.code.read_early):
        agents = [agent for agent in ended if _is_open_at_the_end(streams[agent], writer)]
        if agents:
            yield writer, dict(kernel.too_early)[writer], min(agents)


def _is_open_at_the_end(stream: Stream, writer: int) -> bool:
    """Whether an agent executes this wgmma, and after the last time no wait for its group."""
    groups = 0
    for op in wgmma_groups(stream)[stream.products.get(writer, len(stream.code)) :]:
        groups += op[0] == Op.COMMIT
        if op[0] == Op.WAIT_GROUP and operand(op, "groups") < groups:
            return False
    return writer in stream.products


def _few(sentences: list[str]) -> tuple[str, ...]:
    more = len(sentences) - _MOST_LISTED
    return tuple(sentences) if more <= 0 else (*sentences[:_MOST_LISTED], f"and {more} more")
