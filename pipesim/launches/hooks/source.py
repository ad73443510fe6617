"""``pipesim check kernel.py:function``: a function of Triton, compiled for arguments that are given or guessed."""

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import groupby
from math import prod
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

from pipesim.errors import CompileError, ParameterError
from pipesim.launches.files.embedded_ptx import FoundKernel
from pipesim.launches.found import FoundQuestion, LaunchBeside
from pipesim.launches.guess import OTHER, SIZE, grid_words, guessed_grid
from pipesim.launches.offline import triton
from pipesim.protocol_files import module_of
from pipesim.protocol_process import said_of
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.settings import BOX, setting_words

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  #: of Triton's compiler
_MAP = r"{0}\.(load|store|gather|scatter|block_type|block_shape|nbytes|layout)|tma\.\w+\({0}\b"
_ADDRESS = r"(load|store|atomic_\w+|make_\w+)\({0}\b|[=,(] ?{0} \+|\b{0} \+="
_NUMBER = r"[%/<>*-] {0}\b|\b{0} [%/<>*-]|(cdiv|range)\([^()]*\b{0}\b|\b{0}\.to\((?!tl\.pointer)"


def compiled_question(target: str, functions: Sequence[str], arch: str, sets: Sequence[str], how: Any) -> FoundQuestion:
    """The kernel that a command line names, in its launch. ``functions``: what it may be, ``how``: it is checked.

    ParameterError with all values that are missing; CompileError with what Triton says; else as ``said_of`` raises.
    """
    file, arch = target[: target.rindex(".py") + 3], arch or "sm_90a"
    if len(functions) > 1:
        raise ParameterError(f"{file} has several kernels", correction=f"add :{' or :'.join(functions)}")
    name, ptx, launch, other, guessed, *mine = said_of(file, __name__, compiled.__name__, functions[0], arch, *sets)
    words = tuple(word for each in mine for word in setting_words(each))
    kernel = FoundKernel(name, ptx, Path(file).name, Path(file), arch)
    said = f"{guessed} guessed" if guessed else "as given"
    known = LaunchBeside(file, launch, is_launch=True, said=said, guessed=guessed, other=other, words=words)
    return FoundQuestion(target, kernel, known, tuple(each for each in sets if each not in mine), *how)


def compiled(path: Path, name: str, arch: str, *sets: str) -> list[str]:
    """In the process of the file: name, PTX, launch file, one of other guesses, what is guessed, the ``sets`` used."""
    kernel: Any = vars(module_of(path)).get(name)
    given, function = {each.removeprefix(BOX).partition("=")[0]: each for each in sets}, kernel
    named, others, tuned = dict[str, Any](), dict[str, Any](), set[str]()
    guesses, used, missing = list[str](), list[str](), list[str]()

    def take(key: str) -> Any:
        used.append(given.pop(key))
        text = used[-1].partition("=")[2]
        if used[-1].startswith(BOX):
            others[key] = _descriptor(function, text, OTHER)
            return _descriptor(function, text, SIZE)
        return _value(text)

    try:
        while not hasattr(function, "params"):
            for config in getattr(function, "configs", ())[:1]:
                config.kwargs.update({key: take(key) for key in config.kwargs if key in given})
                tuned |= config.all_kwargs().keys()
                guesses.append(f"configuration 1 of {len(function.configs)}")
            tuned |= {*getattr(function, "values", ())}  # of heuristics
            function = function.fn
        strides, code = _strides(function.arg_names), ast.unparse(ast.parse(dedent(function.src)))
        for param in function.params:
            key, use = param.name, param.annotation_type or _use(param.name, code)
            if key in given:
                named[key] = take(key)
            elif param.is_constexpr and not (param.has_default or key in tuned):
                missing.append(f"--set {key}=VALUE")
            elif use == "box" and not param.has_default:
                missing.append(f"--box {key}=fp16:SIZES")
            elif not (param.has_default or key in tuned):
                power = strides.get(key, 1)
                number = "1.0" if "f" in use else "1" if use == "u1" else str(SIZE**power)
                guesses.append(f"{key} {use if use.startswith('*') else number}")
                named[key] = _value(guesses[-1].rpartition(" ")[2])
                others |= {key: OTHER**power} if named[key] == SIZE**power else {}
        named |= {key: take(key) for key in _OPTIONS if key in given and key not in tuned}
        made = None if missing else triton(kernel, grid=(1,), arch=arch, **named)
    except Exception as error:
        said, place = (
            f"{type(error).__name__}: {error}"[-2000:],
            f"{path}:{getattr(function, 'starting_line_number', 1)}",
        )
        fact = f"Triton does not compile {name} for {', '.join(guesses) or 'these values'}"
        raise CompileError(fact, place=place, cause=said, correction="give others with --set or --box") from error
    if made is None:
        words = [word for each in used for word in setting_words(each)] + missing
        raise ParameterError(f"{name} needs values", correction=f"pipesim check {path}:{name} {' '.join(words)}")
    grid = guessed_grid(made.ptx, made.launch.cluster)
    guesses += [f"{each} {'x'.join(map(str, named[each].shape))}" for each in named if hasattr(named[each], "shape")]
    guesses += [] if "grid" in given else [grid_words(grid)]
    by_others, text = "", launch_json(replace(made.launch, grid=grid))
    with suppress(Exception):  # it is asked about where the kernel is refuted alone
        other = triton(kernel, grid=(1,), arch=arch, **named | others)
        larger = guessed_grid(made.ptx, made.launch.cluster, OTHER)
        by_others = launch_json(replace(other.launch, grid=larger)) if other.ptx == made.ptx else ""
    return [made.name, made.ptx, text, by_others, ", ".join(guesses), *used]


def _value(text: str) -> Any:
    """A tensor, a number, a truth value, None, a type of ``triton.language``, or else the text."""
    import triton.language as tl

    if text.startswith("*"):
        kind = tl.dtype(re.sub(r"^(u?)i?(?=\d)", r"\1int", text.removeprefix("*k").removeprefix("*")))
        kind.itemsize = kind.primitive_bitwidth // 8
        return SimpleNamespace(dtype=kind, data_ptr=lambda: 0)
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    return getattr(tl, text.removeprefix("tl."), text)


def _descriptor(function: Any, text: str, size: int) -> Any:
    """A tensor descriptor; ``text``: the type, and the sizes of a block, the innermost first, as of other boxes."""
    kind, _, sizes = text.partition(":")
    block = [int(each) for each in reversed(sizes.split(","))]
    shape = [max(size, each) for each in block]
    given = _value(f"*{kind}"), shape, [prod(shape[n + 1 :]) for n in range(len(shape))], block
    if type(function).__name__ != "GluonJITFunction":
        return import_module("triton.tools.tensor_descriptor").TensorDescriptor(*given)
    gluon = import_module("triton.experimental.gluon.nvidia.hopper")
    return gluon.TensorDescriptor(*given, gluon.NVMMASharedLayout.get_default_for(block, given[0].dtype))


def _strides(names: Sequence[str]) -> dict[str, int]:
    """Of several parameters as ``stride_am, stride_ak`` those of a dense tensor, as powers of a size: the last is 1."""
    groups = [list(group) for key, group in groupby(names, lambda name: name[:-1]) if "stride" in key]
    return {name: n for group in groups if len(group) > 1 for n, name in enumerate(reversed(group))}


def _use(name: str, code: str) -> str:
    """What a parameter is, by its name and how it is used: a descriptor (``box``), ``*fp16``, or else a number."""
    if "desc" in name or re.search(_MAP.format(rf"\b{name}"), code):
        return "box"
    is_address = re.search(_ADDRESS.format(name), code) and not re.search(_NUMBER.format(name), code)
    return "*fp16" * ("ptr" in name or bool(is_address))
