"""Whether the waits for words of global memory end in a grid of any size, since all CTAs do the same.

That is shown of grids in which all CTAs carry out the same operations, and each adds the same numbers to the same words
and waits until a word has what all have added so far. Each CTA is followed by itself, its additions counted as often as
there are CTAs. The argument is in docs/proof.md ("Words of global memory").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

from pipesim.model.ops import Op, operand
from pipesim.model.word_barriers import in_its_cta
from pipesim.model.words import WordAct, WordEvent
from pipesim.ptx.emit.global_data import in_both
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.extract import Extraction
from pipesim.ptx.launch.values import ctas_that_fit

_MOST_CTAS = 1_024
_MOST_VALUES = 1 << 16  #: of words, with which waits are asked
_MOST_INSTRUCTIONS = 1 << 19  #: of all CTAs


def all_meet(kernel: Extraction) -> bool:
    """Whether every wait for a word ends in the grid of the launch, and none before all CTAs have come so far."""
    ctas = prod(kernel.kernel.launch.grid)
    if not 1 < ctas <= _MOST_CTAS or prod(kernel.kernel.launch.cluster) > 1:
        return False
    first: object = None
    asked = _Asked(ctas)
    for cta in range(ctas):
        found = kernel.for_all(cta)
        if cta * found.instructions > _MOST_INSTRUCTIONS or found.cut:
            return False
        events = _events(found.cluster)
        if events is None:
            return False
        said = _signature(found.cluster, events)
        first = said if cta == 0 else first
        if said != first or not asked.end_in_time(events):
            return False
    return True


def hangs_whole(kernel: Extraction, loops: Collection[int]) -> bool:
    """Whether all CTAs of the grid, followed together, wait for words in the end, in loops at these positions alone.

    That is one schedule of a grid that fits on the device.
    """
    launch, program = kernel.kernel.launch, kernel.program
    grid, (fit, _) = prod(launch.grid), ctas_that_fit(launch, program.smem_bytes, program.architecture)
    if not 1 < grid <= min(fit, _MOST_CTAS) or grid * kernel.instructions > _MOST_INSTRUCTIONS:
        return False
    found = kernel.all_together
    words = found.cluster.words
    assert words is not None
    waits = {wait[0] for wait in words.waiting.values()}
    return not found.cut and _knows_words(found.cluster) and bool(waits) and waits <= set(loops)


def _knows_words(cluster: Cluster) -> bool:
    """Whether all is known that the CTAs do to the words for which they wait."""
    words, accesses = cluster.words, cluster.global_accesses
    assert words is not None
    body = cluster.code.function.body
    opened = accesses.left_open if accesses is not None else ()
    if words.doubts or cluster.limited or any(body[at].opcode != "ld" for at in opened):
        return False
    if any(each.opcode == "multimem" for each in body):
        return False  # a write that may be to one of the words
    followed = {each.position for each in words.events} | {wait[0] for wait in words.waiting.values()}
    talked = [(at, at + words.sizes[at]) for at in sorted(words.asked)]
    unseen = (one for one in accesses or () if one.kind.writes and one.position not in followed)
    return not any(any(in_both(sorted(one.ranges), talked)) for one in unseen)


def _events(cluster: Cluster) -> list[WordEvent] | None:
    """What a CTA does to the words for which it waits, in order; None where that is more than adding and waiting."""
    words = cluster.words
    assert words is not None
    if not _knows_words(cluster) or words.waiting or any(w.status is not Status.ENDED for w in cluster.warps):
        return None
    found = [each for each in words.events if each.address in words.asked]
    if not found or any(each.act not in (WordAct.ADD, WordAct.WAIT) or each.observed for each in found):
        return None
    regions = cluster.code.regions  # a value that ended a wait may be another in another order, and then what follows
    if not all(regions.is_read_in_its_loop_alone(each.position) for each in found if each.act is WordAct.WAIT):
        return None
    return found if len({each.agent for each in found}) == 1 else None


def _signature(cluster: Cluster, events: Sequence[WordEvent]) -> object:
    """What a CTA does, as any CTA may do it."""
    recorder, mine = cluster.recorder, {each.number: each for each in events}
    accesses, barriers, named = list(recorder.accesses), list(recorder.barriers), list(recorder.named)

    def said() -> Iterator[object]:
        for stream in recorder.streams:
            yield stream.warp, stream.lanes
            for op, position in zip(stream.code, stream.positions, strict=True):
                if op[0] == Op.WORK and operand(op, "cycles"):
                    e = mine.get(operand(op, "cycles") - 1)
                    yield (
                        position
                        if e is None
                        else (position, e.act, e.address, e.act is WordAct.ADD and e.after - e.before)
                    )
                else:
                    yield position, in_its_cta(op, accesses, barriers, named)

    return tuple(said())


class _Asked:
    """Asks waits with the values that their words may have; what was asked once is known."""

    def __init__(self, ctas: int) -> None:
        self._ctas, self._known, self._left = ctas, dict[object, bool](), _MOST_VALUES

    def end_in_time(self, events: Sequence[WordEvent]) -> bool:
        """Whether each wait of a CTA ends with what all have added to its word before it, and whatever more they add,
        and with nothing less.
        """
        begin: dict[int, int] = {}
        end: dict[int, int] = {}
        for e in events:
            begin.setdefault(e.address, e.before)
            end[e.address] = e.after
        least: dict[int, int] = {}
        for e in events:
            if e.act is WordAct.ADD:
                least[e.address] = min(least.get(e.address, e.after), (e.after - e.before) // self._ctas)
            elif not self._ends(e, begin[e.address], least.get(e.address, 0), end[e.address]):
                return False
        return True

    def _ends(self, e: WordEvent, begin: int, least: int, end: int) -> bool:
        """``begin``: of the word; ``least``: that was added to it at a time so far; ``end``: what all leave."""
        key = e.position, begin, e.before, least, end, e.decided_by
        if e.decided_by is None or key not in self._known:
            self._left -= end - begin + 1
            if e.passes is None or self._left < 0 or not least:
                return False
            before = all(e.passes(value) is False for value in range(begin, e.before - least + 1))
            self._known[key] = before and all(e.passes(value) for value in range(e.before, end + 1))
        return self._known[key]
