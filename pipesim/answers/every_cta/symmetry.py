"""Whether the waits for words of global memory end in a grid of any size, since all CTAs do the same.

That is shown of grids in which all CTAs carry out the same operations, and each adds the same numbers to the same words
and waits until a word has what all have added so far. Each CTA is followed by itself, its additions counted as often as
there are CTAs. The argument is in docs/proof.md ("Words of global memory").
"""

from collections.abc import Collection, Iterator, Sequence
from math import prod

from pipesim.model.ops import Op, operand
from pipesim.model.word_barriers import in_its_cta
from pipesim.model.words import Range, WordAct, WordEvent
from pipesim.ptx.emit.global_data import in_both
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.cluster_memory import SOME_CTAS
from pipesim.ptx.emulate.global_memory.global_accesses import GlobalAccess
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.extract import Extraction
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import form_of
from pipesim.ptx.launch.values import ctas_that_fit

_MOST_CTAS = 1_024
_MOST_OF_ANY = 1 << 16  #: along x, where it is any number
_MOST_STEPS = 64  #: of what a word has when a wait ends, each of which is that number
_MOST_VALUES = 1 << 16  #: of words, with which waits are asked
_MOST_INSTRUCTIONS = 1 << 19  #: of all CTAs


def most_that_meet(kernel: Extraction) -> int:
    """Up to which number of CTAs along x all waits for words end as is said above, of any number; 0 if none is known.

    No decision of the run, and of what its waits are asked, depends on that number or on the CTA. ``gridDim.x`` is the
    sum of ``some`` and of others there: what is less than it is one less than some.
    """
    launch = kernel.kernel.launch
    if prod(launch.cluster) > 1 or not 1 < launch.grid[0] <= _MOST_OF_ANY:
        return 0
    found = kernel.for_all(0, _MOST_OF_ANY)
    cluster = found.cluster
    if found.cut or cluster.inputs.conditions or (events := _events(cluster)) is None:
        return 0
    inputs, along_x = cluster.inputs, cluster.length_of_grid(0)
    some, each_adds = inputs.free(SOME_CTAS, launch.grid[0], 1, _MOST_OF_ANY), prod(launch.grid[1:])
    begin = {e.address: e.before for e in reversed(events)}
    end = {e.address: e.after for e in events}
    for e in events:
        if e.act is WordAct.WAIT:
            added, more = e.before - begin[e.address], form_of(end[e.address] - e.before).high
            steps = form_of(added).divisor
            if not 0 < steps <= _MOST_STEPS or form_of(added) != form_of(steps * along_x) or steps % each_adds:
                return 0
            least = (begin[e.address] + step * along_x + some - 1 for step in range(steps))
            late = e.before + inputs.free(f"more than at {e.number}", 0, 0, more)
            if e.passes is None or e.passes(late) is not True or any(e.passes(v) is not False for v in least):
                return 0
    return 0 if inputs.conditions else _MOST_OF_ANY


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
    if accesses.limited if accesses is not None else cluster.launch.any_ctas:
        return False
    if words.doubts or cluster.limited or any(body[at].opcode != "ld" for at in opened):
        return False
    if any(each.opcode == "multimem" for each in body):
        return False  # a write that may be to one of the words
    followed = {each.position for each in words.events} | {wait[0] for wait in words.waiting.values()}
    talked = [(at, at + words.sizes[at]) for at in sorted(words.asked)]
    counts = (one for one in accesses or () if one.kind.writes or cluster.launch.any_ctas)
    return not any(any(in_both(_hull(one), talked)) for one in counts if one.position not in followed or one.terms)


def _hull(one: GlobalAccess) -> list[Range]:
    """The bytes that any CTA accesses; where the address depends on the CTA with those between them."""
    of = Form(0, one.terms)
    if not one.terms:
        return sorted(one.ranges)
    return [(one.ranges[0][0] + of.low, one.ranges[-1][1] + of.high)]


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
    if any(regions.loops.is_used_after(each.position) for each in found if each.act is WordAct.WAIT):
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
                    yield position, e and (e.act, e.address, e.act is WordAct.ADD and e.after - e.before)
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
        begin, end = {e.address: e.before for e in reversed(events)}, {e.address: e.after for e in events}
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
