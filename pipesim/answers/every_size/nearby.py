"""For which values nearby of the words of a kernel's parameters every CTA does the same, by the runs of a check alone.

A run narrows the values of each word to those with which all that it asked about the word is as it was
(:class:`pipesim.ptx.free.forms.Atom`). Where a word was compared with the place of a CTA, that is settled here for all
places of the grid.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.views.check import NearbyValues
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate
from pipesim.ptx.free.forms import NO_BOUND, Form, narrow
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.image import ALIGNED, PARAMETERS, FreeWord, Image
from pipesim.ptx.prepare import Kernel
from pipesim.trace.arrays import np


def values_nearby(kernel: Kernel, looked: Iterable[EveryCta[Any]]) -> tuple[NearbyValues, ...]:
    """The words of the parameters, each alone, with the values that it may have, also those that decide alone.

    ``looked``: with all runs of the check.
    """
    image = Image(kernel.launch, kernel.entry)
    found: dict[str, tuple[int, int]] = {}
    for inputs in (one for every in looked for one in _runs(every)):
        for name, atom in inputs.forms.words.items():
            low, high = found.get(name, (atom.low, atom.high))
            found[name] = max(low, atom.low), min(high, atom.high)
    said = [
        _values(name, at, word, found, kernel, image)
        for at, word in image.words.items()
        if found.get(name := image.place(at), word.free[:2]) != word.free[:2] or not word.in_array
    ]
    return tuple(each for each in said if each.most != each.least or each.parameter in found)


def _runs(every: EveryCta[Any]) -> Iterator[FreeInputs]:
    """What the runs of all kinds asked, settled for all places of a kind."""
    runs = [(n, inputs) for n, kind in enumerate(every.kinds) for inputs in (kind.inputs, *kind.inputs.before)]
    if any(inputs.forms.compared_in_places for _, inputs in runs):
        clusters = every.clusters_of_kinds()
        for n, inputs in runs:
            settle(inputs, every.all_places() if every.arrays else every.places(clusters[n]))
    return (inputs for _, inputs in runs)


def settle(inputs: FreeInputs, places: "Mapping[str, np.ndarray]") -> None:
    """Narrow the values of words to those with which they compare with each of these places as they do now."""
    evaluation = Evaluation(completed(inputs, places))
    for terms, compared in inputs.forms.compared_in_places.items():
        values = sorted(set(evaluation.sum(Form(0, terms)).tolist()))
        for above, words in compared:
            at = bisect_left(values, -above)
            down = values[at] + above if at < len(values) else NO_BOUND
            up = -1 - above - values[at - 1] if at else NO_BOUND
            narrow(words, down, up)


def _values(
    name: str, at: int, word: FreeWord, found: dict[str, tuple[int, int]], kernel: Kernel, image: Image
) -> NearbyValues:  # fmt: skip
    step = _step(at, word, kernel, image)
    if name not in found and step == 1:
        return NearbyValues(name)
    low, high = found.get(name, (0, word.free.high))
    if not step:
        return NearbyValues(name, word.now, word.now)
    return NearbyValues(name, low + (word.now - low) % step, high - (high - word.now) % step, step)


def _step(at: int, word: FreeWord, kernel: Kernel, image: Image) -> int:
    """With which step of a word the same copies are at no address that PTX allows; 0 if that is not known."""
    asked: list[tuple[int, int]] = []

    def words(offset: int, size: int, rest: int = word.now % ALIGNED) -> tuple[int, int]:
        if at >= PARAMETERS + offset + size or PARAMETERS + offset >= at + word.size:
            return image.remainder(_NONE, offset, size)
        asked.append((offset, size))
        return ALIGNED, rest

    wrong = kernel.code.misaligned.with_words
    found = wrong(words)
    if not asked:
        return 1
    if any(PARAMETERS + offset != at for offset, _ in asked):
        return 0
    each = [wrong(partial(words, rest=rest)) for rest in range(ALIGNED)]
    return next(
        step
        for step in (1, 2, 4, 8, ALIGNED)
        if all(each[rest] == found for rest in range(word.now % step, ALIGNED, step))
    )


_NONE = FreeInputs(fixed=True)


_BEGINNING = 50_000  #: instructions of all warps


def words_that_decide(kernel: Kernel) -> dict[str, int]:
    """The integers among the parameters on which the beginning of a run depends, with their values: the largest first.

    By their places, as ``--set`` has them.
    """
    image = Image(kernel.launch, kernel.entry)
    words = {image.place(at): word for at, word in image.words.items()}
    beginning = emulate(replace(kernel, leaves_laps_out=False), EmulationLimits(_BEGINNING))
    asked = beginning.cluster.inputs.forms
    of_places = {atom for each in asked.compared_in_places.values() for _, terms in each for atom, _ in terms}
    found = {
        name: words[name].now
        for name, atom in asked.words.items()
        if atom in of_places or (atom.low, atom.high) != words[name].free[:2]
    }
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))
