"""NVRTC to a cubin, with a cache on disk. Needs the ``gpu`` extra, but neither a driver nor a GPU.

The sources are a kernel's ``.cu``, every header beside it and, in a folder of this package, the package's own headers.
They are handed to NVRTC by value, so that a kernel's hash is the same wherever pipesim is installed.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwkernels.device.sources import HEADERS, PACKAGE, PTX_HEADERS, RECORDER, headers
from pipesim.bounds import MAX_CUBIN_BYTES, MAX_SOURCE_BYTES
from pipesim.errors import CompileError, MissingExtraError, UsageError
from pipesim.inputs import InputKind
from pipesim.process.files import cache_folder, write_whole

_ENTRY = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(')
_PARENTHESES = r"\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)"
#: Possessive: a text of many underscores could be divided into attributes in very many ways.
_ATTRIBUTE = rf"(?:__\w++(?<=__)\s*+(?:{_PARENTHESES}\s*+)?+|static\s++|inline\s++)*+"
_KERNEL = re.compile(rf"__global__\s+{_ATTRIBUTE}void\s+{_ATTRIBUTE}(\w+)\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_MAGIC = b"pipesim-cubin-1\n"
_OBSERVED = "PIPESIM_LAUNCHES_SPOOL"  #: set in a process whose launches are caught: the PTX is had where NVRTC runs
SOURCE = InputKind("CUDA source", MAX_SOURCE_BYTES, UsageError, "give a smaller one")
_ENTRY_FILE = InputKind("entry of the compile cache", MAX_CUBIN_BYTES, UsageError, "remove it")


@dataclass(frozen=True)
class CompiledKernel:
    """A compiled kernel. ``kernel_hash`` is of all sources, the options and the NVRTC version; ``log`` is NVRTC's."""

    cubin: bytes
    log: str
    kernel_hash: str
    options: tuple[str, ...]
    nvrtc: str
    entry: str


def compile_cubin(source: Path, defines: Mapping[str, int], arch: str = "sm_90a") -> CompiledKernel:
    """Compile ``source``, which has one ``extern "C"`` kernel, with ``-D`` of each of ``defines``.

    Raises CompileError with the whole log, and MissingExtraError if NVRTC is not installed.
    """
    nvrtc = _nvrtc()
    version = ".".join(str(part) for part in _nvrtc_values(nvrtc, nvrtc.nvrtcVersion()))
    options = (f"--gpu-architecture={arch}", "--std=c++17", *(f"-D{n}={defines[n]}" for n in sorted(defines)))
    sources = _sources(source)
    entry = _entry(source, sources[source.name])
    key = _hash(source.name, sources, options, version)
    path = cache_folder("cubin") / f"{key}.cubin"
    cached = None if os.environ.get(_OBSERVED) else _read_cache(path)
    if cached is None:
        cached = _run_nvrtc(nvrtc, source.name, sources, options)[:2]
        _write_cache(path, *cached)
    return CompiledKernel(cached[0], cached[1], key, options, version, entry)


def compile_ptx(source: Path, defines: Mapping[str, int], arch: str = "sm_90a") -> str:
    """The PTX of the kernel of :func:`compile_cubin`, with the source line of every instruction.

    Raises CompileError with the whole log, and MissingExtraError if NVRTC is not installed.
    """
    nvrtc = _nvrtc()
    macros = (f"-D{n}={defines[n]}" for n in sorted(defines))
    options = (f"--gpu-architecture={arch}", "--std=c++17", "--generate-line-info", *macros)
    return _run_nvrtc(nvrtc, source.name, _sources(source), options, ptx=True)[0].rstrip(b"\0").decode()


def compile_source(
    source: Path, defines: Mapping[str, str], options: Sequence[str] = (), entry: str = "", arch: str = "sm_90a"
) -> CompiledKernel:
    """Compile a user's kernel: headers are read where they lie, so nothing is taken from the cache.

    ``options`` go to NVRTC as they are; headers are looked for there, then beside the source, then beside
    ``recorder.cuh``. ``entry`` names the kernel as C++ does (``name``, ``space::name<4>``); it may be left out if the
    file has one. ``kernel_hash`` is of the source, the options, the NVRTC version and the machine code. Raises
    CompileError with the whole log, UsageError where the entry is not clear, MissingExtraError without NVRTC.
    """
    nvrtc = _nvrtc()
    version = nvrtc_version()
    standard = () if any("-std" in option for option in options) else ("--std=c++17",)
    said = (f"--gpu-architecture={arch}", *standard, *(f"-D{n}={defines[n]}" for n in sorted(defines)), *options)
    folders = tuple(f"--include-path={folder}" for folder in (source.parent.resolve(), RECORDER, PTX_HEADERS))
    text = SOURCE.read_bytes(source)
    name = entry or _only_kernel(source, text)
    cubin, log, lowered = _run_nvrtc(nvrtc, source.name, {source.name: text}, (*said, *folders), name)
    key = _hash(source.name, {source.name: text, "cubin": cubin}, said, version)
    return CompiledKernel(cubin, log, key, said, version, lowered)


def compile_user_ptx(source: Path, options: Sequence[str], entry: str, arch: str) -> str:
    """The PTX of a user's kernels by NVRTC, with source lines; ``entry``: a template's, as C++ writes it. As above."""
    folders = (f"--include-path={folder}" for folder in (source.parent.resolve(), PTX_HEADERS))
    said = (f"--gpu-architecture={arch}", "--std=c++17", "--generate-line-info", *options, *folders)
    sources = {source.name: SOURCE.read_bytes(source)}
    return _run_nvrtc(_nvrtc(), source.name, sources, said, entry, ptx=True)[0].rstrip(b"\0").decode()


def _only_kernel(source: Path, text: bytes) -> str:
    """The name of the kernel of a file that has one. UsageError if it has none or several."""
    names = sorted(set(_KERNEL.findall(_COMMENT.sub(" ", text.decode(errors="replace")))))
    if len(names) == 1:
        return str(names[0])
    raise UsageError(
        f"{source.name} has {len(names)} kernels" if names else f"no kernel was found in {source.name}",
        place=str(source),
        cause=f"they are {', '.join(names)}" if names else "it may be defined by a macro or in a header",
        correction=f"name the one to launch: --entry {names[0] if names else 'NAME'}",
    )


def nvrtc_version() -> str:
    """The version of the compiler, as ``13.0``. MissingExtraError if it is not installed."""
    nvrtc = _nvrtc()
    return ".".join(str(part) for part in _nvrtc_values(nvrtc, nvrtc.nvrtcVersion()))


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library, which is a package of its own
    except (ImportError, RuntimeError) as error:
        raise MissingExtraError(
            "NVRTC, which compiles the kernels, is not installed",
            cause=str(error).splitlines()[0] if str(error) else "",
            correction="pip install 'pipesim[gpu]'",
        ) from error
    return nvrtc


def _sources(source: Path) -> dict[str, bytes]:
    """The kernel's file and all headers that it can include, by name; one beside it hides the package's."""
    ours = headers() if PACKAGE in source.resolve().parents else ()
    beside = [path for path in source.parent.iterdir() if path.suffix in HEADERS]
    found = {path.name: path for path in (*ours, *beside)}
    return {source.name: SOURCE.read_bytes(source)} | {name: SOURCE.read_bytes(found[name]) for name in sorted(found)}


def _entry(source: Path, text: bytes) -> str:
    names = _ENTRY.findall(text.decode())
    if len(names) != 1:
        raise CompileError(f'{source.name} has {len(names)} extern "C" kernels; there must be one', place=str(source))
    return str(names[0])


def _hash(name: str, sources: Mapping[str, bytes], options: tuple[str, ...], version: str) -> str:
    files = {file: hashlib.sha256(text).hexdigest() for file, text in sources.items()}
    document = json.dumps({"kernel": name, "files": files, "options": options, "nvrtc": version}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def _nvrtc_values(nvrtc: Any, result: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of an NVRTC call's result. Raises CompileError if the call failed."""
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC failed: {status.name}")
    return tuple(values)


def _run_nvrtc(
    nvrtc: Any,
    name: str,
    sources: Mapping[str, bytes],
    options: tuple[str, ...],
    entry: str = "",
    *,
    ptx: bool = False,
) -> tuple[bytes, str, str]:
    """Cubin (or PTX), log, and what the cubin calls the kernel that C++ calls ``entry`` (if one is named)."""
    headers = [file for file in sources if file != name]
    (program,) = _nvrtc_values(
        nvrtc,
        nvrtc.nvrtcCreateProgram(
            sources[name],
            name.encode(),
            len(headers),
            [sources[file] for file in headers],
            [file.encode() for file in headers],
        ),
    )
    lowered = b""
    try:
        if entry:
            _nvrtc_values(nvrtc, nvrtc.nvrtcAddNameExpression(program, entry.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        (size,) = _nvrtc_values(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
        buffer = bytearray(size)
        _nvrtc_values(nvrtc, nvrtc.nvrtcGetProgramLog(program, buffer))
        log = bytes(buffer).rstrip(b"\0").decode(errors="replace").strip()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"NVRTC rejected {name} ({status.name}) with {' '.join(options)}:\n{log}")
        size_of, get = (
            (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if ptx else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        )
        (size,) = _nvrtc_values(nvrtc, size_of(program))
        code = bytearray(size)
        _nvrtc_values(nvrtc, get(program, code))
        if entry:
            (lowered,) = _nvrtc_values(nvrtc, nvrtc.nvrtcGetLoweredName(program, entry.encode()))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return bytes(code), log, lowered.decode()


def _read_cache(path: Path) -> tuple[bytes, str] | None:
    """Cubin and log of a cache entry, or None if there is none or its checksum does not fit."""
    try:
        content = _ENTRY_FILE.read_bytes(path)
    except UsageError:
        return None
    header = len(_MAGIC) + 32
    body = content[header:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : header] != hashlib.sha256(body).digest():
        return None
    end = 4 + int.from_bytes(body[:4], "little")
    try:
        return (body[end:], body[4:end].decode()) if len(body) > end else None
    except UnicodeDecodeError:  # whoever wrote it knows how to make a checksum
        return None


def _write_cache(path: Path, cubin: bytes, log: str) -> None:
    """Write an entry. A cache that cannot be written only costs time, so that is not an error."""
    text = log.encode()
    body = len(text).to_bytes(4, "little") + text + cubin
    with suppress(UsageError):
        write_whole(path, _MAGIC + hashlib.sha256(body).digest() + body, force=True)
