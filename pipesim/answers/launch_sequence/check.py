"""Launches one after the other: the bytes that two of them access, one of them writing, and what orders that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pipesim.answers.launch_sequence.file import SequencedLaunch, StreamAct, read_sequence
from pipesim.answers.launch_sequence.kernel_uses import FAR, KernelUses, PlacedUse, kernel_uses
from pipesim.answers.launch_sequence.stream_order import LaunchMoments, launch_moments
from pipesim.answers.launch_sequence.words_left import words_left
from pipesim.answers.views.sequence import LaunchPair, Promise, SequenceReport, SharedBytes
from pipesim.findings.kind import Basis


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
