"""CUDA and Mojo sources, compiled by what this machine has to what has their PTX; and the launches written in them."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hwkernels.device.compile import SOURCE, compile_user_ptx
from pipesim.errors import CompileError, MissingExtraError

_WRONG = re.compile(r"^(.+?)[(:](\d+)(?::\d+)?\)?: (?:\w+ )?error:? (.*)$", re.MULTILINE)
_LAUNCH = r"\b{}\s*(?:<[^;{{}}]*?>)?\s*<<<([^;]*?)>>>\s*\("
_CONSTANT = re.compile(r"(?:#define\s+(\w+)\s+|const(?:expr)?\s+(?:\w+\s+)+?(\w+)\s*=\s*)\(?(\d+)\)?\s*(?:;|\n)")
_PARTS = re.compile(r"(?:[^,()]|\([^()]*\))+")


def ptx_source(source: Path, arch: str, options: Sequence[str], names: Sequence[str], folder: Path) -> Path:
    """A file in ``folder`` that has the PTX of a ``.cu`` or ``.mojo`` source: PTX, or a program with it.

    ``names``: kernels of templates as C++ writes them, ``f<128>``. nvcc, or NVRTC where it is not installed; mojo.
    CompileError with the place of what is wrong; MissingExtraError without a compiler.
    """
    text = SOURCE.read_text(source)
    arch = arch or ("sm_100a" if "tcgen05" in text else "sm_90a")
    file, made = source.resolve(), folder / f"{source.stem}.ptx"
    if odd := (set('"$`\\\n') - {os.sep}) & {*str(file), *str(made)}:
        raise CompileError(f"{source} is not compiled", cause=f"nvcc gives a shell its name, with {min(odd)!r}")
    instances = [each for each in names if "<" in each]
    if source.suffix == ".mojo":
        program = folder / "program.out"
        _run("mojo", ["build", f"--target-accelerator={arch}", *options, str(file), "-o", str(program)])
        return program
    if shutil.which("nvcc") is None:
        try:
            made.write_text(
                compile_user_ptx(source, options, instances[0] if instances else "", arch), encoding="utf-8"
            )
        except MissingExtraError as error:
            correction = f"put nvcc in PATH, or {error.correction}, for which no GPU is needed"
            raise MissingExtraError(
                "there is no nvcc, and no NVRTC", cause=error.cause, correction=correction
            ) from None
        return made
    if instances:  # host code that has their addresses
        taken = "".join(f"auto *pipesim_entry_{n} = &{each};\n" for n, each in enumerate(instances))
        (folder / source.name).write_text(f'#include "{file}"\n{taken}', encoding="utf-8")
        file = folder / source.name
    _run("nvcc", ["-ptx", f"-arch={arch}", "-std=c++17", "-lineinfo", *options, str(file), "-o", str(made)])
    return made


def _run(compiler: str, words: Sequence[str]) -> None:
    program = shutil.which(compiler)
    if program is None:
        raise MissingExtraError(f"{compiler} is not installed", correction="install it, or give PTX made elsewhere")
    ran = subprocess.run([program, *words], capture_output=True, encoding="utf-8", errors="replace", check=False)  # noqa: S603
    log = (ran.stderr + ran.stdout).strip()
    if ran.returncode:
        wrong = _WRONG.search(log)
        fact, place = (wrong[3], f"{wrong[1]}:{wrong[2]}") if wrong else ("the source is not compiled", "")
        raise CompileError(f"{compiler}: {fact}", place=place, cause=log[-2000:])


def written_sizes(source: Path, kernel: str) -> tuple[str, ...]:
    """The grid, block and shared memory of the launches of a kernel in its source, as ``--set`` has them.

    Those that are numbers, or constants that are, and the same in all launches.
    """
    text = SOURCE.read_text(source)
    known = {first or second: number for first, second, number in _CONSTANT.findall(text)}
    base = kernel.partition("<")[0].rpartition("::")[2]
    found = [_sizes(each, known) for each in re.findall(_LAUNCH.format(re.escape(base)), text)]
    return tuple(each for each in (found[0] if found else ()) if all(each in other for other in found))


def _sizes(text: str, known: dict[str, str]) -> list[str]:
    sizes: list[str] = []
    for name, part in zip(("grid", "block", "shared"), _PARTS.findall(text), strict=False):
        inner = re.fullmatch(r"\s*dim3\s*[({](.*)[)}]\s*", part)
        numbers = [known.get(each.strip(), each.strip()) for each in (inner[1] if inner else part).split(",")]
        for axis, number in zip(("", ".y", ".z"), numbers, strict=False):
            if number.isdecimal() and int(number):
                sizes.append(f"{name}{axis}={int(number)}")
    return sizes
