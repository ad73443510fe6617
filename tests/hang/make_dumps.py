"""Makes the dumps of this folder on a Hopper GPU: ``python -m tests.hang.make_dumps FOLDER [NAME ...]``.

Each kernel of ``kernels`` is built with and without line information (``_bare``), run by ``pipesim hang`` in a process
of its own, dumped with its memory, made smaller, and compressed. What is left out: the images of machine code that have
none of our kernels (the driver's own, PyTorch's), whose sections become ones without a type. Sources are built in
/src/hangs, so that line information has no other path. A kernel with a right twin has to end first, with right results.
"""

import argparse
import lzma
import re
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNELS = Path(__file__).with_name("kernels")
HEADERS = Path(__file__).parents[2] / "hwkernels" / "ptx_headers"
BUILT = Path("/src/hangs")
IMAGE = (".cudbg.elfimg.", ".cudbg.relfimg.")
NVCC = ("nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-I.")
_LIMIT_S = 120  #: of one program, its dump included


def build(name: str, more: tuple[str, ...], to: str) -> None:
    """Build the program of a kernel in the folder of all."""
    subprocess.run([*NVCC, *more, "-o", to, f"{name}.cu"], cwd=BUILT, check=True)


def ends_right(name: str) -> bool:
    """Whether the right twin of a kernel ends, with right results."""
    try:
        return not subprocess.run([BUILT / name], timeout=_LIMIT_S // 6, check=False).returncode
    except subprocess.TimeoutExpired:
        return False


def dumped(command: list[str], folder: Path) -> Path | None:
    """The core dump of a program that hangs; None if there is none."""
    shutil.rmtree(folder, ignore_errors=True)
    run = [sys.executable, "-m", "pipesim", "hang", "--after", "2", "--memory", "--keep", str(folder), "--", *command]
    ended = subprocess.run(run, timeout=_LIMIT_S, check=False)
    files = sorted(folder.glob("core.*"))
    return files[0] if ended.returncode == 5 and len(files) == 1 else None


def smaller(data: bytes, kernels: list[str]) -> bytes:
    """The dump without the images that have none of these kernels."""
    made = bytearray(data)
    at, entry, count, names = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58)
    if not count:  # more sections than the header has room for
        count, names = struct.unpack_from("<Q", data, at + 32)[0], struct.unpack_from("<I", data, at + 40)[0]
    strings = struct.unpack_from("<Q", data, at + names * entry + 24)[0]
    for header in range(at, at + count * entry, entry):
        start = strings + struct.unpack_from("<I", data, header)[0]
        place, size = struct.unpack_from("<QQ", data, header + 24)
        image = data[place : place + size]
        if data.startswith(tuple(map(str.encode, IMAGE)), start) and not any(
            each.encode() in image for each in kernels
        ):
            made[place : place + size] = bytes(size)
            struct.pack_into("<I", made, header + 4, 0)
    return bytes(made)


def main() -> int:
    """1 if a dump is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--suffix", default="")
    parser.add_argument("--cubins", type=Path, help="the folder that cute_hangs.py wrote")
    options = parser.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    for file in (*KERNELS.iterdir(), *HEADERS.iterdir()):
        shutil.copy(file, BUILT)
    jobs: dict[str, tuple[list[str], list[str]]] = {}  # by the name of a dump: the program, and its kernels
    twins: list[str] = []
    with ThreadPoolExecutor() as pool:
        for source in sorted(KERNELS.glob("*.cu")):
            if options.names and source.stem not in options.names:
                continue
            kernels = re.findall(r"__global__.*?\) (\w+)\(", source.read_text())
            if "bool is_right(" in source.read_text():
                pool.submit(build, source.stem, ("-DRIGHT_TWIN",), source.stem + "_right")
                twins.append(source.stem + "_right")
            for suffix, more in (("", ("-lineinfo",)), ("_bare", ())):
                pool.submit(build, source.stem, more, source.stem + suffix)
                jobs[source.stem + suffix] = [str(BUILT / (source.stem + suffix))], kernels
    for script in KERNELS.glob("triton_*.py"):
        for name in re.findall(r'case "(\w+)"', script.read_text()):
            jobs[name] = [sys.executable, str(BUILT / script.name), name], [name]
    if options.cubins is not None:
        subprocess.run(["nvcc", "-o", "run_cubin", "run_cubin.cpp", "-lcuda"], cwd=BUILT, check=True)
        for cubin in options.cubins.resolve().glob("*.cubin"):
            jobs[cubin.stem] = [str(BUILT / "run_cubin"), str(cubin)], [cubin.stem]
    missing = [name for name in twins if not ends_right(name)]
    for name, (command, kernels) in jobs.items():
        if options.names and name.removesuffix("_bare") not in options.names:
            continue
        core = dumped(command, BUILT / "dumps")
        if core is None:
            missing.append(name)
            continue
        options.folder.mkdir(parents=True, exist_ok=True)
        with lzma.open(options.folder / f"{name}{options.suffix}.elf.xz", "wb", preset=9) as packed:
            packed.write(smaller(core.read_bytes(), kernels))
    print("missing:", *(missing or ["none"]))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
