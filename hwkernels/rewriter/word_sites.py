"""Kernels whose CTAs talk by words of global memory: the whole of a small grid is recorded, with each access to a word.

What is such a word, and in which order the CTAs reach it, is what the emulation of all of them says; the records have
the values, by which the order of the launch is found (:mod:`hwkernels.rewriter.word_turns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from hwkernels.rewriter.options import Level
from hwkernels.rewriter.sites import WORD_ACCESSES, RecordedSite, with_words
from pipesim.model.words import WordAct, WordEvent
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.emit.word_barriers import word_name
from pipesim.ptx.emulate.cluster import Cluster, EmulationLimits
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import MOST_TOGETHER, Extraction, emit
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.launch.values import MOST_TOGETHER as MOST_CTAS
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import Kernel, prepare
from pipesim.ptx.text.declarations import Module

#: By agent and step of its path what was done to a word there.
WordSteps = tuple[Mapping[int, WordEvent], ...]


@dataclass(frozen=True)
class TalkingGrid:
    """All CTAs of a grid. ``words``: where statements begin that access words, and whether a loop waits there.

    ``names``: of the words, by their addresses.
    """

    kernel: Kernel
    cluster: Cluster
    extraction: Extraction
    words: Mapping[int, bool]
    steps: WordSteps
    names: Mapping[int, str]


def talking_grid(module: Module, launch: Launch) -> TalkingGrid | None:
    """The grid of a launch if its CTAs talk, and all that they say is understood; None otherwise."""
    ctas = prod(launch.grid)
    entry = module.function(launch.entry) if launch.entry else module.entries[0]
    if not 1 < ctas <= MOST_CTAS or prod(launch.cluster) > 1 or entry is None or not any(map(is_word, entry.body)):
        return None
    return followed_grid(prepare(module, replace(launch, cta=None).with_setting("together", ctas)))


def followed_grid(kernel: Kernel, turns: tuple[int, ...] = ()) -> TalkingGrid | None:
    """The same with the words written in this order."""
    kernel = replace(kernel, launch=replace(kernel.launch, turns=turns))
    emulation = emulate(kernel, EmulationLimits(instructions=MOST_TOGETHER))
    cluster, extraction = emulation.cluster, emit(kernel, emulation)
    found, said = extraction.words, cluster.words
    if found is None or said is None or not found.words or found.why_not or found.off_turn or extraction.limited:
        return None
    if extraction.program.coverage.stopped:
        return None
    events = [each for each in said.events if each.address in said.asked]
    touched = {each.position for each in events if each.act is not WordAct.READ} | {w[0] for w in said.waiting.values()}
    body, polls = kernel.function.body, kernel.code.regions.loops.polls
    own = {each.begin: each.opcode for each in kernel.entry.body}
    if any(body[at].opcode not in WORD_ACCESSES or own.get(body[at].begin) != body[at].opcode for at in touched):
        return None  # in a function that is called
    steps = _steps(cluster.recorder.streams, events, touched)
    if steps is None:
        return None
    waits = {each.position for each in events if each.act is WordAct.WAIT} | {w[0] for w in said.waiting.values()}
    loops = {at for at in touched if polls(at) and not body[at].has("add") and body[at].opcode in ("ld", "atom")}
    if any(at not in loops for at in waits):
        return None
    begins = {body[at].begin: at in loops for at in touched}
    names = {at: word_name(cluster, at, said.sizes[at]) for at in said.asked}
    return TalkingGrid(kernel, cluster, extraction, begins, steps, names)


def _steps(streams: list[Stream], events: list[WordEvent], touched: set[int]) -> WordSteps | None:
    """What each agent did to words, step by step; None where one step is an access to several words."""
    mine: list[list[WordEvent]] = [[] for _ in streams]
    for event in events:
        if event.act is not WordAct.READ:
            mine[event.agent].append(event)
    found: list[dict[int, WordEvent]] = []
    for stream, done in zip(streams, mine, strict=True):
        steps = [n for n, step in enumerate(stream.path) if step.position in touched]
        if len(steps) - len(done) not in (0, 1):  # the last of one that waits in the end
            return None
        pairs = dict(zip(steps, done, strict=False))
        if any(stream.path[n].position != event.position for n, event in pairs.items()):
            return None
        found.append(pairs)
    return tuple(found)


def sites_with_words(
    grid: TalkingGrid, sites: tuple[RecordedSite, ...], level: Level
) -> tuple[RecordedSite, ...] | None:
    """The sites of a grid with those of its words, None where a loop that waits for one cannot be recorded."""
    entry = grid.kernel.entry
    return with_words(entry, graph_of(entry), sites, grid.words, level)
