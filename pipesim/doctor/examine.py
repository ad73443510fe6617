"""The examination: every part, and what they make possible together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pipesim
from hwkernels.device.presence import DriverPresent, driver_present
from pipesim.answers.views.doctor import DoctorReport, MachinePart, Possible, Purpose
from pipesim.doctor.machine import (
    cupti_part,
    driver_part,
    gpu_part,
    hopper_part,
    nvrtc_part,
    python_part,
    tool_parts,
    traces_part,
)
from pipesim.doctor.requirements import Installed, Requirement, as_installed, own_checkout, packages_part, requirement

_OWN = "pipesim"
_EXTRAS = {
    "gpu": (Purpose.COMPILE, Purpose.CAPTURE, Purpose.LAUNCHES),
    "test": (Purpose.TESTS,),
}  #: what each is needed for


def examine(asked: Sequence[Purpose] = (Purpose.CHECK,)) -> DoctorReport:
    """Look at this machine. It never fails: what cannot be asked is a part that is missing."""
    driver = driver_present()
    parts = (python_part(), *package_parts(own_requirements(), installed_version), traces_part(), *cuda_parts(driver))
    every = (*parts, triton_part(installed_version), *tool_parts())
    folder = own_checkout()
    return report_of([replace(each, correction=as_installed(each.correction, folder)) for each in every], asked)


def report_of(parts: Iterable[MachinePart], asked: Sequence[Purpose]) -> DoctorReport:
    """The report on these parts."""
    every = tuple(parts)
    uses = tuple(Possible(use, tuple(p.name for p in every if use in p.needed and not p.is_there)) for use in Purpose)
    return DoctorReport(pipesim.__version__, str(Path(pipesim.__file__).parent), every, uses, tuple(asked))


def cuda_parts(driver: DriverPresent) -> tuple[MachinePart, ...]:
    """What a GPU is used with."""
    return nvrtc_part(), driver_part(driver), gpu_part(driver), hopper_part(driver), cupti_part()


def package_parts(needed: Iterable[Requirement] | None, installed: Installed) -> tuple[MachinePart, ...]:
    """The packages of every installation, then those of each extra; None where pipesim itself is not installed."""
    if needed is None:
        problem = "pipesim runs from its source: which packages it needs is not known"
        return (MachinePart("packages", problem),)
    every = list(needed)
    extras = dict.fromkeys(each.extra for each in every if each.extra)
    plain = [each for each in every if not each.extra]
    parts = [packages_part("packages", plain, installed, (Purpose.CHECK,), "pip install --upgrade pipesim")]
    for extra in extras:
        own = [each for each in every if each.extra == extra and each.name != _OWN]
        fix = f"pip install 'pipesim[{extra}]'"
        parts.append(packages_part(f"extra {extra}", own, installed, _EXTRAS.get(extra, ()), fix))
    return tuple(parts)


def triton_part(installed: Installed) -> MachinePart:
    """Triton, whose kernels ``launches.triton`` compiles."""
    version = installed("triton")
    if version is None:
        return MachinePart("Triton", "", "not installed", "pip install triton", (Purpose.TRITON,))
    return MachinePart("Triton", version, needed=(Purpose.TRITON,))


def own_requirements() -> tuple[Requirement, ...] | None:
    """What pipesim's metadata says; None where it is not installed."""
    try:
        return tuple(map(requirement, metadata.requires(_OWN) or ()))
    except metadata.PackageNotFoundError:
        return None


def installed_version(name: str) -> str | None:
    """The version of a package of this Python; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
