"""What a kernel does to global memory in all CTAs of a launch, in relation to its waits and triggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.launch_sequence.file import SequencedLaunch
from pipesim.errors import LaunchFileError
from pipesim.model.dependent_launch import LaunchAct
from pipesim.model.program import Program
from pipesim.prove.dependent_launch import AfterWait, event_order
from pipesim.ptx.emulation import Kernel
from pipesim.ptx.extract import extract
from pipesim.ptx.kernel import PTX, launch_of
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.settings import parameter_at

FAR = 1 << 62  #: the end of memory of which it is not known where it ends


@dataclass(frozen=True)
class PlacedUse:
    """Accesses at a line to bytes of an allocation. ``early``: no wait comes before them in every schedule.

    ``after_trigger``: not all come before every trigger of their CTA.
    """

    line: str
    writes: bool
    allocation: str
    first: int
    end: int
    early: bool
    after_trigger: bool


@dataclass(frozen=True)
class KernelUses:
    """``waits`` and ``triggers``: the line where some CTA does, "" if none. ``unread``: what is not known, if any."""

    name: str
    uses: tuple[PlacedUse, ...]
    waits: str = ""
    triggers: str = ""
    triggers_after_wait: bool = False
    unread: str = ""


def kernel_uses(step: SequencedLaunch) -> KernelUses:
    """What a launch does, in every kind of its CTAs. Raises PtxError or LaunchFileError."""
    if step.kernel:
        return KernelUses(step.kernel, (), unread="it has no launch file")
    module, launch = launch_of(PTX.read_text(step.ptx), step.ptx, step.launch, ())
    first = extract(module, replace(launch, in_sequence=True))
    every = EveryCta(first)
    found = [first.program, *(each.program for each in every)]
    buffers = _buffers(step, first.kernel)
    made = [_of_one_kind(program, buffers) for program in found]
    unread = "" if every.complete else "not every CTA was looked at"
    unread = next(filter(None, (unread, *(each.unread for each in made))), "")
    return KernelUses(
        first.program.name,
        tuple(dict.fromkeys(use for each in made for use in each.uses)),
        next(filter(None, (each.waits for each in made)), ""),
        next(filter(None, (each.triggers for each in made)), ""),
        any(each.triggers_after_wait for each in made),
        unread,
    )


def _buffers(step: SequencedLaunch, kernel: Kernel) -> Mapping[str, tuple[str, int]]:
    """Allocation and offset of each buffer, by its words in events. LaunchFileError for a place of no parameter."""
    image, found = Image(kernel.launch, kernel.entry), {}
    for place, where in step.buffers.items():
        try:
            number, byte = parameter_at(kernel.launch, kernel.entry, place)
        except ValueError as error:
            raise LaunchFileError(f"buffers: {error}", place=f"the launch of {kernel.entry.name}") from None
        offset = kernel.entry.params[number].offset + byte
        words = image.buffer(PARAMETERS + offset)[0] or image.buffer(image.parameter(offset, 8) or -1)[0]
        found[words] = where
    return found


def _of_one_kind(program: Program, buffers: Mapping[str, tuple[str, int]]) -> KernelUses:
    events, order, unread = program.coverage.dependent, event_order(program, triggers=True), ""
    acts = {kind: [n for n, each in enumerate(events) if each.kind is kind] for kind in LaunchAct}
    triggers = acts[LaunchAct.TRIGGER]
    uses = []
    for n in acts[LaunchAct.LOAD] + acts[LaunchAct.STORE]:
        event = events[n]
        if not event.sure or order.after_wait(n) is AfterWait.OPEN:
            unread = f"whether, or in which order with a wait, {event.line} is executed"
        elif event.buffer not in buffers:
            unread = f"where {event.buffer or 'the memory'} lies that is accessed at {event.line}"
        if event.buffer not in buffers:
            continue
        allocation, offset = buffers[event.buffer]
        bytes_ = (offset + event.first, offset + event.end) if event.end >= 0 else (offset, FAR)
        here, writes = program.agents[event.agent].cta, event.kind is LaunchAct.STORE
        mine = [t for t in triggers if program.agents[events[t].agent].cta == here]
        early = order.after_wait(n) is not AfterWait.AFTER
        late = (writes and event.instruction.startswith("cp.")) or any(not order.before(n, t) for t in mine)
        uses.append(PlacedUse(event.line, writes, allocation, *bytes_, early, late))
    if not program.coverage.complete or (not events and program.coverage.not_judged):
        unread = "all that it does"
    waits = next((events[n].line for n in acts[LaunchAct.WAIT]), "")
    trigger = events[triggers[0]].line if triggers else ""
    after_wait = bool(triggers) and all(order.after_wait(t) is AfterWait.AFTER for t in triggers)
    return KernelUses(program.name, tuple(uses), waits, trigger, after_wait, unread)
