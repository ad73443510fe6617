"""A kernel's PTX and one launch in, a flat program with its coverage out: reading, emulation, emission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from pipesim.errors import LaunchFileError
from pipesim.model.coverage import Coverage
from pipesim.model.ops import Engine, Op, Space, operand
from pipesim.model.program import ALL_LANES, Program
from pipesim.ptx.emit.build import program_of
from pipesim.ptx.emit.names import kernel_name, source_of
from pipesim.ptx.emit.record import BARRIER_BYTES, Stream, covers
from pipesim.ptx.emulate.cluster import Cluster, EmulationLimits
from pipesim.ptx.emulate.code import Code
from pipesim.ptx.emulate.constants import Constants
from pipesim.ptx.emulate.effects.table import effect_of
from pipesim.ptx.emulate.regions import Regions
from pipesim.ptx.emulate.synchronising import synchronises
from pipesim.ptx.emulate.warp import EmulatedWarp, Status
from pipesim.ptx.flow.awaited import awaiting
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.inline import inlined
from pipesim.ptx.flow.opcodes import may_touch_shared
from pipesim.ptx.flow.slice import slice_of
from pipesim.ptx.flow.unwaited import read_too_early, used_at_once
from pipesim.ptx.flow.uses import uses_of
from pipesim.ptx.launch.fits import fitted
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand
from pipesim.ptx.text.module import Function, Module

_MOST_PARTINGS = 8  #: times that the lanes of warps are followed apart in more parts
_MOST_LISTED = 8  #: entries of a kind in the coverage


@dataclass(frozen=True)
class Extraction:
    """A flat program and how much was run for it: warp instructions, and those of the kernel that were kept."""

    program: Program
    places: tuple[tuple[int, int], ...]  #: CTA and byte offset in shared memory of each barrier of the program
    instructions: int
    kept: int
    body: int


@dataclass(frozen=True)
class Kernel:
    """A kernel of a module, ready to be emulated with the values of one launch."""

    module: Module
    launch: Launch
    entry: Function
    function: Function  #: the kernel with the bodies of the functions that it calls
    code: Code
    too_early: tuple[tuple[int, int], ...]  #: what writes registers late, and who reads them before the wait


@dataclass(frozen=True)
class Emulation:
    """What the warps of one cluster did. ``unsolved``: why the bytes of copies are not known, if so."""

    cluster: Cluster
    instructions: int  #: of all warps, in all runs
    unsolved: str


def extract(module: Module, launch: Launch, limits: EmulationLimits | None = None) -> Extraction:
    """Emulate one cluster of the launch and write what it did as a flat program.

    Raises LaunchFileError if launch and kernel do not fit.
    """
    kernel = prepare(module, launch)
    return emit(kernel, emulate(kernel, limits))


def with_contents_read(module: Module, launch: Launch) -> Launch:
    """The launch with only as much of the arrays in memory as reading the kernel asks for.

    Nothing is left out where the kernel is not followed to its end. LaunchFileError if launch and kernel do not fit.
    """
    kernel = prepare(module, launch)
    emulation = emulate(kernel)
    if emit(kernel, emulation).program.coverage.stopped:
        return launch
    return emulation.cluster.image.as_read(launch)


def prepare(module: Module, launch: Launch) -> Kernel:
    """Flow: calls replaced by bodies, and what synchronisation depends on.

    Raises LaunchFileError if launch and kernel do not fit.
    """
    entry = entry_of(module, launch)
    launch = fitted(launch, entry)
    function = inlined(module, entry)
    graph, uses = graph_of(function), uses_of(function)
    part = slice_of(function, graph, uses)
    code = Code(function, Regions(function, graph, part.kept, uses, part.opaque), part)
    code.effect_of = effect_of
    early = read_too_early(function, graph, uses)
    loads = [p for p, _ in early if function.body[p].opcode == "tcgen05"]
    code.loaded_at_once = frozenset(p for p in loads if used_at_once(function, graph, uses, p))
    return Kernel(module, launch, entry, function, code, early)


def emulate(kernel: Kernel, limits: EmulationLimits | None = None) -> Emulation:
    """Run the cluster: again where lanes have to be followed apart, and where bytes of copies had to be worked out."""
    code, launch = kernel.code, kernel.launch
    limits = limits or EmulationLimits()
    image, constants = Image(launch, kernel.entry), Constants(kernel.module)
    cluster = Cluster(code, launch, image, constants)
    instructions = cluster.run(limits)
    apart: dict[tuple[int, int], tuple[int, ...]] = {}
    for _ in range(_MOST_PARTINGS):
        parted = cluster.must_part()
        if not parted:
            break
        apart |= parted
        cluster = Cluster(code, launch, image, constants, apart)
        instructions += cluster.run(replace(limits, instructions=limits.instructions - instructions))
    unsolved = ""
    if cluster.equations or any(cluster.landed_copies.values()):
        sizes = solved(cluster.equations)
        if sizes is None:
            unsolved = _unsolved(kernel, cluster)
        else:
            cluster = Cluster(code, launch, image, constants, apart)
            cluster.sizes = sizes
            instructions += cluster.run(replace(limits, instructions=limits.instructions - instructions))
    reused = frozenset(
        place for place in cluster.initialised if any(covers(a, place) for a in cluster.recorder.written)
    )
    if reused and not unsolved:
        sizes, cluster = cluster.sizes, Cluster(code, launch, image, constants, apart)
        cluster.sizes, cluster.reused = sizes, reused
        instructions += cluster.run(replace(limits, instructions=limits.instructions - instructions))
    return Emulation(cluster, instructions, unsolved)


def _unsolved(kernel: Kernel, cluster: Cluster) -> str:
    """Which copies have bytes that are needed, and what is known of them."""
    body, module = kernel.function.body, kernel.module
    places = sorted(set(cluster.unsized.values()))
    lines = [f"{source_of(body[at], module)} ({module.name}:{body[at].line})" for at in places]
    sums = sorted({total for copies, total in cluster.equations if len(copies) > 1})
    known = f": known is the sum of several, {sums[0]:,}" if sums else ""
    return f"needed is the box of the tensor maps of the copies at {_some(lines)}; the launch file has none{known}"


def emit(kernel: Kernel, emulation: Emulation) -> Extraction:
    """What the warps did, as a flat program with its coverage."""
    cluster, function, module = emulation.cluster, kernel.function, kernel.module
    coverage = coverage_of(kernel, emulation)
    recorder = cluster.recorder
    name = kernel_name(kernel.launch.entry)
    program = program_of(name, recorder, cluster.initialised, function, module, kernel.launch, coverage)
    body = len(function.body)
    return Extraction(program, tuple(recorder.barriers), emulation.instructions, len(kernel.code.kept), body)


def entry_of(module: Module, launch: Launch) -> Function:
    """The kernel that is launched. LaunchFileError if the file does not have it."""
    entry = module.function(launch.entry)
    if entry is None or not entry.body:
        names = ", ".join(each.name for each in module.entries)
        raise LaunchFileError(
            f"{module.name} has no kernel {launch.entry}", cause=f"it has {names or 'none'}", correction="name one"
        )
    return entry


def solved(equations: list[tuple[tuple[object, ...], int]]) -> dict[object, int] | None:
    """Bytes of one copy by each tensor map, from phases: so many copies of each, and their bytes together.

    None unless there is one solution, of positive integers.
    """
    keys = list(dict.fromkeys(key for copies, _ in equations for key in copies))
    rows = {(*(copies.count(key) for key in keys), total) for copies, total in equations}
    matrix = [[Fraction(v) for v in row] for row in sorted(rows)]
    rank = 0
    for column in range(len(keys)):
        pivot = next((r for r in range(rank, len(matrix)) if matrix[r][column]), None)
        if pivot is None:
            return None
        matrix[rank], matrix[pivot] = matrix[pivot], matrix[rank]
        matrix[rank] = [v / matrix[rank][column] for v in matrix[rank]]
        for r in range(len(matrix)):
            if r != rank and matrix[r][column]:
                matrix[r] = [a - matrix[r][column] * b for a, b in zip(matrix[r], matrix[rank], strict=True)]
        rank += 1
    if any(row[-1] for row in matrix[rank:]):
        return None
    sizes = {key: matrix[i][-1] for i, key in enumerate(keys)}
    if any(size.denominator != 1 or size <= 0 for size in sizes.values()):
        return None
    return {key: int(size) for key, size in sizes.items()}


def coverage_of(kernel: Kernel, emulation: Emulation) -> Coverage:
    """What the emulation did not follow, left out and assumed, in sentences."""
    cluster, function, module = emulation.cluster, kernel.function, kernel.module
    instructions, unsolved = emulation.instructions, emulation.unsolved

    def at(position: int) -> str:
        each = function.body[min(position, len(function.body) - 1)]
        return f"{source_of(each, module)} ({module.name}:{each.line})" if each.source else f"{module.name}:{each.line}"

    def who(*warps: EmulatedWarp) -> str:
        said = []
        for cta in sorted({warp.cta for warp in warps}):
            numbers = sorted({warp.number for warp in warps if warp.cta == cta})
            runs = "warp " + _numbers(numbers) if len(numbers) == 1 else "warps " + _numbers(numbers)
            said.append(runs + (f" of CTA {cta}" if cluster.ctas > 1 else ""))
        return ", ".join(said)

    stopped: dict[str, list[EmulatedWarp]] = {unsolved: []} if unsolved else {}
    blocked: dict[str, list[EmulatedWarp]] = {}
    for warp in cluster.warps:
        if warp.status is Status.STOPPED and warp.stop is not None:
            leaf = warp.stop.leaf
            tail = ""
            if leaf is not None:
                tail = f": {leaf.what}" + (f" ({module.name}:{leaf.line})" if leaf.line else "")
            stopped.setdefault(f"not followed beyond {at(warp.stop.position)}: {warp.stop.what}{tail}", []).append(warp)
        elif warp.status is Status.BLOCKED:
            blocked.setdefault(f"waiting at {at(warp.pc)} when every warp waits", []).append(warp)
    notes = cluster.notes
    left_out = [f"{at(p)}: {function.body[p].mnemonic}: {why}" for p, why in sorted(notes.left_out.items())]
    left_out += [f"{at(p)}: {mnemonic} is not known" for p, mnemonic in sorted(notes.unread.items())]
    assumed = _not_waited_for(kernel, cluster, at)
    assumed += [f"the wait at {at(p)} does not time out" for p in sorted(notes.time_outs)]
    followed = kernel.code.kept - notes.passed_over
    waits = awaiting(function, kernel.code.regions.graph, followed)
    assumed += [f"the loop at {at(p)} ends, which waits for global memory" for p in waits]
    assumed += [f"the trap after {at(p)} is not reached" for p in sorted(notes.traps)]
    assumed += [f"{at(p)}: {what}" for p, what in sorted((notes.policies | cluster.globals.policies).items())]
    assumed += [f"{words} is read by one warp before another one changes it" for words in cluster.globals.contested]
    assumed += [f"warps that store to the same bytes at {at(p)} store the same" for p in sorted(notes.equal_stores)]
    assumed += [f"warps that have ended count at the barrier of the CTA at {at(p)}" for p in sorted(notes.ended)]
    generic = [at(p) for p in sorted(notes.generic)]
    if generic:
        assumed.append(f"of a generic address given to .shared the low 32 bits are taken, at {_some(generic)}")
    joins = [p for p in sorted(notes.joins) if p < len(function.body) and not _meet(kernel, p)]
    weakened = [
        f"{who(warp)}: lanes {warp.lanes:#010x} are followed apart from the others"
        for warp in cluster.warps
        if warp.is_part
    ]
    weakened += [f"{at(p)}: whether this fence runs depends on a value that is not known" for p in sorted(notes.fences)]
    undefined = [f"{at(p)}: {what}" for p, what in sorted(notes.undefined.items())] + _outside(kernel, cluster)
    weakened += [
        f"{at(p)}: a warp waits for a word of shared memory, and what this orders is not followed"
        for p in sorted(notes.polls)
    ]
    inferred = [f"{at(p)}: {what}" for p, what in sorted(notes.inferred.items())]
    kinds: dict[str, int] = {}
    for stream in cluster.recorder.streams:
        for op in stream.code:
            kinds[Op(op[0]).name] = kinds.get(Op(op[0]).name, 0) + 1
    extracted = [f"{count:,} {name}" for name, count in sorted(kinds.items())]
    return Coverage(
        stopped=tuple(f"{who(*warps)}: {why}" if warps else why for why, warps in stopped.items()),
        blocked=tuple(f"{who(*warps)}: {why}" for why, warps in blocked.items()),
        left_out=tuple(_few(left_out)),
        inferred=tuple(_few(inferred)),
        weakened=tuple(_few(weakened)),
        assumed=tuple(_few(assumed)),
        rejoined=tuple(at(p) for p in joins),
        undefined=tuple(_few([*undefined, *_overwritten(cluster, at), *_read_too_early(kernel, at)])),
        extracted=(f"{instructions:,} warp instructions", *extracted),
    )


def _outside(kernel: Kernel, cluster: Cluster) -> list[str]:
    """What is touched beyond the shared memory of a CTA, where the launch says how much that is."""
    given, variables = kernel.launch.dynamic_shared, kernel.function.shared
    if not given and any(each.external for each in variables):
        return []
    end = max((each.offset + (given if each.external else each.size) for each in variables), default=0)
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


def _not_waited_for(kernel: Kernel, cluster: Cluster, at: Callable[[int], str]) -> list[str]:
    """What compilers or kernels leave to the hardware: registers of ``tcgen05.ld``, and copies when a CTA ends."""
    found = []
    if reading := [at(p) for stream in cluster.recorder.streams if (p := _still_read(stream)) >= 0]:
        places = _some(list(dict.fromkeys(reading)))
        found.append(f"shared memory exists until bulk copies that no wait covers have read it, at {places}")
    if loaded := [at(reader) for p, reader in kernel.too_early if kernel.function.body[p].opcode != "wgmma"]:
        found.append(
            f"tensor memory is loaded where its registers are read before tcgen05.wait::ld, at {_some(loaded)}"
        )
    return found


def _still_read(stream: Stream) -> int:
    """The position of a bulk copy that may read shared memory when its agent has ended, -1 if there is none."""
    reading = -1
    for op, position in zip(stream.code, stream.positions, strict=True):
        if op[0] == Op.TRANSFER_READ and operand(op, "engine") == Engine.BULK:
            reading = position
        elif op[0] == Op.WAIT_GROUP and operand(op, "engine") == Engine.BULK and not operand(op, "groups"):
            reading = -1
    return reading


def _meet(kernel: Kernel, position: int) -> bool:
    """Whether PTX itself lets the lanes of a warp meet from here on, before one of them synchronises with others.

    Where they only end, and touch no memory that others see, they need not meet.
    """
    body, kept = kernel.function.body, kernel.code.kept
    ahead = kernel.code.regions.ahead(position)
    for p in ahead:
        if _converges(body[p]):
            return True
        if p in kept and synchronises(body[p]):
            return False
    last = body[ahead[-1]] if ahead else None
    if last is None or last.opcode not in ("ret", "exit") or last.guard is not None:
        return False
    return not any(p in kept and may_touch_shared(body[p]) for p in ahead)


def _converges(each: Instruction) -> bool:
    """Whether PTX says that the lanes of a warp execute it together: ``.aligned``, and ``.sync`` with all lanes.

    PTX ISA, "Parallel Synchronization and Communication Instructions": a member mask names the lanes that meet.
    """
    if each.has("aligned"):
        return True
    if each.opcode == "bar" or each.opcode == "barrier":
        mask = each.operands[0] if each.has("warp") and each.operands else None
        return not each.has("arrive") and (mask is None or _is_all(mask))
    return each.has("sync") and bool(each.operands) and _is_all(each.operands[-1])


def _is_all(mask: Operand) -> bool:
    return isinstance(mask, Immediate) and mask.value & ALL_LANES == ALL_LANES


def _numbers(numbers: list[int]) -> str:
    """``0 to 3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs)


def _few(sentences: list[str]) -> list[str]:
    more = len(sentences) - _MOST_LISTED
    return sentences if more <= 0 else [*sentences[:_MOST_LISTED], f"and {more} more"]


def _some(places: list[str]) -> str:
    more = len(places) - 4
    return ", ".join(places[:4]) + (f" and {more} more place{'s' if more > 1 else ''}" if more > 0 else "")
