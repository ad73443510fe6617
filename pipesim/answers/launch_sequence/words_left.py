"""Flags and counters that a launch leaves in global memory, and what a later launch does that begins with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pipesim.answers.every_cta.together import Together, may_talk, programs_together
from pipesim.answers.launch_sequence.file import SequencedLaunch
from pipesim.answers.launch_sequence.kernel_uses import KernelUses
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
        found = None if kernel is None or not may_talk(kernel) else _followed(kernel, _places(kernel, step), held)
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
