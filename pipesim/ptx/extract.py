"""A kernel's PTX and one launch in, a flat program with its coverage out: reading, emulation, emission."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

from pipesim.findings.kind import Owner
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.tables import OPEN_WORD, LeftOutLaps
from pipesim.model.words import WordsOfRun
from pipesim.ptx.coverage import coverage_of
from pipesim.ptx.emit.names import names_by_line, program_of, short_file, source_of
from pipesim.ptx.emit.record import Place, RepeatedPart, Stream
from pipesim.ptx.emit.states import keep_states
from pipesim.ptx.emit.word_barriers import with_word_barriers
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulation import Emulation, emulate
from pipesim.ptx.flow.opcodes import is_try
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.hand_outs import FewerTiles, fewer_tiles
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.names.paths import kernel_name
from pipesim.ptx.prepare import Kernel, prepare
from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import Frame, Instruction, Special
from pipesim.ptx.text.locations import is_library
from pipesim.ptx.work.path import Paths
from pipesim.ptx.work.timed_program import with_work


class SourceOwner(NamedTuple):
    """``call``: the outermost line, which calls what the line that reports name is in; "" if it is that one."""

    owner: Owner
    call: str = ""


def own_line(each: Instruction, module: Module) -> str:
    """``file:line`` of the innermost function that is the user's, where an instruction has one; else its line."""
    frames = each.source.frames if each.source is not None else ()
    return next((_place(frame) for frame in reversed(frames) if not is_library(frame.file)), source_of(each, module))


def owner_of(each: Instruction, *, has_lines: bool) -> SourceOwner:
    """Of an instruction. ``has_lines``: the PTX names source lines, so that one without any is the compiler's."""
    if each.source is None or not each.source.line:
        return SourceOwner(Owner.COMPILER if has_lines else Owner.USER)
    outer, owner = each.source.frames[0], Owner.LIBRARY if is_library(each.source.file) else Owner.USER
    return SourceOwner(owner, _place(outer) if outer[:2] != each.source[:2] else "")


def _place(frame: Frame) -> str:
    return f"{short_file(frame.file)}:{frame.line}"


MOST_TOGETHER = 1 << 17  #: instructions that are followed of CTAs together
_CLOCKS = frozenset(
    map(Special, ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"))
)


@dataclass(frozen=True)
class Extraction:
    """A flat program and how much was run for it: warp instructions, and those of the kernel that were kept.

    ``launch_control``: how many tiles launch control has handed out, where it was asked. ``fewer_tiles``: policies with
    which other CTAs leave less (:func:`pipesim.ptx.hand_outs.fewer_tiles`). ``answers``: where those of
    a counter were asked for.
    """

    program: Program
    places: tuple[tuple[int, int], ...]  #: CTA and byte offset in shared memory of each barrier of the program
    by_line: tuple[tuple[str, int], ...]  #: the name and stage of each by the lines of the inits alone
    instructions: int
    kept: int
    body: int
    kernel: Kernel = field(repr=False, compare=False)
    streams: list[Stream] = field(repr=False, compare=False)
    inputs: FreeInputs = field(repr=False, compare=False)  #: what of the launch is free, and where the run holds
    fewer_tiles: tuple[FewerTiles, ...] = ()
    limited: bool = False  #: whether a limit of the emulation was reached, or laps were left out so that it was not
    repeats: bool = False  #: whether it was shown that a lap which a word of the launch adds is always the same
    launch_control: int | None = None
    answers: tuple[int, ...] = ()
    words: WordsOfRun | None = None  #: by which CTAs talk that were followed together
    asks_data: bool = False  #: whether data decided what a CTA does
    equal_stores: frozenset[int] = frozenset()  #: positions at which warps are taken to store the same
    settled: frozenset[int] = frozenset()  #: those of strong loads that see the same in every schedule
    apart: frozenset[int] = frozenset()  #: those at which lanes of a warp are taken to be together

    @property
    def may_talk(self) -> bool:
        """Whether CTAs of the launch may tell each other something by words of global memory."""
        launch = self.kernel.launch
        alone = launch.cta is not None or launch.together or prod(launch.grid) == prod(launch.cluster)
        return not alone and any(is_word(each) and each.opcode != "red" for each in self.kernel.function.body)

    @property
    def may_talk_inside(self) -> bool:
        """Whether the warps of a cluster may tell each other something by words."""
        launch = self.kernel.launch
        return not (launch.together or launch.turns) and any(True for _ in self.asking_accesses())

    def asking_accesses(self) -> Iterator[int]:
        """The positions of accesses to words, of shared memory as well, whose answers decide."""
        regions = self.kernel.code.regions
        for each in self.kernel.function.body:
            settled = each.position in self.settled and not regions.loops.polls(each.position)
            by_word = is_word(each) or (is_word(each, shared=True) and not settled)
            if by_word and each.position in regions.observations.read:
                yield each.position

    @cached_property
    def timed(self) -> Program:
        """The program with what the warps compute between their operations: the one to simulate, not to prove."""
        code = self.kernel.code
        return with_work(self.program, self.streams, code.function, Paths(code, code.regions.uses))

    @cached_property
    def reads_clock(self) -> bool:
        """Whether the kernel can wait for a time to pass, which no estimate from its instructions knows."""
        body = self.kernel.function.body
        return any(each.opcode == "nanosleep" or not _CLOCKS.isdisjoint(each.operands) for each in body)

    def owner_at(self, agent: int, pc: int) -> SourceOwner:
        """Whose the instruction is that became an operation of the program."""
        body, positions = self.kernel.function.body, self.streams[agent].positions
        if pc >= len(positions):
            return SourceOwner(Owner.USER)
        return owner_of(body[positions[pc]], has_lines=any(each.source for each in body))

    def instruction_at(self, agent: int, pc: int) -> str:
        """That became an operation of the program."""
        return self.kernel.function.body[self.streams[agent].positions[pc]].mnemonic

    def with_setting(self, name: str, value: int) -> Extraction:
        """The same kernel with another policy, or another CTA (:class:`~pipesim.ptx.launch.values.Launch`)."""
        return self._of(self.kernel.with_setting(name, value).launch)

    def elsewhere(self, cta: int, contents: tuple[tuple[str, int, int], ...] = ()) -> Extraction:
        """The same kernel in another CTA, with elements of free arrays (array, index, value), and as many tiles."""
        launch = replace(self.kernel.launch, cta=cta, contents=contents)
        policies = replace(launch.policies, launch_control=self.launch_control)
        return self._of(replace(launch, policies=policies))

    @property
    def followed(self) -> Extraction:
        """The same without laps left out, as far as it is followed."""
        kernel = replace(self.kernel, leaves_laps_out=False)
        return emit(kernel, emulate(kernel))

    @cached_property
    def past_hangs(self) -> Extraction:
        """The same with what its warps would do after the waits at which it hangs; as it is where that is not known."""
        kernel, read = replace(self.kernel, leaves_laps_out=False), self.program
        if not read.coverage.blocked or self.words is not None:
            return self
        more = emit(kernel, emulate(kernel, past_hangs=True))
        pairs = ((more.program.named_barriers, read.named_barriers), *zip(more.program.code, read.code, strict=True))
        if more.program.barriers != read.barriers or any(a[: len(b)] != b for a, b in pairs):
            return self
        return replace(more, program=replace(more.program, agents=read.agents, coverage=read.coverage))

    def with_fewer(self, tiles: FewerTiles) -> Extraction:
        """The same kernel where other CTAs leave fewer tiles."""
        return self._of(tiles.of(self.kernel.launch))

    def with_tiles(self, tiles: tuple[int, ...]) -> Extraction:
        """The same kernel where it is handed out these tiles."""
        launch = self.kernel.launch
        return self._of(replace(launch, policies=replace(launch.policies, handed_out=tiles)))

    def together(
        self, ctas: int, turns: tuple[int, ...] = (), resident: int = 0, *, strong_data: bool = False,
        sees: tuple[tuple[int, int], ...] = (),
    ) -> Extraction:  # fmt: skip
        """The kernel as several of its CTAs run it together (:class:`~pipesim.ptx.launch.values.Launch`)."""
        launch = self.kernel.launch.with_setting("together", ctas)
        launch = replace(launch, turns=turns, resident=resident, strong_data=strong_data, sees=sees)
        launch = replace(launch, cta=None, inside=False)
        kernel = replace(self._with_words, launch=launch)
        return emit(kernel, emulate(kernel, EmulationLimits(instructions=MOST_TOGETHER)))

    def inside(self, turns: tuple[int, ...] = (), sees: tuple[tuple[int, int], ...] = ()) -> Extraction:
        """The kernel with the words by which the warps of a cluster talk."""
        kernel = self.kernel if self.kernel.launch.inside else self._with_words
        kernel = replace(kernel, launch=replace(self.kernel.launch, inside=True, turns=turns, sees=sees))
        return emit(kernel, emulate(kernel, EmulationLimits(instructions=MOST_TOGETHER)))

    def with_any_data(self) -> Extraction:
        """The kernel where what data decides for a whole CTA may be anything."""
        kernel = prepare(self.kernel.module, replace(self.kernel.launch, any_data=True))
        return emit(kernel, emulate(kernel))

    def for_all(self, cta: int, most: int = 0) -> Emulation:
        """What a CTA does where each of its additions to a word of global memory counts as often as there are CTAs.

        ``most``: it is any one, of any number of CTAs along x up to this one.
        """
        launch = replace(self.kernel.launch, cta=cta, together=1, for_all=True, any_ctas=most, inside=False)
        return emulate(replace(self._with_words, launch=launch), EmulationLimits(instructions=MOST_TOGETHER))

    @property
    def all_together(self) -> Emulation:
        """What all CTAs of the grid do together, in one schedule."""
        launch = replace(self.kernel.launch, cta=None, together=prod(self.kernel.launch.grid), inside=False)
        return emulate(replace(self._with_words, launch=launch), EmulationLimits(instructions=MOST_TOGETHER))

    @cached_property
    def _with_words(self) -> Kernel:
        """The kernel with what is followed of words of global memory."""
        return prepare(self.kernel.module, self.kernel.launch.with_setting("inside", 1))

    def _of(self, launch: Launch) -> Extraction:
        if launch.together and not self.kernel.launch.together:
            return replace(self, kernel=replace(self.kernel, launch=replace(launch, together=0))).together(
                launch.together, launch.turns, launch.resident, strong_data=launch.strong_data, sees=launch.sees
            )
        if launch.inside:
            return replace(self, kernel=replace(self.kernel, launch=launch)).inside(launch.turns, launch.sees)
        kernel = replace(self.kernel, launch=launch)
        return emit(kernel, emulate(kernel))


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


def _stored(function: Function, streams: list[Stream]) -> tuple[int, ...]:
    """The accesses that no bulk copy writes, but ``st.async`` and ``red.async``."""
    by_copy: dict[bool, set[int]] = {True: set(), False: set()}
    for stream in streams:
        for op, position in zip(stream.code, stream.positions, strict=True):
            if op[0] == Op.TMA_LOAD:
                by_copy[function.body[position].opcode not in ("st", "red")].add(operand(op, "access"))
    return tuple(sorted(by_copy[False] - by_copy[True]))


def _left_out(part: RepeatedPart) -> LeftOutLaps:
    moments = [tuple(mark.at for mark in marks) for marks in part.moments]
    lap = tuple(b - a for a, b in zip(moments[-2], moments[-1], strict=True))
    return LeftOutLaps(moments[0], moments[-1], lap, part.more)


def emit(kernel: Kernel, emulation: Emulation) -> Extraction:
    """What the warps did, as a flat program with its coverage."""
    cluster, function, module = emulation.cluster, kernel.function, kernel.module
    coverage = coverage_of(kernel, emulation)
    recorder = cluster.recorder
    names: dict[Place, tuple[str, int]] = {}
    for warp in cluster.warps:
        if warp.status is not Status.ENDED:
            warp.leave_ways(branches=cluster.words is None)
    recorder.forget_uncertain_items()
    words = with_word_barriers(cluster, names) if cluster.words is not None else None
    if any(each.opcode == "tcgen05" and each.has("cp") for each in function.body):
        from pipesim.ptx.emit.pipelined_copies import order_copies_before_products

        order_copies_before_products(recorder, function.body)
    name = kernel_name(kernel.entry.name, arguments=True)
    by_state = any(is_try(each) and not each.has("parity") for each in function.body)
    for position in dict.fromkeys(keep_states(recorder, function.body)) if by_state else ():
        said = f"{source_of(function.body[position], module)}: the phase of the state depends on the schedule"
        coverage = replace(coverage, unread=(*coverage.unread, said))
    cut = [] if emulation.unsolved else [w for w in cluster.warps if w.status in (Status.STOPPED, Status.BLOCKED)]
    silent = [warp for warp in cut if not kernel.code.regions.may_signal(warp.places)]
    ended, quiet = (tuple(warp.agent for warp in warps) for warps in (cut, silent))
    program = program_of(
        name, recorder, cluster.initialised, function, module, kernel.launch, coverage, ended, quiet, names
    )
    if words is not None and words.tiles:
        program = replace(program, tiles=(*program.tiles, *words.tiles))
    if words is not None and words.zeros:
        zero = (Assumed(Assumption.POLICIES, f"{name} is 0 at the launch") for name in words.zeros)
        program = replace(program, coverage=replace(coverage, assumed=(*coverage.assumed, *zero)))
    stored = _stored(function, recorder.streams)
    left = {each.reach for each in cluster.notes.accesses if each.writes}
    filled = tuple(n for access, n in recorder.accesses.items() if any(reach.has_bytes_of(access) for reach in left))
    unsure = tuple(  # whether a copy still reads its source when that is written is not known
        (a, pc, OPEN_WORD if stream.positions[pc] in recorder.reused else why)
        for a, stream in enumerate(recorder.streams)
        for pc, why in stream.unsure.items()
    )
    if stored or unsure or filled:
        program = replace(program, stored=stored, filled=filled, unsure=unsure)
    if emulation.left_out:
        program = replace(program, laps=tuple(map(_left_out, recorder.repeated)))
    body = len(function.body)
    places, kept = tuple(recorder.barriers), len(kernel.code.kept)
    by_line = names_by_line(recorder, cluster.initialised, function, module, {})
    run, where = emulation.instructions, tuple(by_line.values())
    handed_out = kernel.asks_launch_control or cluster.globals.last_answers(1)
    fewer, inputs = fewer_tiles(kernel, cluster) if handed_out else (), cluster.inputs
    repeats = cluster.watcher is not None and cluster.watcher.shown and not cut
    given = cluster.launch.policies.launch_control
    streams, limited = recorder.streams, cluster.limited or emulation.left_out > 0
    asks = cluster.data is not None and bool(cluster.data.asked)
    return Extraction(
        program, places, where, run, kept, body, kernel, streams, inputs, fewer, limited, repeats, given,
        tuple(cluster.tiles.answers), words, asks, frozenset(cluster.notes.equal_stores), cluster.settled,
        frozenset(cluster.notes.apart),
    )  # fmt: skip
