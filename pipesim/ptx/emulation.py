"""A kernel with the values of one launch: what its cluster does, warp by warp."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from pipesim.model.dependent_launch import LaunchEvent
from pipesim.model.ops import Op
from pipesim.model.waits import never_wrapped
from pipesim.ptx.emit.record import FirstParities, Place, Range, covers
from pipesim.ptx.emulate.boxless import BoxlessCopies
from pipesim.ptx.emulate.cluster import Cluster, EmulationLimits
from pipesim.ptx.emulate.constants import Constants
from pipesim.ptx.emulate.lanes.apart import ON_MBARRIER
from pipesim.ptx.emulate.laps.endless import EndlessLoops
from pipesim.ptx.emulate.laps.left_out import LapsLeftOut
from pipesim.ptx.emulate.laps.lengthened import watch_laps
from pipesim.ptx.emulate.shared_uses import touching_engines, touching_others
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.hand_outs import to_try
from pipesim.ptx.launch.image import ALIGNED, Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import Kernel, on_global_memory
from pipesim.ptx.text.instruction import Instruction

_MOST_PARTINGS = 8  #: times that the lanes of warps are followed apart in more parts


@dataclass(frozen=True)
class Emulation:
    """What the warps of one cluster did. ``unsolved``: why the bytes of copies are not known, if so."""

    cluster: Cluster
    instructions: int  #: of all warps, in all runs
    unsolved: str
    left_out: int = 0  #: instructions of laps that are like others

    @property
    def cut(self) -> bool:
        """Whether a warp was not followed to its end."""
        return bool(self.unsolved) or any(warp.status is Status.STOPPED for warp in self.cluster.warps)


def emulate(
    kernel: Kernel,
    limits: EmulationLimits | None = None,
    first: FirstParities | None = None,
    *,
    past_hangs: bool = False,
) -> Emulation:
    """Run the cluster with the launch's policies.

    Where these do not say how many tiles cluster launch control hands out it is the least of those that
    are tried with which the fewest barriers are used but once: with fewer a wrong
    count of such a barrier shows nothing. A number with which the kernel hangs is taken immediately.
    """
    limits = limits or EmulationLimits()
    launch, policies = kernel.launch, kernel.launch.policies
    if policies.launch_control is None and policies.handed_out:
        launch = launch.with_setting("launch_control", len(policies.handed_out))
    if launch.policies.launch_control is not None or not kernel.asks_launch_control:
        return _emulate(kernel, launch, limits, first, past_hangs=past_hangs)
    best, fewest, spent, inputs = None, 0, 0, []
    for given in to_try(launch):
        rest = limits.without(spent)
        found = _emulate(
            kernel, kernel.launch.with_setting("launch_control", given), rest, first, past_hangs=past_hangs
        )
        spent += found.instructions
        inputs.append(found.cluster.inputs)
        once = len(used_once(kernel, found.cluster))
        hangs = not found.cut and bool(found.cluster.completed or _waits(found.cluster))
        if best is None or hangs or (once < fewest and not found.cut):
            best, fewest = found, once
        if not once or found.cut or hangs:
            break
    assert best is not None
    best.cluster.inputs.before = tuple(each for each in inputs if each is not best.cluster.inputs)
    return replace(best, instructions=spent)


_BEGUN, _FEW = 64, 4_096  #: loops without end are looked for after 1 in 64 of those allowed, or these
_SOME, _MANY = 96, 16  #: one in how many instructions shows that laps are left out which have many times as many


class _WholeRun(Exception):  # noqa: N818  # a result: the run need not be continued
    """The run without laps that are like others is whole, where not all of it is followed."""


def _emulate(
    kernel: Kernel, launch: Launch, limits: EmulationLimits, first: FirstParities | None = None, *, past_hangs: bool
) -> Emulation:
    """Run the cluster; laps are left out where it runs longer than is followed, if that makes it whole."""

    def is_long(may_be: bool) -> None:  # noqa: FBT001
        if may_be:
            some = emulate_without_laps(kernel, launch, replace(limits, instructions=limits.instructions // _SOME))
            if some.left_out < _MANY * some.instructions:
                return
        found = emulate_without_laps(kernel, launch, replace(limits, instructions=limits.instructions // 2))
        if found.left_out and found.instructions + found.left_out > limits.instructions and not found.cut:
            kernel.code.long_with = launch.parameters
            raise _WholeRun(found)

    given = kernel.code.on_global or launch.together or first or past_hangs
    tell = is_long if kernel.leaves_laps_out and not given else None
    try:
        if tell is not None and launch.parameters and kernel.code.long_with == launch.parameters:
            is_long(False)  # as with another hand-out, or in another CTA
            tell = None
        followed = _FollowedCluster(kernel, launch, limits)
        followed.first, followed.is_long = first or {}, tell
        return followed.emulation(past_hangs=past_hangs)
    except _WholeRun as whole:
        (found,) = whole.args
        assert isinstance(found, Emulation)
        return found


def emulate_without_laps(kernel: Kernel, launch: Launch, limits: EmulationLimits) -> Emulation:
    """Run the cluster without laps that are like others."""
    return _FollowedCluster(kernel, launch, limits, laps_left_out=True).emulation(past_hangs=False)


class _FollowedCluster:
    """The runs of one cluster, each of which may show what another run has to know.

    ``is_long``: called where the first run is long.
    """

    def __init__(self, kernel: Kernel, launch: Launch, limits: EmulationLimits, *, laps_left_out: bool = False) -> None:
        self._kernel, self._launch, self._limits, self._laps_left_out = kernel, launch, limits, laps_left_out
        self._image, self._constants = Image(launch, kernel.entry), Constants(kernel.module)
        self._image.tables = self._constants.tables
        alone = kernel.code.on_global or launch.together or limits.one_cta or laps_left_out
        self._inputs = FreeInputs(fixed=limits.one_cta, nearby=not (self._image.free_words or alone))
        self._misaligned = _misaligned(kernel, self._image, self._inputs)
        self._apart: dict[tuple[int, int], tuple[int, ...]] = {}
        self._fences_apart: set[int] = set()
        self._void: frozenset[int] = frozenset()
        self._begin: frozenset[int] = frozenset()
        self._past_hang = False
        self._spent, self._left_out = 0, [0]  # instructions; of laps that each run leaves out
        self.first: FirstParities = {}
        self.is_long: Callable[[bool], None] | None = None

    def emulation(self, *, past_hangs: bool) -> Emulation:
        """What the cluster does in the last run."""
        cluster, unsolved = self._with_bytes_of_copies(self._with_lanes_apart(self._once_initialised()))
        reused = {place for place in cluster.initialised if any(covers(a, place) for a in cluster.recorder.written)}
        if reused and not unsolved:
            cluster = self._run(cluster.boxless.again(), reused)
        cluster = self._with_fences_apart(cluster)
        if past_hangs and _waits(cluster):
            self._past_hang = True
            cluster = self._run(cluster.boxless.again(), cluster.reused, cluster.refused)
        return Emulation(cluster, self._spent, unsolved, sum(self._left_out) if self._left_out[-1] else 0)

    def _run(
        self, boxless: BoxlessCopies | None = None, reused: Collection[Place] = (), refused: Collection[int] = ()
    ) -> Cluster:
        made = Cluster(self._kernel.code, self._launch, self._image, self._constants, self._apart, self._inputs)
        made.boxless = boxless or BoxlessCopies()
        made.misaligned, made.past_hangs, made.first_parities = self._misaligned, self._past_hang, self.first
        made.reused, made.refused, made.void_fences = frozenset(reused), frozenset(refused), self._void
        made.fences_apart, made.begin = frozenset(self._fences_apart), self._begin
        if self._image.free_words:
            watch_laps(made)
        made.watcher = LapsLeftOut(made) if self._laps_left_out else made.watcher
        made.is_long, self.is_long = None if self._image.free_words else self.is_long, None
        if made.words is None and made.data is None:
            made.repeats = EndlessLoops(made).repeats
            made.repeats_from = max(self._limits.instructions // _BEGUN, _FEW)
        self._spent += made.run(self._limits.without(self._spent))
        if isinstance(made.watcher, LapsLeftOut):
            self._left_out.append(made.watcher.end())
        return made

    def _once_initialised(self) -> Cluster:
        """In the schedule in which mbarriers are initialised in time; with all words that others change."""
        cluster = self._run()
        for _ in range(_MOST_PARTINGS):
            if cluster.words is None or cluster.words.met <= self._kernel.code.words_met:
                break
            self._kernel.code.words_met |= cluster.words.met
            cluster = self._run()
        if unset := cluster.too_early & cluster.initialised.keys():
            self._begin = cluster.recorder.initialising(unset)
            cluster = self._run()
        return cluster

    def _with_lanes_apart(self, cluster: Cluster) -> Cluster:
        for _ in range(_MOST_PARTINGS):
            parted = cluster.must_part()
            if not parted:
                break
            self._apart |= parted
            cluster = self._run()
        return cluster

    def _with_bytes_of_copies(self, cluster: Cluster) -> tuple[Cluster, str]:
        """With the bytes of copies without a box, by the phases of their mbarriers; and why they are not known."""
        if not any(use.loads for use in cluster.boxless.uses.values()):
            return cluster, ""
        for _ in range(_MOST_PARTINGS):
            early = cluster.boxless.too_early()
            if not early:
                break
            cluster = self._run(cluster.boxless.again(early))
        solved = cluster.boxless.solved(cluster.barrier)
        sized = None if solved is None else self._run(solved)
        if sized is None or (_waits(sized) and sized.boxless.unfinished(sized.barrier)):
            solved = cluster.boxless.contradicted(cluster.recorder.streams, cluster.recorder.barriers)
            sized = None if solved is None else self._run(solved)
        if sized is None:
            return cluster, "no bytes of the copies without a box fit the phases of their mbarriers"
        return sized, ""

    def _with_fences_apart(self, cluster: Cluster) -> Cluster:
        """Without what fences do not order that other lanes executed, and what is not known and may touch others."""
        while (refused := _touching_others(cluster)) | (passed := _fences_of_others(cluster) - self._fences_apart):
            self._fences_apart |= passed
            cluster = self._run(cluster.boxless.again(), cluster.reused, cluster.refused | refused)
        fenced = list(cluster.notes.fences_of_some)
        if fenced and (void := touching_engines(fenced, cluster.recorder)):
            self._void = void
            cluster = self._run(cluster.boxless.again(), cluster.reused, cluster.refused)
        if cluster.words is not None:
            cluster.notes.apart |= cluster.words.in_step
        return cluster


def _touching_others(cluster: Cluster) -> frozenset[int]:
    """The instructions that are not known and may touch what others use, and were carried out."""
    unread = cluster.notes.unread.keys()
    return touching_others(list(cluster.notes.accesses), cluster.recorder) & unread if unread else frozenset()


def _fences_of_others(cluster: Cluster) -> set[int]:
    """The fences after which lanes that did not execute them signal, on mbarriers or words for which an agent waits."""
    heard = {ON_MBARRIER} | (cluster.words.asked if cluster.words is not None else set())
    return {position for position, words in cluster.notes.fences_passed_by.items() if words & heard}


def _misaligned(kernel: Kernel, image: Image, inputs: FreeInputs) -> dict[int, str]:
    """The copies that are aligned in no execution, where they are the same for all values of a word that has several.

    Else for those with the same remainder.
    """

    def of(instead: int | None) -> dict[int, str]:
        words = partial(image.remainder, inputs, instead=instead)
        return kernel.code.misaligned.with_words(words)

    found = of(0) if len(image.free_words) == 1 else None
    return found if found is not None and all(of(each) == found for each in range(1, ALIGNED)) else of(None)


def _waits(cluster: Cluster) -> bool:
    """Whether some warp waits where no warp can continue."""
    return any(warp.status is Status.BLOCKED for warp in cluster.warps)


def launch_events(kernel: Kernel, cluster: Cluster, place_of: Callable[[int], str]) -> tuple[LaunchEvent, ...]:
    """The events of the cluster in the order of its run, for which it is run again with the addresses of accesses.

    Nothing where it is not known whether it waits, what it accesses, or, once addresses are followed, all that it does.
    An agent of which the program has no operation gets one without effect at its first event.
    """
    if cluster.limited:
        return ()
    again = emulate(on_global_memory(kernel)).cluster
    accesses, noted = again.global_accesses, again.launch_events
    assert noted is not None
    events = tuple(noted)
    streams, mine = again.recorder.streams, cluster.recorder.streams
    if noted.unsure or [each.positions for each in streams] != [each.positions for each in mine]:
        return ()
    if accesses is not None and (accesses.limited or accesses.left_open.keys() - {each.position for each in events}):
        return ()
    cluster.notes.apart |= noted.in_step
    cluster.inputs = again.inputs  # which CTAs make these accesses
    found, body, hulls = [], kernel.function.body, _hulls(again)
    for each in events:
        if not mine[each.agent].code:
            cluster.recorder.add(each.agent, each.position, Op.WORK, 0)
        at = 0 if not streams[each.agent].code else each.at
        where = place_of(each.position), body[each.position].mnemonic, *again.image.buffer(each.base)
        hull = hulls.get((each.agent, each.position, each.base), (0, -1))
        found.append(LaunchEvent(each.kind, each.agent, at, *where, each.waited, each.sure, *hull))
    return tuple(found)


def _hulls(cluster: Cluster) -> dict[tuple[int, int, int], Range]:
    """For agents, positions and buffers the bytes from the first to the last that are accessed, in any CTA.

    By a tensor map those of the whole tensor.
    """
    found: dict[tuple[int, int, int], Range] = {}
    for each in cluster.global_accesses or ():
        if each.map is not None:
            base = each.map.constant
            found[each.agent, each.position, base] = 0, cluster.image.tensor_bytes(base)
            continue
        varies = Form(0, each.terms)
        first, end = each.ranges[0][0] + varies.low, each.ranges[-1][1] + varies.high
        base = cluster.image.buffer_at(first)
        key = each.agent, each.position, base
        low, high = found.get(key, (first - base, end - base))
        found[key] = (min(low, first - base), max(high, end - base)) if base >= 0 else (0, -1)
    return found


def used_once(kernel: Kernel, cluster: Cluster) -> list[Place]:
    """The mbarriers that are used in loops of the kernel, and never for a second phase."""
    graph, streams = kernel.code.regions.graph, cluster.recorder.streams
    signals = {graph.block_of[p] for p in kernel.code.kept if _may_signal(kernel.function.body[p])}
    inside = frozenset(block for loop in graph.loops if signals & loop.blocks for block in loop.blocks)
    found = never_wrapped(
        [stream.code for stream in streams], lambda agent, pc: graph.block_of[streams[agent].positions[pc]] in inside
    )
    places = list(cluster.recorder.barriers)
    return [places[bar] for bar in found]


def _may_signal(each: Instruction) -> bool:
    """Whether a loop with it is more than a wait."""
    return each.has("bulk") if each.opcode == "cp" else each.has_any("arrive", "expect_tx", "commit", "try_cancel")
