"""The words of a kernel's parameters that say how long it runs."""

from __future__ import annotations

from dataclasses import replace

from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import Kernel, emulate
from pipesim.ptx.launch.image import Image

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
