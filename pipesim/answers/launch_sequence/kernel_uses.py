"""What a kernel does to global memory in all CTAs of a launch, in relation to its waits and triggers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.global_memory.grid_memory import GlobalRace, GridMemory
from pipesim.answers.global_memory.judge import judge
from pipesim.answers.launch_sequence.file import SequencedLaunch
from pipesim.answers.views.conclusion import Basis
from pipesim.answers.views.sequence import Promise, SharedBytes
from pipesim.errors import LaunchFileError
from pipesim.model.dependent_launch import LaunchAct
from pipesim.model.program import Program
from pipesim.prove.dependent_launch import AfterWait, event_order
from pipesim.ptx.coverage import place_in
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.kernel import PTX, launch_of
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.settings import parameter_at, with_settings
from pipesim.ptx.launch.values import Launch, Pointer
from pipesim.ptx.prepare import Kernel, entry_of
from pipesim.ptx.text.declarations import Function

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
    """``waits`` and ``triggers``: the line where some CTA does, "" if none. ``unread``: what is not known, if any.

    ``races``: what its own CTAs do to bytes to which several parameters lead.
    """

    name: str
    uses: tuple[PlacedUse, ...]
    waits: str = ""
    triggers: str = ""
    triggers_after_wait: bool = False
    unread: str = ""
    kernel: Extraction | None = None
    races: tuple[SharedBytes, ...] = ()


def kernel_uses(step: SequencedLaunch) -> KernelUses:
    """What a launch does, in every kind of its CTAs. Raises PtxError or LaunchFileError."""
    if step.kernel:
        return KernelUses(step.kernel, (), unread="it has no launch file")
    module, launch = launch_of(PTX.read_text(step.ptx), step.ptx, step.launch, ())
    given, alike = replace(launch, in_sequence=True), _alike(launch, entry_of(module, launch), step)
    if alike:
        given = with_settings(given, entry_of(module, given), alike.values())
        step = replace(step, buffers={place: at for place, at in step.buffers.items() if place not in alike})
    first = extract(module, given)
    every = EveryCta(first)
    found = [first.program, *(each.program for each in every)]
    buffers = _buffers(step, first.kernel)
    made = [_of_one_kind(program, buffers) for program in found]
    unread = "" if every.complete else "not every CTA was looked at"
    unread = next(filter(None, (unread, *(each.unread for each in made))), "")
    judged = judge(first.kernel) if alike else GridMemory(0)
    if judged.cut or judged.left_open or judged.inside:
        unread = unread or f"in which order it accesses what {len(alike) + 1} parameters lead to"
    return KernelUses(
        first.program.name,
        tuple(dict.fromkeys(use for each in made for use in each.uses)),
        next(filter(None, (each.waits for each in made)), ""),
        next(filter(None, (each.triggers for each in made)), ""),
        any(each.triggers_after_wait for each in made),
        unread,
        first,
        tuple(_race(first.kernel, each, buffers) for each in judged.races),
    )


def _alike(launch: Launch, entry: Function, step: SequencedLaunch) -> Mapping[str, str]:
    """Settings for parameters that lead to the allocation of another one, by the place in the sequence: its address."""
    image, first, found = Image(launch, entry), dict[str, tuple[int, int]](), {}
    for place, (allocation, offset) in sorted(step.buffers.items(), key=lambda each: each[1]):
        number, byte = _parameter(launch, entry, place)
        at = entry.params[number].offset + byte
        address = image.parameter(at, 8) if isinstance(launch.parameters[number].content, Pointer) else None
        base, begin = first.setdefault(allocation, (address or 0, offset))
        if address is not None and base not in (0, address):
            found[place] = f"{at}=u64:{base + offset - begin}"
    return found


def _race(kernel: Kernel, race: GlobalRace, buffers: Mapping[str, tuple[str, int]]) -> SharedBytes:
    one, other = (place_in(kernel, at).partition(" ")[0] for at in (race.position, race.other))
    allocation = next((where[0] for words, where in buffers.items() if race.what.endswith(words)), "")
    said = f"CTA {race.cta:,} and CTA {race.other_cta:,} of this launch both access {race.what}"
    both, no = race.both_write, Promise.NONE
    return SharedBytes(allocation, 0, -1, one, True, other, both, no, said, Basis.CERTAIN)


def _buffers(step: SequencedLaunch, kernel: Kernel) -> Mapping[str, tuple[str, int]]:
    """Allocation and offset of each buffer, by its words in events. LaunchFileError for a place of no parameter."""
    image, found = Image(kernel.launch, kernel.entry), {}
    for place, where in step.buffers.items():
        number, byte = _parameter(kernel.launch, kernel.entry, place)
        offset = kernel.entry.params[number].offset + byte
        words = image.buffer(PARAMETERS + offset)[0] or image.buffer(image.parameter(offset, 8) or -1)[0]
        found[words] = where
    return found


def _parameter(launch: Launch, entry: Function, place: str) -> tuple[int, int]:
    try:
        return parameter_at(launch, entry, place)
    except ValueError as error:
        raise LaunchFileError(f"buffers: {error}", place=f"the launch of {entry.name}") from None


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
