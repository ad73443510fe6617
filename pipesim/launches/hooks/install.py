"""Hooks in the compilers of this process, which write what they know of a kernel into a folder: one file of JSON.

Nothing in here may harm the program: what cannot be noted is left out, and only a refutation is raised.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from pipesim.errors import RefutedKernelError
from pipesim.launches.hooks.checker import ANSWER, JOB, LONGEST, Checker
from pipesim.launches.observe.compilers import watch_imports

MODE = "PIPESIM"  #: ``check`` or ``strict``: what the environment asks for
FOLDER = "PIPESIM_COMPILED"  #: where kernels are left, for the processes that this one starts
_OFF = ("", "0", "off")
_PATIENCE = 10 * LONGEST  #: of a compiler that waits for its turn
_MOST_VALUES = 1 << 16  #: of a tensor that may decide about control flow
_DEEP = 24  #: frames from a compiler's hook to the call that launches


class Compiled:
    """Where kernels that were compiled are left. ``strict``: who leaves one waits for its verdict."""

    def __init__(self, folder: Path, *, strict: bool) -> None:
        self.folder, self.strict = folder, strict

    def note(self, kernel: Mapping[str, Any], ptx: str) -> None:
        """Leave a kernel, unless it was left before. RefutedKernelError if this is strict and it is refuted."""
        key = hashlib.sha256(f"{kernel['name']} {ptx}".encode()).hexdigest()[:32]
        job = self.folder / f"{key}{JOB}"
        with suppress(OSError, TypeError, ValueError):
            if not job.exists():
                part = self.folder / f"{key}.{os.getpid()}.{time.monotonic_ns()}"
                part.write_text(json.dumps({**kernel, "ptx": ptx}), encoding="utf-8")
                part.replace(job)
        if self.strict and job.exists():
            self._wait(job.with_suffix(ANSWER))

    def _wait(self, answer: Path) -> None:
        end = time.monotonic() + _PATIENCE
        while not answer.exists() and self.folder.is_dir() and time.monotonic() < end:
            time.sleep(0.01)
        with suppress(OSError, ValueError):
            said = json.loads(answer.read_text(encoding="utf-8"))
            if said["verdict"] == "refuted":
                raise RefutedKernelError(said["said"], place=said["place"], correction=said["correction"])


def start_by_environment() -> None:
    """As ``PIPESIM`` asks; called where Python starts, so that no error may come out of it."""
    mode = os.environ.get(MODE, "")
    if mode in ("check", "strict"):
        package = sys.modules["pipesim"]  # imported before pytest, which warns that it cannot change its assertions
        package.__doc__ = f"{package.__doc__}\nPYTEST_DONT_REWRITE\n"
        try:
            install(strict=mode == "strict")
        except Exception as error:  # noqa: BLE001  # the program is not ours
            sys.stderr.write(f"pipesim: kernels are not checked: {error}\n")
    elif mode not in _OFF:
        sys.stderr.write(f"pipesim: PIPESIM={mode[:20]} is not known: use check or strict\n")


def install(*, strict: bool = False) -> None:
    """Check every kernel that Triton, Gluon, Inductor or the CuTe DSL compiles from now on, in the background.

    A refuted kernel is a CompiledKernelWarning at the line of its source, once. ``strict``: the compiler waits
    for the verdict, and raises a RefutedKernelError. The same as ``PIPESIM=check`` and ``PIPESIM=strict``, which also
    hold for the Python processes that this one starts. A second call changes nothing but ``strict``.
    """
    os.environ[MODE] = "strict" if strict else "check"
    if _installed:
        _installed[0].strict = strict
        return
    owner, _, folder = os.environ.get(FOLDER, "").partition(":")
    if owner and owner != str(os.getpid()) and Path(folder).is_dir():
        compiled = Compiled(Path(folder), strict=strict)
    else:
        compiled = Compiled(Checker().folder, strict=strict)
        os.environ[FOLDER] = f"{os.getpid()}:{compiled.folder}"
    _installed.append(compiled)
    watch_imports(changes(compiled))


_installed: list[Compiled] = []


def changes(compiled: Compiled) -> dict[str, Callable[[Any], None]]:
    """What is done with the modules of compilers when they are imported."""
    return {
        "triton.knobs": lambda module: _listen(module, compiled),
        "cutlass.base_dsl.env_manager": lambda module: _keep_ptx(module, compiled.folder / "cute"),
        "cutlass.cutlass_dsl.cutlass": lambda module: _watch_cute(module, compiled),
    }


def _listen(knobs: Any, compiled: Compiled) -> None:
    """``triton.knobs``: Triton calls its listener of compilations, also for what is in its cache. Others are kept."""
    if not hasattr(knobs.compilation, "listener"):
        sys.stderr.write("pipesim: this Triton calls nothing when it has compiled: its kernels are not checked\n")
        return
    before = knobs.compilation.listener

    def listener(**given: Any) -> None:
        if before is not None:
            before(**given)
        noted = None
        with suppress(Exception):  # of a Triton that is not known
            noted = _of_triton(given["src"], given["metadata"], given["metadata_group"])
        if noted is not None:
            compiled.note(*noted)

    knobs.compilation.listener = listener


def _of_triton(source: Any, metadata: Mapping[str, Any], files: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    path = next(path for name, path in files.items() if name.endswith(".ptx"))
    function = getattr(source, "fn", None)
    launch = _launch_of(function, sys._getframe(1))  # noqa: SLF001  # who calls the kernel has its arguments
    names = getattr(function, "arg_names", [])
    signature, ctas = getattr(source, "signature", {}), metadata.get("num_ctas", 1)
    kernel = {
        "name": metadata["name"],
        "file": getattr(getattr(getattr(function, "fn", None), "__code__", None), "co_filename", None),
        "line": getattr(function, "starting_line_number", 1),
        "kinds": [[str(name), kind] for name, kind in zip(names, signature.values(), strict=False)],
        "values": [_value(launch[0].get(name)) for name in names] if launch else None,
        "grid": launch and [launch[1][0] * ctas, *launch[1][1:]],
        "cluster": [ctas],
        "block": [32 * metadata["num_warps"]],
        "shared": metadata.get("shared", 0),
        "maps": metadata.get("tensordesc_meta"),
    }
    return kernel, Path(path).read_text(encoding="utf-8")


def _launch_of(function: Any, frame: FrameType | None) -> tuple[Mapping[str, Any], list[int]] | None:
    """The arguments and the grid of the call for which Triton compiles; None where nothing is launched."""
    for _ in range(_DEEP):
        if frame is None or (frame.f_code.co_name == "run" and "bound_args" in frame.f_code.co_varnames):
            break
        frame = frame.f_back
    if frame is None or frame.f_locals.get("self") is not function:
        return None
    arguments, grid = frame.f_locals["bound_args"], frame.f_locals["grid"]
    grid = grid(arguments) if callable(grid) else grid
    return None if grid is None else (arguments, ([int(each) for each in grid] + [1, 1])[:3])


def _value(value: Any) -> Any:
    """An argument as JSON has it: a number, the integers of a tensor on the host, the sizes of a descriptor."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    if hasattr(value, "strides") and hasattr(value, "shape"):
        sizes = {"shape": [int(each) for each in value.shape], "strides": [int(each) for each in value.strides]}
        return sizes | {name: getattr(value, name) for name in ("padding", "round_f32_to_tf32") if hasattr(value, name)}
    if str(getattr(value, "device", "")) == "cpu" and "int" in str(value.dtype) and value.numel() <= _MOST_VALUES:
        return {"dtype": str(value.dtype), "contents": value.flatten().tolist()}
    return {}


_SWITCHES = {"CUTE_DSL_KEEP": "ptx", "CUTE_DSL_LINEINFO": "1"}


def _keep_ptx(module: Any, folder: Path) -> None:
    """``cutlass.base_dsl.env_manager``: the CuTe DSL writes its PTX to a folder, unless the program says where."""
    older = {} if hasattr(module, "_KEEP_ALL_TOKENS") else {"CUTE_DSL_KEEP_PTX": "1"}
    if "CUTE_DSL_DUMP_DIR" not in os.environ:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.environ["CUTE_DSL_DUMP_DIR"] = str(folder)
    for name, value in (_SWITCHES | older).items():
        os.environ.setdefault(name, value)


def _watch_cute(module: Any, compiled: Compiled) -> None:
    """``cutlass.cutlass_dsl.cutlass``: what its one function compiles, with what the module said before."""
    kind = module.CutlassBaseDSL
    function = kind.compile_and_cache

    def compile_and_cache(self: Any, module: Any, *args: Any, **named: Any) -> Any:
        kernels: dict[str, dict[str, Any]] = {}
        with suppress(Exception):  # of a CuTe DSL that is not known
            kernels = dict(_cute_kernels(module))
        made = function(self, module, *args, **named)
        ptx, code = "", getattr(named.get("funcBody"), "__code__", None)
        with suppress(Exception):
            ptx = Path(self.compile_options.full_ptx_path).read_text(encoding="utf-8").rstrip("\0")
        for name, kernel in kernels.items() if ptx else ():
            place = {"file": code and code.co_filename, "line": code.co_firstlineno if code else 1}
            compiled.note({"name": name, **place, **kernel}, ptx)
        return made

    kind.compile_and_cache = compile_and_cache


_FACTS = "cutlass_launch_facts"
_SHAPE = re.compile(r"exact_(\w+)_dim = array<i64: ([\d, ]+)>")
_BOX = re.compile(r"tiled_tma_\w+<(?:sm_\w+, )?(\w+), copy_bits = \d+, tma_gbasis = <\"\(([\d,()]+)\):")


def _cute_kernels(module: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """Of each kernel of a module the shape of its launch, where it is constant, and the boxes of its tensor maps."""
    for outer in module.body.operations:
        if not outer.regions or not outer.regions[0].blocks:
            continue
        for each in outer.regions[0].blocks[0].operations:
            if each.operation.name.endswith(".kernel") or "cute.kernel" in each.attributes:
                said = str(each.attributes["function_type"])
                facts = str(each.attributes[_FACTS]) if _FACTS in each.attributes else ""
                shapes = {name: _numbers(sizes) for name, sizes in _SHAPE.findall(facts)}
                boxes = [(element, _numbers(box)) for element, box in _BOX.findall(said)]
                yield each.attributes["sym_name"].value, {**shapes, "boxes": boxes}


def _numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", text)]
