"""A kernel's PTX with the recorder in it, for one launch: same parameters, same results, and a buffer of records."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

from hwkernels.records.encodings import MAX_FULL_SITES
from hwkernels.rewriter.emission import SYMBOL, Emitter, Statement
from hwkernels.rewriter.layout import FRAME_BYTES, BufferLayout
from hwkernels.rewriter.options import Encoding, Level, RewriteOptions
from hwkernels.rewriter.sites import WORD_ACCESSES, RecordedSite, Run, runs_of, sites_of, with_words
from hwkernels.rewriter.word_sites import WordSteps, sites_with_words, talking_grid
from hwkernels.rewriter.writers import Writers, writers
from pipesim.errors import PtxError
from pipesim.model.groups import PARITY, PARITY_TRIES, PARITY_WAITS
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.record import IF_NOT_YET, PathStep, Stream
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.inline import callee
from pipesim.ptx.flow.opcodes import is_step, is_try
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import Kernel, prepare
from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.locations import SourceText
from pipesim.ptx.text.operands import split
from pipesim.ptx.text.read import read_module

_GUARD = re.compile(r"@\s*(!?)\s*([^\s]+)\s+")
_OPEN = re.compile(r"\{")
_BY_PARITY = PARITY_WAITS | PARITY_TRIES
_SMALLEST = 1 << 10  #: bytes of a stream
_ROOM_OF_LOCKS = 8  #: a warp may find a lock taken many times


@dataclass(frozen=True)
class RewrittenPtx:
    """A rewritten kernel. ``ptx``: the new text; ``symbol``: the variable that holds the address of the buffer.

    ``full``: the encoding. ``runs``: the recorded sites. ``streams``: what each agent of the program executes, with the
    lanes that store in ``writers``. ``by_position``: the sites by their positions in the kernel with its calls inlined.
    ``words``: what the agents do to words of global memory, () of a kernel whose CTAs do not talk by them;
    ``names``: of these words by their addresses in the emulation.
    """

    ptx: str
    kernel: Kernel
    options: RewriteOptions
    full: bool
    runs: tuple[Run, ...]
    layout: BufferLayout
    writers: Writers
    streams: tuple[Stream, ...]
    extraction: Extraction
    by_position: Mapping[int, RecordedSite]
    words: WordSteps = ()
    names: Mapping[int, str] = field(default_factory=dict)
    symbol: str = SYMBOL

    @property
    def entry(self) -> str:
        """The kernel's name in the PTX."""
        return self.kernel.entry.name

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return self.layout.nbytes

    def initial(self) -> bytes:
        """What the buffer must hold before each launch."""
        return self.layout.initial()

    @cached_property
    def digest(self) -> str:
        """A digest of the rewritten text."""
        return sha256(self.ptx.encode()).hexdigest()[:16]

    @cached_property
    def run_of(self) -> Mapping[int, tuple[Run, int]]:
        """By a site's number, its run and its index there."""
        return {site.number: (run, at) for run in self.runs for at, site in enumerate(run.sites)}

    @cached_property
    def parities(self) -> tuple[Mapping[int, int], ...]:
        """By agent and step of its path, the parity that the program says about a wait or try."""
        found = []
        for stream in self.streams:
            asks = [(op, steps) for op, steps in zip(stream.code, stream.steps, strict=True) if op[0] in _BY_PARITY]
            found.append({step: op[PARITY] for op, steps in asks for step in steps})
        return tuple(found)

    def writers_of(self, streams: Sequence[Stream]) -> Writers:
        """The lanes that would store if these were the streams, of the same agents."""
        chosen = frozenset(agent for agent, lanes in enumerate(self.writers.lanes) if lanes)
        return writers(streams, {p: site.number for p, site in self.by_position.items()}, chosen)

    def line_of(self, site: RecordedSite) -> str:
        """Where a site is, as a person finds it."""
        each = self.kernel.entry.body[site.position]
        return f"{each.opcode} at {source_of(each, self.kernel.module)} ({self.kernel.module.name}:{each.line})"


def instrument(ptx: str, source: str, launch: Launch, options: RewriteOptions | None = None) -> RewrittenPtx:
    """Rewrite the kernel that a launch names; ``source``: the name of the text, for messages.

    Raises PtxError or LaunchFileError if it cannot be read to its end for this launch, or cannot be recorded.
    """
    options = options or RewriteOptions()
    module = read_module(ptx, source, launch.entry)
    grid = talking_grid(module, launch)
    if grid is not None:
        kernel, cluster, extraction = grid.kernel, grid.cluster, grid.extraction
        sites = sites_with_words(grid, _sites(kernel, cluster, options), options.level)
    if grid is None or sites is None:
        grid, kernel = None, prepare(module, launch)
        emulation = emulate(kernel)
        cluster, extraction = emulation.cluster, emit(kernel, emulation)
        known = Counter(step.position for stream in cluster.recorder.streams for step in stream.path)
        asked = [p for p, times in Counter(cluster.tiles.answers).items() if known[p] == times]  # of a tile counter
        counters = {kernel.function.body[p].begin: False for p in asked}
        sites = with_words(kernel.entry, graph_of(kernel.entry), _sites(kernel, cluster, options), counters, Level.ALL)
        assert sites is not None, "none of them is a loop that waits"
    streams = tuple(cluster.recorder.streams)
    _require_followed(kernel, extraction)
    _require_own_sites(module, kernel.entry)
    _require_room(kernel, sites)
    by_position = _by_position(kernel.function, sites)
    roles = options.roles
    agents = extraction.program.agents
    chosen = frozenset(n for n, agent in enumerate(agents) if not roles or agent.role in roles)
    stores = writers(streams, {p: site.number for p, site in by_position.items()}, chosen)
    full = _is_full(options, cluster, extraction.program.name)
    runs = runs_of(kernel.entry, graph_of(kernel.entry), sites)
    ctas = extraction.program.agent_ctas
    warps = 1 + max((stream.warp for stream in streams), default=0)
    x, y, z = (a // c for a, c in zip(kernel.launch.first_cta, kernel.launch.cluster, strict=True))
    layout, apart = BufferLayout(ctas, warps, stores.streams, 1), grid is not None
    emitter = Emitter(layout, full, options.stop_flag, options.eager, ctas, (x, y, z), apart)
    room = options.room * (_ROOM_OF_LOCKS if takes_locks(kernel.entry) else 1)
    size = _size(runs, emitter, streams, by_position, room if full else 1)
    emitter.layout = replace(emitter.layout, size=size)
    text = _rewritten(ptx, source, kernel.entry, runs, emitter)
    return RewrittenPtx(
        text, kernel, options, full, runs, emitter.layout, stores, streams, extraction,
        by_position, *((grid.steps, grid.names) if grid is not None else ()),
    )  # fmt: skip


def _sites(kernel: Kernel, cluster: Cluster, options: RewriteOptions) -> tuple[RecordedSite, ...]:
    spins = frozenset(kernel.function.body[p].begin for p in kernel.code.regions.loops.waits)
    return sites_of(kernel.entry, spins, _by_parts(kernel, cluster), options.level)


def takes_locks(entry: Function) -> bool:
    """Whether it has a compare-and-swap, whose answer depends on other CTAs."""
    return any(each.opcode == "atom" and each.has("cas") for each in entry.body)


def _require_followed(kernel: Kernel, extraction: Extraction) -> None:
    stopped = extraction.program.coverage.stopped if extraction.program.coverage else ()
    if stopped:
        raise PtxError(
            f"{kernel.launch.entry} cannot be followed to its end",
            place=kernel.module.name,
            cause=str(stopped[0]),
            correction="see `pipesim check` of the same kernel and launch",
        )


def _require_own_sites(module: Module, entry: Function) -> None:
    """Functions that are called cannot see the registers of the recorder."""
    called = {each.name for each in module.functions if not each.is_entry and each is not entry}
    for function in module.functions:
        if function.name not in called or not _is_called(module, entry, function.name):
            continue
        for each in function.body:
            if is_step(each) or is_try(each):
                raise PtxError(
                    f"{function.name}, which the kernel calls, synchronises",
                    place=f"{module.name}, line {each.line}",
                    cause="only statements in the body of the kernel itself are recorded",
                    correction="have the compiler inline it: __forceinline__ in CUDA C++, noinline=False in Triton",
                )


def _is_called(module: Module, entry: Function, name: str) -> bool:
    waiting, seen = [entry], {entry.name}
    while waiting:
        for each in waiting.pop().body:
            if each.opcode == "call" and (there := callee(each)) and there not in seen:
                seen.add(there)
                function = module.function(there)
                if function is not None:
                    waiting.append(function)
    return name in seen


def _require_room(kernel: Kernel, sites: tuple[RecordedSite, ...]) -> None:
    if len(sites) >= MAX_FULL_SITES:
        raise PtxError(
            f"{kernel.launch.entry} has {len(sites):,} places to record",
            place=kernel.module.name,
            cause=f"a record has room for {MAX_FULL_SITES - 1:,}",
            correction="record waits only",
        )
    if not sites:
        raise PtxError(f"{kernel.launch.entry} has nothing to record", place=kernel.module.name)


def _by_position(function: Function, sites: tuple[RecordedSite, ...]) -> dict[int, RecordedSite]:
    by_begin = {site.begin: site for site in sites}
    return {each.position: by_begin[each.begin] for each in function.body if each.begin in by_begin}


def _by_parts(kernel: Kernel, cluster: Cluster) -> frozenset[int]:
    """The beginnings of statements that were executed by less than all lanes of a warp."""
    whole = {warp.agent: warp.all_lanes for warp in cluster.warps}
    streams = enumerate(cluster.recorder.streams)
    steps = {(step.position, step.lanes != whole[n]) for n, stream in streams for step in stream.path}
    return frozenset(kernel.function.body[p].begin for p, in_part in steps if in_part and p >= 0)


def _is_full(options: RewriteOptions, cluster: Cluster, name: str) -> bool:
    """The encoding. PtxError where the positional one was asked for and the path depends on data."""
    if options.encoding is Encoding.FULL:
        return True
    steps = (step for stream in cluster.recorder.streams for step in stream.path)
    depends = any(step.asked >= 0 or step.position == IF_NOT_YET for step in steps)
    notes, memory = cluster.notes, cluster.globals
    depends |= bool(notes.policies or memory.policies or memory.contested or cluster.words is not None)
    if depends and options.encoding is Encoding.POSITIONAL:
        raise PtxError(
            f"{name} cannot be recorded by position",
            cause="what its warps execute depends on data, or on whether a try succeeded",
            correction="record it with the full encoding",
        )
    return depends


def _size(
    runs: tuple[Run, ...],
    emitter: Emitter,
    streams: tuple[Stream, ...],
    by_position: Mapping[int, RecordedSite],
    room: int,
) -> int:
    """Bytes of a stream: what the longest path stores, and at least what is stored between two laps."""
    last = {run.sites[-1].number: emitter.bytes_of(run) for run in runs}
    longest = max((_count_stored(stream.path, by_position, last) for stream in streams), default=0)
    least = sum(map(emitter.bytes_of, runs)) + FRAME_BYTES
    wanted = max(room * longest + 8, least, _SMALLEST)
    return 1 << (wanted - 1).bit_length()


def _count_stored(path: list[PathStep], by_position: Mapping[int, RecordedSite], last: Mapping[int, int]) -> int:
    return sum(last.get(by_position[step.position].number, 0) for step in path if step.position in by_position)


def _rewritten(ptx: str, source: str, entry: Function, runs: tuple[Run, ...], emitter: Emitter) -> str:
    """The text with every insertion."""
    plain = SourceText(ptx, source).text
    edits: list[tuple[int, int, str]] = []
    for run in runs:
        for index, site in enumerate(run.sites):
            each = entry.body[site.position]
            end = plain.index(";", each.begin) + 1
            edits.append((each.begin, end, emitter.site(run, index, statement_of(plain[each.begin : end], each))))
            for position, taken in site.exits:
                leaves = entry.body[position]
                after = plain.index(";", leaves.begin) + 1
                guard = guard_of(plain[leaves.begin : after]) if taken else ""
                at = leaves.begin if taken else after
                edits.append(
                    (at, at, f"{emitter.word_exit(run, guard)}\n\t" if taken else f"\n{emitter.word_exit(run, guard)}")
                )
    for each in entry.body:
        if each.opcode in ("ret", "exit"):
            text = plain[each.begin : plain.index(";", each.begin) + 1]
            edits.append((each.begin, each.begin, emitter.end(guard_of(text)) + "\n\t"))
    prologue = emitter.prologue()
    opening = body_begin(plain, entry)
    edits.append((opening, opening, f"\n{emitter.declarations()}\n{prologue}\n"))
    head = plain.rindex("\n", 0, header_begin(plain, entry)) + 1
    edits.append((head, head, f".visible .global .align 8 .u64 {SYMBOL};\n"))
    parts, at = [], 0
    for begin, end, text in sorted(edits, key=lambda edit: (edit[0], edit[1])):
        parts += [ptx[at:begin], text]
        at = end
    return "".join([*parts, ptx[at:]])


def statement_of(text: str, each: Instruction) -> Statement:
    """A statement's text, its guard, and for a try its answer and parity, spelled as the text spells them."""
    guard = guard_of(text)
    answer = parity = ""
    if is_try(each):
        operands = [part.strip() for part in split(re.sub(r"^(@\s*!?\s*\S+\s+)?\S+\s+", "", text.rstrip(";").strip()))]
        answer = "" if operands[0] == "_" else operands[0]
        parity = operands[2] if each.has("parity") else ""
    if each.opcode in WORD_ACCESSES and not each.has("async"):
        operands = [part.strip() for part in split(re.sub(r"^(@\s*!?\s*\S+\s+)?\S+\s+", "", text.rstrip(";").strip()))]
        value, place = operands[:2] if each.opcode in ("ld", "atom") else operands[1::-1]
        return Statement(text, guard, address=place.strip("[] \t"), value=value, bits=int(each.modifiers[-1][1:]))
    return Statement(text, guard, answer, parity)


def guard_of(text: str) -> str:
    """The predicate of a statement's text, with ``!`` if it is negated; "" without one."""
    found = _GUARD.match(text)
    return "" if found is None else found[1] + found[2]


def header_begin(plain: str, entry: Function) -> int:
    """The position of ``.entry``."""
    found = re.search(rf"\.entry\s+{re.escape(entry.name)}\b", plain)
    assert found is not None
    return found.start()


def body_begin(plain: str, entry: Function) -> int:
    """The position after the brace that opens the kernel's body."""
    found = _OPEN.search(plain, header_begin(plain, entry))
    assert found is not None
    return found.end()
