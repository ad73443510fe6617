"""Who is late in a launch of ``stress``, and where: at random, and directed at what a verdict assumes."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from pipesim.confirm.delays import LONGEST_NS, MOST_OF_A_WARP, Delay, DelayPlace
from pipesim.model.program import Program
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.flow.opcodes import hands_on, is_step
from pipesim.ptx.prepare import Kernel

_SHORT_NS, _LAP_NS = (50, 20_000), (5_000, 300_000)
_PLAIN_EVERY = 64
_MOST_WARPS = 6


class LateWay(Enum):
    """How the warps of a launch are late; the value is a phrase for a report."""

    NONE = "without delays"
    LAP = "one warp a lap late"
    BEGIN = "warps that begin late"
    APART = "CTAs out of step"
    RANDOM = "at random"
    DIRECTED = "where the verdict assumes something"


@dataclass(frozen=True)
class LatePlan:
    """The delays of one launch, in the order of each warp's path; ``nth`` counts from the warp's beginning."""

    way: LateWay
    delays: tuple[Delay, ...] = ()


@dataclass(frozen=True)
class WarpPath:
    """Where a warp can be late, in the order of its path. ``aimed``: beside what a verdict assumes, or else
    what lets others continue.
    """

    places: tuple[DelayPlace, ...]
    aimed: tuple[int, ...]


class PlanMaker:
    """Plans of a kernel. ``lines``: of which its verdict assumes something; ``paths``: by CTA and warp."""

    def __init__(self, kernel: Kernel, program: Program, streams: Sequence[Stream], lines: frozenset[str]) -> None:
        self._kernel, body = kernel, kernel.function.body
        steps = [each.position for each in body if is_step(each)]
        assumed = [each.position for each in body if source_of(each, kernel.module) in lines]
        following = {bisect_left(steps, position) for position in assumed}
        self._near = {steps[n] for each in following for n in (each - 1, each) if 0 <= n < len(steps)}
        self._own = {each.begin for each in kernel.entry.body}
        longest: dict[tuple[int, int], tuple[int, str, Stream]] = {}
        for agent, stream in enumerate(streams):
            at = stream.cta, stream.warp
            if at not in longest or len(stream.path) > longest[at][0]:
                longest[at] = len(stream.path), program.agent_name(agent), stream
        self.paths = {at: self._path(name, stream) for at, (_, name, stream) in longest.items()}
        self._ctas = sorted({cta for cta, _ in self.paths})
        self.begins = sorted({place.begin for path in self.paths.values() for place in path.places[1:]})

    def _path(self, name: str, stream: Stream) -> WarpPath:
        body, module, counts = self._kernel.function.body, self._kernel.module, Counter[int]()
        begin = DelayPlace(name, stream.cta, stream.warp, -1, -1, self._kernel.entry.line, "", "", 0)
        places, aimed, hands = [begin], list[int](), list[int]()
        for step in stream.path:
            if step.position < 0 or (each := body[step.position]).begin not in self._own or not is_step(each):
                continue
            source, mnemonic = source_of(each, module), ".".join((each.opcode, *each.modifiers[:1]))
            here = DelayPlace(name, stream.cta, stream.warp, step.position, each.begin, each.line, source, mnemonic,
                              counts[each.begin])  # fmt: skip
            counts[each.begin] += 1
            for found in [aimed] * (step.position in self._near) + [hands] * hands_on(each):
                found += [len(places), len(places) + 1]
            places += [here, replace(here, after=True)]
        return WarpPath(tuple(places), tuple(aimed or hands))

    def plan(self, random: Random, number: int) -> LatePlan:
        """The plan of a launch, by its number; the first ones have no delays."""
        if number < 4 or number % _PLAIN_EVERY == 0:
            return LatePlan(LateWay.NONE)
        ways = [LateWay.LAP, LateWay.LAP, LateWay.RANDOM, LateWay.DIRECTED, LateWay.BEGIN]
        ways += [LateWay.APART] if len(self._ctas) > 1 else []
        way = ways[number % len(ways)]
        warps, delays = sorted(self.paths), list[Delay]()
        match way:
            case LateWay.LAP:
                path = self.paths[random.choice(warps)]
                waits = [n for n, each in enumerate(path.places) if "wait" in each.opcode and not each.after]
                delays += self._at(path, random.sample(waits or [0], 1), random, _LAP_NS)
            case LateWay.BEGIN:
                for warp in random.sample(warps, random.randint(1, len(warps))):
                    delays += self._at(self.paths[warp], [0], random, _LAP_NS)
            case LateWay.APART:
                late, ns = random.choice(self._ctas), _between(random, _LAP_NS)
                delays += [Delay(self.paths[at].places[0], ns) for at in warps if at[0] == late]
            case LateWay.RANDOM | LateWay.DIRECTED:
                for warp in random.sample(warps, min(len(warps), random.randint(1, _MOST_WARPS))):
                    path = self.paths[warp]
                    places = path.aimed if way is LateWay.DIRECTED and path.aimed else range(len(path.places))
                    delays += self._at(path, random.sample(places, min(len(places), random.randint(1, MOST_OF_A_WARP))),
                                       random, _SHORT_NS)  # fmt: skip
            case LateWay.NONE:
                pass
        return LatePlan(way, tuple(delays))

    def _at(self, path: WarpPath, at: Sequence[int], random: Random, ns: tuple[int, int]) -> list[Delay]:
        return [Delay(path.places[n], _between(random, ns)) for n in sorted(at)]

    def rows(self, delays: Sequence[Delay]) -> dict[tuple[int, int], list[tuple[DelayPlace, int]]]:
        """For each warp its delays, ``nth`` counted from the one before."""
        found: dict[tuple[int, int], list[tuple[DelayPlace, int]]] = {}
        last: dict[tuple[int, int], int] = {}
        for delay in delays:
            place = delay.place
            at = place.cta, place.warp
            places = self.paths[at].places
            here, since = places.index(place), last.get(at, -1)
            between = sum(each.begin == place.begin and each.after for each in places[since + 1 : here])
            found.setdefault(at, []).append((replace(place, nth=between), delay.ns))
            last[at] = here
        return found


def _between(random: Random, ns: tuple[int, int]) -> int:
    low, high = ns
    return min(int(low * (high / low) ** random.random()), LONGEST_NS)
