"""Which launches are complete where a later one begins, and where its ``griddepcontrol.wait`` has returned.

Of a kernel with programmatic stream serialisation PTX and CUDA promise: it begins once every CTA of the kernel before
it has executed ``griddepcontrol.launch_dependents`` or ended, and its wait returns when that kernel has completed and
its memory is visible. Nothing is promised of kernels before that one, unless it has waited for them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesim.answers.launch_sequence.file import SequencedLaunch, StreamAct
from pipesim.answers.launch_sequence.kernel_uses import KernelUses
from pipesim.answers.views.sequence import Promise

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
