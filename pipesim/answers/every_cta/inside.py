"""A kernel whose warps wait for each other by words of shared memory, or of global memory that no other CTA writes.

It is read once more with these words, in each order of atomics whose answers decide, where it is not proved without.
"""

from collections.abc import Iterator
from dataclasses import replace

from pipesim.answers.every_cta.conditions import covered
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.every_cta.together import is_set_outside, open_wait
from pipesim.answers.global_memory.memories import written_elsewhere
from pipesim.errors import PtxError
from pipesim.model.coverage import NotJudged, NotJudgedKind, Strictness
from pipesim.model.words import MANY_WARPS, WordsOfRun
from pipesim.prove.atomic_orders import orders
from pipesim.prove.word_order import NO_ORDER, cannot_be_seen, is_decided, may_be_excluded, more_than_orders
from pipesim.ptx.emulate.memory import in_shared
from pipesim.ptx.extract import Extraction
from pipesim.trace.arrays import np

_MOST_ORDERS, _MOST_WARPS = 512, 9  #: whose numbers are digits of a setting
_MOST_FOLLOWED = 1 << 21  #: instructions, in all orders


def with_words_inside(kernel: Extraction, strictness: Strictness) -> Iterator[tuple[dict[str, int], Extraction]]:
    """The kernel with these words, in each order of their atomics, with its settings; nothing where it has none, or one
    warp alone uses them, as of a tile counter: they order nothing among the warps.

    Of one that does not say what the kernel does its coverage says that it is not judged.
    """
    first: Extraction | None = None
    try:
        every = list(orders(kernel.inside, _MOST_ORDERS, _MOST_FOLLOWED))
        every = every if every[-1] is not None else list(orders(kernel.inside, _MOST_ORDERS, _MOST_FOLLOWED))
        for made in every:
            if made is None:
                yield {"inside": 1}, _not_judged(kernel.inside(), "too many orders of atomics")
                return
            found = made.words
            assert found is not None
            if not (found.words or found.stuck or found.why_not):
                return
            if made.kernel.launch.sees and cannot_be_seen(made.program, found):
                continue
            if first is None and _are_of_one_warp(made, found):
                return
            first = first or made
            why = _why_not(made, found, strictness)
            if made.inputs.conditions and made is not first and not _are_of_one_kind(first, made):
                why = why or "what CTAs do differs by the order of atomics"
            yield {"inside": 1} | made.kernel.launch.of_words, _not_judged(made, why) if why else made
    except PtxError:
        return


def _are_of_one_warp(made: Extraction, found: WordsOfRun) -> bool:
    """Whether one warp executes all accesses by which warps may talk, and no other writes their words."""
    asking = set(made.asking_accesses())
    agents = {agent for agent, each in enumerate(made.streams) if asking.intersection(each.positions)}
    agents |= {write.agent for word in found.words for write in word.writes}
    return len(agents) == 1 and asking <= set(made.streams[min(agents)].positions)


def _are_of_one_kind(first: Extraction, made: Extraction) -> bool:
    """Whether all clusters that do the same in the first order do the same in another one."""
    every = EveryCta(first)
    places = every.places(np.arange(every.clusters))
    both = zip(covered(first.inputs, places), covered(made.inputs, places), strict=True)
    return all(there or not here for here, there in both)


def _not_judged(made: Extraction, why: str) -> Extraction:
    coverage = made.program.coverage
    more = (*coverage.not_judged, NotJudged(NotJudgedKind.WORDS, 0, (why,)))
    return replace(made, program=replace(made.program, coverage=replace(coverage, not_judged=more)))


def _why_not(made: Extraction, found: WordsOfRun, strictness: Strictness) -> str:
    """Why the program does not say what the kernel does, "" if it does."""
    if why := found.why_not or more_than_orders(made.program, found):
        return why
    if made.limited or made.program.coverage.stopped:
        return "a warp is not followed to its end"
    if len(made.streams) > _MOST_WARPS and made.kernel.launch.turns:
        return MANY_WARPS
    on_global, launch = [each for each in found.places if not in_shared(each[0])], made.kernel.launch
    plain = replace(made.kernel, launch=replace(launch, inside=False, turns=()))
    both = (made.kernel, plain) if on_global and launch.grid != launch.cluster else ()
    if both and all(written_elsewhere(each, on_global) for each in both):
        return "other CTAs may write the word"
    if found.set_within and is_set_outside(replace(made, kernel=plain), found):
        return "nothing in the grid writes the word that a CTA waits for"
    program = made.program.with_strictness(strictness)
    if is_decided(program, found, hangs=True):
        return NO_ORDER if may_be_excluded(program, found) else ""
    return open_wait(made, found)
