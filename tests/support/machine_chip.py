"""Chips of the tests: the machine, on which rewritten kernels of one CTA run, and one on which nothing does."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from pipesim.confirm.launches import ChipOutcome, LaunchSeen, ManySeen
from pipesim.confirm.memory import LaunchMemory
from pipesim.confirm.report import ChipDevice
from pipesim.confirm.rewrite import STOP, TURNS, WAITS, DelayedPtx
from pipesim.confirm.table import TABLE
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.ptx_machine import GLOBAL, Machine

_STILL = 4_000  #: instructions without progress after which time passes
_PASSES_NS = 1_000_000  #: the first time; each further time twice as much
_MOST = 3_000  #: times


SAME = LaunchSeen(ChipOutcome.SAME)
_ENDS = (ChipOutcome.TRAP, ChipOutcome.STUCK)


class Scripted:
    """Kernels with delays end as ``delayed`` says, in turn, others as ``control``.

    ``ran``: for each request the sleeps in each kernel, and its launches.
    """

    device = ChipDevice("NVIDIA H200", "580.1")

    def __init__(self, *delayed: LaunchSeen, control: LaunchSeen = SAME) -> None:
        self.delayed, self.control = delayed, control
        self.ran: list[list[tuple[int, int]]] = []

    def is_late(self, kernel: DelayedPtx) -> bool:
        """Whether a kernel has delays."""
        return "nanosleep" in kernel.text

    def launch(
        self, kernels: Sequence[tuple[DelayedPtx, int]], launch: Launch, memory: LaunchMemory, limit_s: float
    ) -> list[list[LaunchSeen]]:
        """The launches of each kernel, up to one that leaves no context."""
        self.ran.append([(each.text.count("nanosleep"), times) for each, times in kernels])
        found = []
        for each, times in kernels:
            late = self.is_late(each)
            seen = [self.delayed[n % len(self.delayed)] for n in range(times)] if late else []
            found.append(seen or [self.control] * times)
            cut = next((n for n, one in enumerate(found[-1]) if one.outcome in _ENDS), times)
            found[-1] = found[-1][: cut + 1]
        return found

    def many(
        self, kernel: DelayedPtx, tables: bytes, launch: Launch, memory: LaunchMemory, limit_s: float, *, batch: int
    ) -> ManySeen:
        """Nothing is seen."""
        return ManySeen(len(tables) // len(kernel.table))


class MachineChip:
    """Each launch with another seed."""

    device = ChipDevice("machine of the tests", "1")

    def launch(
        self, kernels: Sequence[tuple[DelayedPtx, int]], launch: Launch, memory: LaunchMemory, limit_s: float
    ) -> list[list[LaunchSeen]]:
        """The launches of each kernel."""
        reference: list[bytes] = []
        return [[_launched(each, memory, seed, reference) for seed in range(times)] for each, times in kernels]

    def many(
        self, kernel: DelayedPtx, tables: bytes, launch: Launch, memory: LaunchMemory, limit_s: float, *, batch: int
    ) -> ManySeen:
        """Up to the first launch that shows something."""
        size, reference = len(kernel.table), list[bytes]()
        for n in range(len(tables) // size):
            table = tables[n * size : (n + 1) * size]
            found = _launched(replace(kernel, table=table), memory, n, reference)
            if found.outcome is not ChipOutcome.SAME:
                return ManySeen(n + 1, ((n, found.outcome is ChipOutcome.HANG),))
        return ManySeen(len(tables) // size)


def _launched(kernel: DelayedPtx, memory: LaunchMemory, seed: int, reference: list[bytes]) -> LaunchSeen:
    held, symbols, places = bytearray(), dict[str, int](), list[int]()
    for number, each in enumerate(memory.buffers):
        places.append(GLOBAL + len(held))
        held += Random(number).randbytes(each.nbytes) if each.filled else bytes(each.nbytes)
    left = len(held)
    module = read_module(kernel.text, "text", kernel.entry)
    variables = [(STOP, bytes(8)), (WAITS, bytes(4 * kernel.words)), (TABLE, kernel.table), (TURNS, bytes(256))]
    for declared, parameter in zip(module.entries[0].params, memory.parameters, strict=True):
        variables.append((declared.name, places[parameter.pointers[0][1]].to_bytes(8, "little")))
    for name, data in variables:
        held += bytes(-len(held) % 16)
        symbols[name] = GLOBAL + len(held)
        held += data
    machine = Machine(module, module.entries[0], kernel.threads, held, symbols, seed=seed)
    if not _ends(machine):
        return LaunchSeen(ChipOutcome.STUCK)
    if held[symbols[STOP] - GLOBAL]:
        words = memoryview(held)[symbols[WAITS] - GLOBAL :][: 4 * kernel.words].cast("I")
        waits = sorted({(0, thread // 32, site) for thread, site in enumerate(words) if site})
        return LaunchSeen(ChipOutcome.HANG, tuple(waits))
    reference[:] = reference or [bytes(held[:left])]
    differ = [n for n, (a, b) in enumerate(zip(held[:left], reference[0], strict=True)) if a != b]
    if not differ:
        return SAME
    return LaunchSeen(ChipOutcome.DIFFERS, differ=len(differ), first=(0, differ[0]))


def _ends(machine: Machine) -> bool:
    """Run it; where nothing happens for a while, time passes."""
    random, passed = Random(machine.seed), 0
    state, since, passes = None, 0, _PASSES_NS
    while machine.turn(random):
        asleep = tuple(thread.pc for thread in machine.all_threads if thread.until > machine.time)
        if (now := (machine._progress(), asleep)) != state:
            state, since, passes = now, machine.steps, _PASSES_NS
        elif machine.steps - since > _STILL:
            sleeps = [each.until - machine.time for each in machine.all_threads if each.until > machine.time]
            machine.skipped_ns += min(sleeps, default=passes)
            since, passed, passes = machine.steps, passed + 1, 2 * passes
            if passed > _MOST:
                return False
    return True
