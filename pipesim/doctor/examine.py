"""The examination: every part of a machine, and what they make possible together.

A package index may not have pipesim, or another version of it than a checkout.
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pipesim
from hwkernels.device.presence import DriverPresent, driver_present
from pipesim.answers.views.doctor import DoctorReport, MachinePart, Possible, Purpose
from pipesim.errors import EvidenceError, MissingExtraError
from pipesim.process.system import less_than_linux

GPU_EXTRA = "pip install 'pipesim[gpu]'"
OF_DRIVER = (Purpose.CAPTURE, Purpose.LAUNCHES, Purpose.HANG)
OF_PACKAGES = (Purpose.CAPTURE, Purpose.LAUNCHES)  #: those that use the CUDA packages
_HOPPER = 9
_LEAST_PYTHON = (3, 11)
_CUDA = (13, 0)  #: what the packages of the extra are of
_BRANCH = "580"  #: of drivers, the first that supports it

Load = Callable[[str], Any]


def python_part(
    version: tuple[int, ...] = tuple(sys.version_info[:3]), executable: str = sys.executable
) -> MachinePart:
    """The interpreter that runs this."""
    least = ".".join(map(str, _LEAST_PYTHON))
    said = ".".join(map(str, version))
    if version >= _LEAST_PYTHON:
        return MachinePart("Python", f"{said} · {executable}", needed=(Purpose.CHECK,))
    return MachinePart(
        "Python", "", f"{said} is older than {least}", f"install Python {least} or newer", (Purpose.CHECK,)
    )


def system_parts() -> tuple[MachinePart, ...]:
    """What the system does less than Linux does."""
    return tuple(MachinePart("system", "", each) for each in less_than_linux())


def traces_part() -> MachinePart:
    """The recorded traces that came with pipesim."""
    from pipesim.trace.library import stored_traces, trace_folder

    try:
        folder = trace_folder()
        return MachinePart("traces", f"{len(stored_traces(folder))} recorded · {folder}", needed=(Purpose.CHECK,))
    except (EvidenceError, ImportError) as error:
        problem = str(getattr(error, "fact", error))
        return MachinePart("traces", "", problem, "pip install --force-reinstall --no-deps pipesim", (Purpose.CHECK,))


def nvrtc_part() -> MachinePart:
    """The compiler of CUDA C++."""
    from hwkernels.device.compile import nvrtc_version

    use = (Purpose.COMPILE, Purpose.CAPTURE)
    try:
        return MachinePart("NVRTC", nvrtc_version(), needed=use)
    except MissingExtraError as error:
        return MachinePart("NVRTC", "", error.cause or error.fact, GPU_EXTRA, use)


def driver_part(found: DriverPresent) -> MachinePart:
    """The NVIDIA driver."""
    cuda = f"CUDA {found.cuda[0]}.{found.cuda[1]}"
    if found.problem:
        correction = (
            "start the container with its GPUs (docker run --gpus all): the machine has a driver"
            if found.module and found.cuda == (0, 0)
            else f"on a machine with an NVIDIA GPU: install a driver of branch {_BRANCH} or newer"
        )
        return MachinePart("driver", "", found.problem, correction, OF_DRIVER)
    said = f"{found.module} ({cuda})" if found.module else cuda
    if found.cuda < _CUDA:
        problem = f"{said}: the CUDA packages need a driver for CUDA {_CUDA[0]}.{_CUDA[1]}"
        return MachinePart("driver", "", problem, f"install a driver of branch {_BRANCH} or newer", OF_PACKAGES)
    return MachinePart("driver", said, needed=OF_DRIVER)


def gpu_part(found: DriverPresent) -> MachinePart:
    """The GPUs, the first of which ``capture`` uses."""
    names = [f"{each.name} (sm_{each.capability[0]}{each.capability[1]})" for each in found.gpus]
    if not names:
        return MachinePart(
            "GPU", "", "the driver sees none" if not found.problem else "there is no driver", needed=OF_DRIVER
        )
    return MachinePart("GPU", " · ".join(names), needed=OF_DRIVER)


def hopper_part(found: DriverPresent) -> MachinePart:
    """What pipesim's own kernels are built for."""
    if found.gpus and found.gpus[0].capability[0] == _HOPPER:
        return MachinePart("Hopper", found.gpus[0].name, needed=(Purpose.CAPTURE,))
    problem = f"{found.gpus[0].name} runs no code for sm_90a" if found.gpus else "there is no GPU"
    return MachinePart("Hopper", "", problem, "capture on an H100 or H200; check needs no GPU", (Purpose.CAPTURE,))


def cupti_part(load: Load = ctypes.CDLL, libraries: Sequence[str] | None = None) -> MachinePart:
    """What ``launches`` catches launches with."""
    from pipesim.launches.observe.cupti import cupti_libraries

    problem = "libcupti was not found"
    for each in cupti_libraries() if libraries is None else libraries:
        try:
            load(each)
        except OSError as error:
            problem = str(error)
        else:
            return MachinePart("CUPTI", each, needed=(Purpose.LAUNCHES,))
    return MachinePart("CUPTI", "", problem, GPU_EXTRA, (Purpose.LAUNCHES,))


def dumps_part(driver: DriverPresent) -> MachinePart:
    """What the driver needs to write a core dump, beside itself."""
    from pipesim.hang.surroundings import missing_of_driver, missing_of_system

    fact, correction = next(chain(missing_of_system(), missing_of_driver() if driver.gpus else ()), ("", ""))
    return MachinePart("core dumps", "" if fact else "can be written and asked for", fact, correction, (Purpose.HANG,))


def tool_part(
    name: str, programs: Sequence[str], purpose: str, correction: str, find: Callable[[str], str | None]
) -> MachinePart:
    """A program of others that one purpose alone needs: the first of ``programs`` that is there."""
    found = next((path for path in map(find, programs) if path), None)
    return MachinePart(
        name,
        f"{found} · {purpose}" if found else "",
        "" if found else f"not found: {purpose}",
        correction * (not found),
    )


def tool_parts(find: Callable[[str], str | None] = shutil.which) -> tuple[MachinePart, ...]:
    """The programs of others."""
    compiler = os.environ.get("CC", "cc").split() or ["cc"]
    return (
        tool_part(
            "C compiler", [compiler[0], "gcc", "clang"], "launches of programs that are not Python",
            "install gcc or clang, or name one in CC", find,
        ),
        tool_part(
            "ptxas", ["ptxas", *_toolkit("ptxas")], "names what is wrong with PTX that cannot be read",
            "install the CUDA toolkit, or name its folder in CUDA_HOME", find,
        ),
        tool_part(
            "SPIN", ["spin"], "runs what export --to promela writes", "install spin (Debian: apt install spin)", find,
        ),
    )  # fmt: skip


def _toolkit(program: str) -> list[str]:
    return [str(Path(os.environ[name], "bin", program)) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]


_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*([^;]*)(?:;(.*))?")
_BOUND = re.compile(r"\s*(>=|<)\s*(\d+(?:\.\d+)*)\s*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")

_NAMED = 4  #: packages that are listed as missing

Installed = Callable[[str], str | None]  #: the version of a package, None if it is not installed


@dataclass(frozen=True)
class Requirement:
    """A package, the versions that will do, and the extra that it belongs to ("" for every installation)."""

    name: str
    bounds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    extra: str = ""

    def allows(self, version: str) -> bool:
        """Whether this version will do; one that is not written in numbers will."""
        number = numbers(version)
        return not number or all(number >= least if how == ">=" else number < least for how, least in self.bounds)

    def __str__(self) -> str:
        bounds = ",".join(f"{how}{'.'.join(map(str, version))}" for how, version in self.bounds)
        return f"{self.name}{bounds}"


def requirement(text: str) -> Requirement:
    """``numpy>=1.26; extra == "gpu"``."""
    found = _REQUIREMENT.fullmatch(text.strip())
    assert found is not None, text
    bounds = tuple((each[1], numbers(each[2])) for part in found[2].split(",") if (each := _BOUND.fullmatch(part)))
    extra = _EXTRA.search(found[3] or "")
    return Requirement(found[1], tuple(sorted(bounds, reverse=True)), extra[1] if extra else "")


def numbers(version: str) -> tuple[int, ...]:
    """``1.26.4.dev0`` as (1, 26, 4)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def packages_part(
    name: str, needed: Iterable[Requirement], installed: Installed, use: tuple[Purpose, ...], fix: str
) -> MachinePart:
    """Several packages that are installed together: by ``fix``, if one is missing or of another version."""
    have, lacking = [], []
    for each in needed:
        version = installed(each.name)
        if version is None:
            lacking.append(f"{each} is not installed")
        elif not each.allows(version):
            lacking.append(f"{each} is needed, and {version} is installed")
        else:
            have.append(f"{each.name} {version}")
    more = len(lacking) - _NAMED
    said = [*lacking[:_NAMED], f"{more} more"] if more > 1 else lacking  # those of the tests are twenty
    return MachinePart(name, " · ".join(have), "; ".join(said), fix if lacking else "", use)


_ITSELF = re.compile(r"'?\bpipesim\b(\[\w+\])?'?$")  #: the last word of a command of pip, with its extra


def checkout(record: str | None) -> Path | None:
    """The folder that pipesim was installed from, by ``direct_url.json`` (PEP 610); None if there is none."""
    try:
        url = urlsplit(str(json.loads(record or "null")["url"]))
        folder = Path(unquote(url.path))
        return folder if url.scheme == "file" and (folder / "pyproject.toml").is_file() else None
    except (ValueError, TypeError, KeyError, OSError):
        return None


def own_checkout() -> Path | None:
    """That of the pipesim that runs."""
    try:
        return checkout(metadata.distribution("pipesim").read_text("direct_url.json"))
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def as_installed(command: str, folder: Path | None) -> str:
    """A command such as ``pip install 'pipesim[gpu]'`` with the folder in place of the name, if there is one."""
    if folder is None or not command.startswith("pip install "):
        return command
    return _ITSELF.sub(lambda found: shlex.quote(f"{folder}{found[1] or ''}"), command)


_OWN = "pipesim"
_EXTRAS = {
    "gpu": (Purpose.COMPILE, Purpose.CAPTURE, Purpose.LAUNCHES),
    "test": (Purpose.TESTS,),
}  #: what each is needed for


def examine(asked: Sequence[Purpose] = (Purpose.CHECK,)) -> DoctorReport:
    """Look at this machine. It never fails: what cannot be asked is a part that is missing."""
    driver = driver_present()
    parts = (
        python_part(),
        *system_parts(),
        *package_parts(own_requirements(), installed_version),
        traces_part(),
        *cuda_parts(driver),
    )
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
    return nvrtc_part(), driver_part(driver), gpu_part(driver), hopper_part(driver), cupti_part(), dumps_part(driver)


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
