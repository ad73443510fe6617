"""Launches one after the other: the bytes that two of them access, one of them writing, and what orders that.

Of a kernel with programmatic stream serialisation PTX and CUDA promise: it begins once every CTA of the kernel before
it has executed ``griddepcontrol.launch_dependents`` or ended, and its wait returns when that kernel has completed and
its memory is visible. Nothing is promised of kernels before that one, unless it has waited for them itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pipesim.answers.every_cta.together import Together, programs_together
from pipesim.answers.launch_sequence.file import SequencedLaunch, StreamAct, read_sequence
from pipesim.answers.launch_sequence.kernel_uses import FAR, KernelUses, PlacedUse, kernel_uses
from pipesim.answers.views.conclusion import Basis
from pipesim.answers.views.sequence import LaunchPair, Promise, SequenceReport, SharedBytes
from pipesim.model.coverage import LENIENT
from pipesim.model.finding import Verdict
from pipesim.prove.check import check as prove
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.launch.settings import parameter_at, with_settings

_TYPES = {4: "u32", 8: "u64"}


class _Left(NamedTuple):
    """What a word holds after the launch of this number, in which ``ctas`` CTAs were followed together."""

    launch: int
    value: int
    size: int
    ctas: int


def words_left(launches: Sequence[SequencedLaunch], kernels: Sequence[KernelUses]) -> Iterator[str]:
    """Launches that hang or race where words hold what an earlier one leaves, and not where they are 0.

    A copy or memset between them, which no file of launches has, may reset the words: it is not said to be wrong.
    """
    held: dict[tuple[str, int], _Left] = {}
    for n, (step, uses) in enumerate(zip(launches, kernels, strict=True)):
        kernel = uses.kernel
        found = None if kernel is None or not kernel.may_talk else _followed(kernel, _places(kernel, step), held)
        for use in uses.uses if found is None else ():
            if use.writes:
                held = {at: one for at, one in held.items() if not (use.allocation, use.first) <= at < (at[0], use.end)}
        if found is None:
            continue
        wrong, settings, left, ctas = found
        if wrong and settings:
            said = ", ".join(f"{word} is {each.value:,}" for word, each in settings.items())
            which = max(each.launch for each in settings.values()) + 1
            yield f"{n + 1} {uses.name}: where {said} at its start, as {which} leaves it, {wrong}"
        for at, (value, size) in left.items():
            held[at] = _Left(n, value, size, ctas)


def _places(kernel: Extraction, step: SequencedLaunch) -> dict[str, tuple[int, str, int]]:
    """Of each pointer, by its name in words: its offset in the parameters, and its allocation and offset."""
    launch, entry, found = kernel.kernel.launch, kernel.kernel.entry, {}
    for place, (allocation, offset) in step.buffers.items():
        number, byte = parameter_at(launch, entry, place)
        at = entry.params[number].offset + byte
        found[launch.parameters[number].name or str(at)] = at, allocation, offset
    return found


def _followed(
    kernel: Extraction, places: Mapping[str, tuple[int, str, int]], held: dict[tuple[str, int], _Left]
) -> tuple[str, dict[str, _Left], dict[tuple[str, int], tuple[int, int]], int] | None:
    """What is wrong with the fewest CTAs together, what their words hold before, and after; None if it is not known."""
    sizes = kernel.kernel.launch.sizes_together
    settings, before = [], {}
    for (allocation, at), each in held.items():
        for name, (parameter, mine, offset) in places.items():
            if mine == allocation and offset <= at and each.value and each.ctas in sizes[:1]:
                settings.append(f"{parameter}:{at - offset}={_TYPES[each.size]}:{each.value}")
                before[f"{name}[{(at - offset) // each.size}]"] = each
    launch = with_settings(kernel.kernel.launch, kernel.kernel.entry, settings)
    made = extract(kernel.kernel.module, replace(launch, in_sequence=False))
    wrong, words = "", None
    for setting, shown in programs_together(made, Together(), LENIENT):
        if setting["together"] not in sizes[:1]:
            break
        words = shown.words.words if shown.words is not None else ()
        found = prove(shown.program)
        if found.verdict is Verdict.REFUTED:
            first = found.refutations[0]
            where = "" if first.fault is None else f" at {shown.program.line(first.fault.agent, first.fault.pc)}"
            wrong = f"{setting['together']} CTAs have a {first.kind.name.lower().replace('_', ' ')}{where}"
            break
    if words is None:
        return None
    left = {}
    for word in words:
        pointer, _, number = word.name.rstrip("]").partition("[")
        if pointer in places:
            _, allocation, offset = places[pointer]
            value = word.writes[-1].after if word.writes else word.first
            left[allocation, offset + int(number) * word.size] = value, word.size
    return wrong, before, left, sizes[0]


Complete = dict[int, Promise]  #: launches by their numbers


class LaunchMoments(NamedTuple):
    """What is complete at the ``start`` of a launch and ``after`` its wait; ``before``: the kernel that it overlaps."""

    start: Complete
    after: Complete
    before: int = -1


class _Streams:
    """What is known as launches are asked for, one after the other."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.launched: dict[str, list[int]] = {}
        self.awaited: dict[str, Complete] = {}  #: by events for which a stream waits
        self.events: dict[str, Complete] = {}
        self.host: Complete = {}

    def all_of(self, stream: str) -> Complete:
        """What is complete when everything in a stream is."""
        mine = dict.fromkeys(self.launched.get(stream, ()), Promise.PROMISED)
        return self.host | self.awaited.get(stream, {}) | mine

    def act(self, step: StreamAct) -> None:
        """An event, or the host waits."""
        if step.act == "record":
            self.events[step.event] = self.all_of(step.stream)
        elif step.act == "wait" and not step.stream:
            self.host |= self.events.get(step.event, {})
        elif step.act == "wait":
            self.awaited.setdefault(step.stream, {}).update(self.events.get(step.event, {}))
        else:
            for stream in [step.stream] if step.stream else self.launched:
                self.host |= self.all_of(stream)


def launch_moments(
    steps: Sequence[SequencedLaunch | StreamAct], kernels: Sequence[KernelUses]
) -> tuple[LaunchMoments, ...]:
    """What is complete at each launch; ``kernels``: what each launch does."""
    streams, found = _Streams(), list[LaunchMoments]()
    for step in steps:
        if isinstance(step, StreamAct):
            streams.act(step)
            continue
        number, base = len(found), streams.host | streams.awaited.get(step.stream, {})
        before = streams.last.get(step.stream, -1) if step.programmatic else -1
        if before < 0:
            every = streams.all_of(step.stream)
            found.append(LaunchMoments(every, every))
        else:
            was, kernel = found[before], kernels[before]
            seen = dict.fromkeys(was.after, Promise.SEEN)
            complete = {**seen, **(was.after if kernel.waits else was.start), before: Promise.PROMISED}
            begun = {**(seen if kernel.triggers_after_wait else {}), **was.start} if kernel.triggers else complete
            found.append(LaunchMoments(begun | base, complete | base, before))
        streams.last[step.stream] = number
        streams.launched.setdefault(step.stream, []).append(number)
    return tuple(found)


def check_sequence(path: Path) -> SequenceReport:
    """The pairs of launches in a file that share bytes. Raises PtxError or LaunchFileError."""
    steps = read_sequence(path)
    launches = [each for each in steps if isinstance(each, SequencedLaunch)]
    known: dict[str, KernelUses] = {}
    for launch in launches:
        if _kernel(launch) not in known:
            known[_kernel(launch)] = kernel_uses(launch)
    sequence = _Sequence(steps, launches, [known[_kernel(each)] for each in launches])
    meetings = [each for later in range(len(launches)) for each in sequence.meetings(later)]
    found: dict[tuple[int, int], dict[tuple[str, ...], SharedBytes]] = {}
    for each in meetings:
        made = sequence.standing(each)
        lines = made.allocation, made.earlier_line, made.later_line
        mine = found.setdefault((each.earlier, each.later), {})
        mine[lines] = _both(mine[lines], made) if lines in mine else made
    pairs = tuple(sequence.pair(*numbers, tuple(mine.values())) for numbers, mine in found.items())
    own = tuple(sequence.pair(n, n, kernel.races) for n, kernel in enumerate(sequence.kernels) if kernel.races)
    unread = tuple(dict.fromkeys(f"{each.name}: {each.unread}" for each in sequence.kernels if each.unread))
    unread += tuple(words_left(launches, sequence.kernels))
    report = SequenceReport(path.name, len(launches), own + pairs, (), unread)
    return report if unread or report.findings else replace(report, superfluous=tuple(sequence.superfluous(meetings)))


def _kernel(step: SequencedLaunch) -> str:
    return repr((step.ptx, step.launch, step.buffers, step.kernel))


def _both(one: SharedBytes, other: SharedBytes) -> SharedBytes:
    """The bytes of both, in as bad an order as the worse one."""
    worse = min(one, other, key=lambda each: list(Promise).index(each.promise))
    end = -1 if min(one.end, other.end) < 0 else max(one.end, other.end)
    return replace(worse, first=min(one.first, other.first), end=end)


class _Meeting(NamedTuple):
    """Accesses of two launches to the same bytes, one of them writing."""

    earlier: int
    later: int
    one: PlacedUse
    two: PlacedUse


@dataclass(frozen=True)
class _Sequence:
    """The launches and what their kernels do."""

    steps: Sequence[SequencedLaunch | StreamAct]
    launches: Sequence[SequencedLaunch]
    kernels: Sequence[KernelUses]

    @cached_property
    def moments(self) -> Sequence[LaunchMoments]:
        """When each launch begins and is complete."""
        return launch_moments(self.steps, self.kernels)

    def meetings(self, later: int) -> Iterator[_Meeting]:
        """Those of a launch with the ones before it."""
        for earlier in range(later):
            for one in self.kernels[earlier].uses:
                for two in self.kernels[later].uses:
                    meet = one.allocation == two.allocation and max(one.first, two.first) < min(one.end, two.end)
                    if meet and (one.writes or two.writes):
                        yield _Meeting(earlier, later, one, two)

    def promise(self, each: _Meeting, *, waits: bool = True) -> Promise:
        """Whether the earlier launch is complete where the later one accesses the bytes, or at its start."""
        moment = self.moments[each.later]
        complete = moment.start if each.two.early or not waits else moment.after
        return complete.get(each.earlier, Promise.NONE)

    def standing(self, each: _Meeting) -> SharedBytes:
        """What orders two accesses, or what is missing and how sure it is that it fails."""
        one, two, promise = each.one, each.two, self.promise(each)
        first, end = max(one.first, two.first), min(one.end, two.end)
        made = SharedBytes(
            one.allocation, first, end if end < FAR else -1, one.line, one.writes, two.line, two.writes, promise
        )  # fmt: skip
        if promise is Promise.PROMISED:
            return made
        before, kernel = self.moments[each.later].before, self.kernels[each.later]
        name = f"{each.later + 1} {kernel.name}"
        if self.launches[each.earlier].stream != self.launches[each.later].stream:
            return replace(made, missing="no event and no synchronisation orders the streams", basis=Basis.POSSIBLE)
        if not two.early:  # it waits, but not for this one
            other = f"{before + 1} {self.kernels[before].name}"
            said = f"{name} waits for {other}, which does not wait for {each.earlier + 1}"
            return replace(made, missing=said, basis=Basis.POSSIBLE)
        said = f"{two.line} comes before its wait ({kernel.waits})" if kernel.waits else f"{name} does not wait"
        if each.earlier == before and one.after_trigger:
            said += f", and {one.line} may come after launch_dependents ({self.kernels[before].triggers})"
        elif each.earlier == before:
            said += ", and launch_dependents alone orders no memory"
            return replace(made, promise=Promise.SEEN, missing=said, basis=Basis.LETTER)
        return replace(made, missing=said, basis=Basis.LETTER if promise is Promise.SEEN else Basis.POSSIBLE)

    def pair(self, earlier: int, later: int, shared: tuple[SharedBytes, ...]) -> LaunchPair:
        """A pair with the bytes that both access."""
        one, two, before = self.launches[earlier].stream, self.launches[later].stream, self.moments[later].before
        by = f"stream {one}" if one == two else f"streams {one} and {two}"
        if before >= 0 and earlier != later:
            begins = "launch_dependents or the end" if self.kernels[before].triggers else "the end"
            by += f", begins after {begins} of {before + 1}"
        return LaunchPair(earlier + 1, later + 1, self.kernels[earlier].name, self.kernels[later].name, by, shared)

    def superfluous(self, meetings: Sequence[_Meeting]) -> Iterator[str]:
        """The launches without whose waits everything is ordered as well."""
        for number, kernel in enumerate(self.kernels):
            if not kernel.waits or not number:
                continue
            without = replace(kernel, waits="", triggers_after_wait=False)
            other = replace(self, kernels=[*self.kernels[:number], without, *self.kernels[number + 1 :]])
            if all(other.promise(each, waits=each.later != number) is Promise.PROMISED for each in meetings):
                yield f"{number + 1} {kernel.name}: without the wait at {kernel.waits} all is ordered as well"
