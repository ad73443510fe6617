"""CUTLASS C++: examples out of the package's sources, compiled to PTX and run without a GPU to see their launches.

``nvidia-cutlass`` brings headers and examples, ``nvidia-curand`` a header that they include; nvcc must be installed.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipesim.ptx.launch.settings import BOX, with_settings
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import entry_of
from pipesim.ptx.text.declarations import Module
from pipesim.ptx.text.read import read_module
from tools.corpus import fake
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.environment import Environment
from tools.corpus.launch_notes import launches_noted, sizes_file

ENVIRONMENT = Environment("cutlass", ("nvidia-cutlass", "nvidia-curand"))
_SMS = {"sm_90a": "132", "sm_100a": "148"}
_MOST = 3  #: kernels taken of one example


class Example(NamedTuple):
    """An example: what the corpus calls it, its file below ``examples``, and the arguments of the program."""

    name: str
    arch: str
    source: str
    arguments: tuple[str, ...]


_SIZES = ("--m=1024", "--n=1024", "--k=512", "--iterations=0")
_GROUPS = ("--groups=3", "--m=256", "--n=512", "--k=256", "--iterations=0", "--no_verif")
_ATTENTION = ("--b=1", "--h=2", "--q=512", "--k=512", "--d=128")
_HOPPER_FP8 = "54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu"
EXAMPLES = (
    Example("hopper_ws_gemm", "sm_90a", "48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu", _SIZES),
    Example("blackwell_fp16", "sm_100a", "70_blackwell_gemm/70_blackwell_fp16_gemm.cu", _SIZES),
    Example("hopper_fp8", "sm_90a", _HOPPER_FP8, _SIZES),
    Example("blackwell_streamk", "sm_100a", "74_blackwell_gemm_streamk/blackwell_gemm_streamk.cu", _SIZES),
    Example("hopper_grouped", "sm_90a", "57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu", _GROUPS),
    Example("blackwell_grouped", "sm_100a", "75_blackwell_grouped_gemm/75_blackwell_grouped_gemm.cu", _GROUPS),
    Example("blackwell_blockwise", "sm_100a", "81_blackwell_gemm_blockwise/81_blackwell_gemm_blockwise.cu", _SIZES),
    Example("hopper_sparse", "sm_90a", "62_hopper_sparse_gemm/62_hopper_sparse_gemm.cu", _SIZES),
    Example("hopper_builder", "sm_90a", "49_hopper_gemm_with_collective_builder/49_collective_builder.cu", _SIZES[:3]),
    Example("blackwell_fmha", "sm_100a", "77_blackwell_fmha/77_blackwell_fmha.cu", _ATTENTION),
    Example("hopper_fmha", "sm_90a", "88_hopper_fmha/88_hopper_fmha.cu", _ATTENTION),
)

#: Maps that a grouped kernel makes in its workspace out of those among its parameters: address and sizes are replaced,
#: the box stays, so that it is that of the parameter. The launches' clusters take the maps of the fallback shape.
_BLACKWELL_COPIES = {f"1184:{at}": "u8:128,128" for at in (0, 128, 18944, 19072)} | {
    f"1920:{at}": "f16:64,64" for at in (0, 128, 18944, 19072)
}
COPIED_MAPS: Mapping[str, Mapping[str, str]] = {
    "hopper_grouped": {f"648:{at}": "u8:128,128" for at in (0, 8448, 16896, 25344)}
    | {f"1408:{at}": "f16:64,32" for at in (16896, 25344, 33792, 42240)},
    "hopper_grouped_2": {f"648:{at}": "u8:128,128" for at in (0, 128)}
    | {f"648:{at}": "u8:128,64" for at in (16896, 17024)}
    | {f"1408:{at}": "f16:64,32" for at in (0, 128, 33792, 33920)},
    "blackwell_grouped": _BLACKWELL_COPIES,
    "blackwell_grouped_2": _BLACKWELL_COPIES,
}


def cutlass(folder: Path) -> Iterator[str]:
    """The main kernels of every example: those with mbarriers, up to three of an example."""
    packages = ENVIRONMENT.made()
    library = fake.runtime(ENVIRONMENT.folder)
    for example in EXAMPLES:
        try:
            for each in _kernels(example, packages, library):
                each.save(folder)
                yield each.stem
        except (subprocess.SubprocessError, OSError) as error:
            yield f"{example.name}: {str(error)[:300]}"


def _kernels(example: Example, packages: Path, library: Path) -> Iterator[CorpusKernel]:
    folder = _compiled(example, packages, library)
    (ptx,) = folder.glob("*.ptx")
    text = ptx.read_text(encoding="utf-8")
    module = read_module(text, example.source)
    (folder / "sizes").write_text(sizes_file(module), encoding="utf-8")
    notes = folder / "notes"
    notes.unlink(missing_ok=True)
    variables = {"PIPESIM_NOTES": notes, "PIPESIM_SIZES": folder / "sizes", "PIPESIM_SMS": _SMS[example.arch]}
    variables |= {"PIPESIM_CC": example.arch.strip("sm_a")}
    given = os.environ | {name: str(value) for name, value in variables.items()}
    subprocess.run([folder / "program", *example.arguments], env=given, capture_output=True, timeout=600, check=False)
    launches = {each.entry: each for each in launches_noted(notes) if _has_barriers(module, each)}
    for number, launch in enumerate(list(launches.values())[:_MOST]):
        name = example.name + (f"_{number + 1}" if number else "")
        boxes = [f"{BOX}{place}={box}" for place, box in COPIED_MAPS.get(name, {}).items()]
        function = entry_of(module, launch)
        yield CorpusKernel(example.arch, name, text, with_settings(launch, function, boxes))


def _has_barriers(module: Module, launch: Launch) -> bool:
    function = module.function(launch.entry)
    return function is not None and any(each.opcode == "mbarrier" for each in function.body)


def _compiled(example: Example, packages: Path, library: Path) -> Path:
    """The folder with the program and its PTX."""
    source = packages / "cutlass_library" / "source"
    file = source / "examples" / example.source
    folder = ENVIRONMENT.folder / "programs" / example.name
    if (folder / "program").is_file() and (folder / "program").stat().st_mtime > library.stat().st_mtime:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    arch = example.arch.removeprefix("sm_")
    includes = [source / "include", source / "tools" / "util" / "include", source / "examples" / "common", file.parent]
    includes += [path.parent for path in packages.rglob("curand_kernel.h")]
    options = ["-std=c++17", "-O1", "-lineinfo", "-gencode", f"arch=compute_{arch},code=compute_{arch}", "-w"]
    options += ["--expt-relaxed-constexpr", "--expt-extended-lambda", "-Xcompiler", "-w", "-cudart", "none"]
    options += ["--keep", "--keep-dir", str(folder), *(f"-I{path}" for path in includes)]
    command: list[str | Path] = ["nice", "nvcc", *options, "-o", folder / "program", file, library]
    ran = subprocess.run(command, check=False, timeout=3000, capture_output=True, text=True)
    if ran.returncode:
        wrong = [line for line in ran.stderr.splitlines() if re.search(r"error|undefined reference", line)]
        raise subprocess.SubprocessError("; ".join(line[-160:] for line in wrong[:3]))
    for path in (*folder.glob("*.ii"), *folder.glob("*.cudafe1.*"), *folder.glob("*.fatbin*")):
        path.unlink()
    return folder
