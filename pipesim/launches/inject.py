"""The library that observes processes which are not Python: built on demand from the C of this package, and kept.

Its sources are in ``pipesim/launches/observe/inject``; they need a C compiler and no header of CUDA's. The driver loads
the library in a process that has ``CUDA_INJECTION64_PATH``, and so in every one that this starts.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from pipesim.bounds import MAX_CUBIN_BYTES, MAX_RECORDS, MAX_SOURCE_BYTES, MAX_SPOOL_BYTES
from pipesim.errors import CompileError, MissingExtraError, ParameterError, PipesimError, UsageError
from pipesim.inputs import InputKind
from pipesim.launches import observe
from pipesim.launches.observe.cupti import CUPTI, cupti_libraries
from pipesim.launches.observe.limits import LIBRARY, SPOOL, Limits
from pipesim.process.files import cache_folder, write_whole

_SITE = Path(observe.__file__).with_name("site")  #: its ``sitecustomize`` begins to observe a Python process


def limits_of(patterns: Sequence[str], launches: int, nbytes: int, *, once: bool) -> Limits:
    """What a person asks to be recorded. ParameterError for a number that is not from 1 to what is read."""
    for name, value, most in (("launches", launches, MAX_RECORDS), ("bytes", nbytes, MAX_SPOOL_BYTES)):
        if not 1 <= value <= most:
            raise ParameterError(f"a limit of {value:,} {name}", correction=f"use 1 to {most:,}")
    return Limits(tuple(patterns), once, launches, nbytes)


NOT_PYTHON = "no Python process was observed; for others a C compiler and CUPTI are missing, or another tool's library"


@contextmanager
def spool_folder() -> Iterator[Path]:
    """A folder for records that no other user can read or write; it is removed with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="pipesim-launches-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def observed_environment(
    spool: Path,
    limits: Limits,
    environment: Mapping[str, str] = os.environ,
    *,
    inject: bool = False,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a command whose processes write records to ``spool``, and so do their children.

    Those that are not Python need the library, which is left out where it cannot be made, or where another tool has the
    driver load its own; with ``inject`` that is an error, as :func:`injection_environment` says. ``more``: other
    variables for them.
    """
    path = environment.get("PYTHONPATH")
    paths = [str(_SITE), *([path] if path else [])]
    others: dict[str, str] = {}
    if inject or INJECTION not in environment:
        with nullcontext() if inject else suppress(PipesimError, OSError):
            others = injection_environment(spool, limits, environment)
    mine = {**limits.to_environment(), **(more or {}), SPOOL: str(spool), "PYTHONPATH": os.pathsep.join(paths)}
    return {**environment, **others, **mine}


INJECTION = "CUDA_INJECTION64_PATH"  #: what the driver loads in cuInit
CANDIDATES = "PIPESIM_LAUNCHES_CUPTI"  #: libraries of CUPTI, one a line, of which the first that can be loaded is used
_SOURCES = Path(__file__).parent / "observe" / "inject"
_OPTIONS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
_LIBRARIES = ("-ldl",)
_SOURCE = InputKind("source of the observing library", MAX_SOURCE_BYTES, UsageError, "install pipesim again")
_BUILT = InputKind("library that was built", MAX_CUBIN_BYTES, UsageError, "remove it")
_PATIENCE = 120  #: seconds that the compiler may take; it takes one


def injection_environment(spool: Path, limits: Limits, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a process and all that it starts are observed, with records in ``spool``.

    Raises MissingExtraError without a C compiler or CUPTI, CompileError if the compiler fails, UsageError if the
    cache cannot be written.
    """
    library = str(injection_library(environment))
    return {
        INJECTION: library,
        LIBRARY: library,
        CANDIDATES: "\n".join(_loadable(environment)),
        SPOOL: str(spool.absolute()),
        **limits.to_environment(),
    }


def injection_library(environment: Mapping[str, str] = os.environ) -> Path:
    """The library, built with ``$CC`` (``cc``) if this source has not been built yet. Errors as above."""
    compiler = shlex.split(environment.get("CC", "")) or ["cc"]
    sources = {
        path.name: _SOURCE.read_bytes(path) for path in sorted(_SOURCES.iterdir()) if path.suffix in (".c", ".h")
    }
    key = hashlib.sha256(repr((sources, _OPTIONS, compiler, platform.machine())).encode()).hexdigest()[:32]
    path = cache_folder("inject", environment) / f"{key}.so"
    if not path.is_file():
        write_whole(path, _compile(compiler, [*_OPTIONS, str(_SOURCES / "inject.c"), *_LIBRARIES]), force=True)
    return path


_STAND_INS = {
    "cudart.so": ("cudart.cpp",), "libcuda.so.1": ("driver.cpp", "rest.c"), "libnvidia-ml.so.1": ("nvml.cpp",),
}  # fmt: skip


def no_gpu_environment(
    spool: Path, sizes: str, capability: int, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a program that runs without a GPU, against libraries that note its launches in ``spool``.

    ``sizes``: a line for each kernel, its name and the bytes of its parameters. ``capability``: 90 or 100. They are
    built where they were not, with ``$CC`` and the headers of CUDA below ``$CUDA_HOME``. Errors as above.
    """
    compiler, sources = shlex.split(environment.get("CC", "")) or ["cc"], _SOURCES.with_name("no_gpu")
    texts = [_SOURCE.read_bytes(path) for path in sorted(sources.iterdir()) if path.is_file()]
    key = hashlib.sha256(repr((texts, compiler, platform.machine())).encode()).hexdigest()[:32]
    folder = cache_folder("no_gpu", environment) / key
    includes = f"-I{environment.get('CUDA_HOME', '/usr/local/cuda')}/include"
    for name, files in _STAND_INS.items():
        if not (folder / name).is_file():
            words = ["-O1", "-fPIC", "-shared", includes, *(str(sources / each) for each in files)]
            write_whole(folder / name, _compile(compiler, [*words, "-lstdc++"]), force=True)
    (spool / "sizes").write_text(sizes, encoding="utf-8")
    paths = os.pathsep.join(filter(None, (str(folder), environment.get("LD_LIBRARY_PATH"))))
    preload = ":".join(filter(None, (str(folder / "cudart.so"), environment.get("LD_PRELOAD"))))
    mine = {"LD_PRELOAD": preload, "LD_LIBRARY_PATH": paths, SPOOL: str(spool)}
    known = {"PIPESIM_SIZES": str(spool / "sizes"), "PIPESIM_CC": str(capability)}
    return {**environment, **mine, **known, "PIPESIM_SMS": "148" if capability >= 100 else "132"}


def counting_library() -> str:
    """The library for this process, which counts its launches; "" where it cannot be built."""
    with suppress(PipesimError, OSError):
        return str(injection_library())
    return ""


def _compile(compiler: list[str], words: Sequence[str]) -> bytes:
    found = shutil.which(compiler[0])
    if found is None:
        raise MissingExtraError(
            "there is no C compiler, which a program that is not Python needs to be observed",
            cause=f"{compiler[0]} was not found",
            correction="install gcc or clang, or name one in CC",
        )
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "inject.so"
        command = [found, *compiler[1:], "-o", str(built), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{found} cannot be run", cause=str(error)) from error
        if done.returncode or not built.is_file():
            raise CompileError(
                f"{found} failed to build the library that observes a program:\n{done.stderr.strip()}",
                correction="name another compiler in CC",
            )
        return _BUILT.read_bytes(built)


def _loadable(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The libraries of CUPTI that may be loaded; MissingExtraError if there is none."""
    found = cupti_libraries(environment)
    for each in found:
        if Path(each).is_file():
            return found
        with suppress(OSError):
            ctypes.CDLL(each)  # a name that only the loader can find
            return found
    raise MissingExtraError(
        "CUPTI is not installed",
        cause=f"{CUPTI} names {found[0]}, which cannot be loaded" if CUPTI in environment else "",
        correction="pip install nvidia-cuda-cupti",
    )
