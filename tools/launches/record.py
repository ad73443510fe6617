"""Kernels recorded in the process that launches them, on the GPU: ``python tools/launches/record.py OUT``.

1. The program of Triton, Gluon and ``cuda.core`` kernels with and without ``pipesim record``: equal results, traces
   that conform.
2. A kernel that hangs: stopped at its deadline, and explained by the lines of its source.
3. A C++ program with ``pipesim_record.h``: equal results, a trace that conforms. It needs nvcc and ptxas.

Writes everything to OUT, with ``results.json``, and prints a line for each; exit code 1 if one is not as it should be.
It takes a minute on an H200.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HERE = Path(__file__).parent
PROGRAM, RING = HERE / "program.py", HERE / "ring.py"
PARTS = ("triton", "gluon", "cuda.core")
_LIMIT_S = 150


def run(words: list[object], log: Path, *, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command, with what it prints in a file."""
    there = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(there), "COLUMNS": "110"}
    command, begun = list(map(str, words)), time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = [
            each.decode(errors="replace") if isinstance(each, bytes) else each or ""
            for each in (error.stdout, error.stderr)
        ]
        done = subprocess.CompletedProcess(command, 124, *said)
    took = time.monotonic() - begun
    log.write_text(f"{' '.join(command)}\nstatus {done.returncode}, {took:.1f} s\n{done.stdout}\n{done.stderr}")
    return done


def recorded(out: Path, name: str, options: list[object], command: list[object]) -> dict[str, Any]:
    """A program under ``pipesim record``: what it printed, and the report."""
    words = [
        sys.executable,
        "-m",
        "pipesim",
        "record",
        "--out",
        out / name,
        "--force",
        "--json",
        *options,
        "--",
        *command,
    ]
    done = run(words, out / f"{name}.log")
    try:
        report = json.loads(done.stdout)["report"]
    except (ValueError, KeyError):
        return {"printed": done.stderr[-2000:], "kernels": [], "notes": [done.stdout[-2000:]]}
    return {"printed": done.stderr, "kernels": report["kernels"], "notes": report["notes"]}


def summary(kernels: list[dict[str, Any]]) -> list[str]:
    """A line for each kernel."""
    lines = []
    for kernel in kernels:
        if not kernel["recorded"]:
            lines.append(f"{kernel['name']}: {kernel['reason']}")
        for each in kernel["recorded"]:
            change = f"registers {kernel['registers']}, spills {kernel['spills']}"
            said = f"{each['events']} events, {each['ending']}, {each['agreement']}, {change}"
            lines.append(f"{kernel['name']}: {each['reason'] or said}")
    return lines


def frameworks(out: Path) -> dict[str, Any]:
    """Triton, Gluon and ``cuda.core``: the same results with and without; every trace conforms."""
    command: list[object] = [sys.executable, PROGRAM, *PARTS]
    plain = run(command, out / "plain.log")
    found = recorded(out, "frameworks", ["--diff"], command)
    same = [line for line in plain.stdout.splitlines() if line in found["printed"].splitlines()]
    traces = [each for kernel in found["kernels"] for each in kernel["recorded"]]
    conform = [each for each in traces if each["agreement"] == "conforms"]
    right = len(same) == len(PARTS) and len(traces) >= len(PARTS) and len(conform) == len(traces)
    return {"right": right, "equal results": same, "kernels": summary(found["kernels"]), "notes": found["notes"]}


def hang(out: Path) -> dict[str, Any]:
    """The ring whose consumer keeps a tile: stopped after a second, and explained."""
    found = recorded(out, "hang", ["--deadline", 1, "--kernels", "ring"], [sys.executable, RING, "hangs"])
    pages = [line for kernel in found["kernels"] for each in kernel["recorded"] for line in each["page"]]
    (out / "hang.txt").write_text("\n".join(pages))
    endings = [each["ending"] for kernel in found["kernels"] for each in kernel["recorded"]]
    named = [line.strip() for line in pages if "waits for phase" in line]
    right = endings == ["deadline"] and len(named) >= 2
    return {"right": right, "said": named, "kernels": summary(found["kernels"]), "notes": found["notes"]}


def by_hand(out: Path) -> dict[str, Any]:
    """The C++ program: compiled, its kernel instrumented, launched, decoded and compared."""
    from pipesim.ptx.launch.file import launch_json
    from pipesim.ptx.launch.values import Content, Launch, Number, Parameter, Pointer

    folder = out / "cpp"
    folder.mkdir(parents=True, exist_ok=True)
    values: tuple[Content, ...] = (Pointer(512), Pointer(512), Number("u32", 24))
    given = tuple(Parameter(f"ring_param_{number}", value) for number, value in enumerate(values))
    (folder / "ring.json").write_text(launch_json(Launch("ring", (8, 1, 1), (64, 1, 1), parameters=given)))
    files = ("plain.cubin", "made/ring.cubin", "made/ring.buffer", "ring.records")
    arch = ["-gencode", "arch=compute_90a,code=sm_90a"]
    pipesim = [sys.executable, "-m", "pipesim"]
    steps: list[list[object]] = [
        ["nvcc", "-arch=sm_90a", "-lineinfo", "-ptx", HERE / "ring.cu", "-o", folder / "ring.ptx"],
        ["ptxas", "-arch=sm_90a", folder / "ring.ptx", "-o", folder / "plain.cubin"],
        [*pipesim, "instrument", folder / "ring.ptx", "--out", folder / "made", "--force"],
        ["nvcc", *arch, "-I", folder / "made", HERE / "ring.cpp", "-o", folder / "ring", *_driver()],
        [folder / "ring", *(folder / name for name in files)],
        [*pipesim, "decode", folder / "ring.records", "--kernel", folder / "made/ring.ptx", "--force"],
        [*pipesim, "diff", folder / "ring.parquet", "--protocol", folder / "made/ring.ptx"],
    ]  # fmt: skip
    said = []
    for number, step in enumerate(steps):
        done = run(step, out / f"cpp-{number}.log")
        said.append(f"{Path(str(step[0])).name} {done.returncode}: {(done.stdout or done.stderr).strip()[-200:]}")
        if done.returncode:
            return {"right": False, "said": said}
    return {"right": "equal" in said[4], "said": said}


def _driver() -> list[object]:
    """How the linker finds libcuda: the toolkit's stub if it has one, else the driver's own library."""
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    roots = [*named, Path("/usr/local/cuda")]
    folders = [root / below for root in roots for below in ("lib64/stubs", "targets/x86_64-linux/lib/stubs")]
    stub = next((folder for folder in folders if (folder / "libcuda.so").exists()), None)
    return ["-L", stub, "-lcuda"] if stub is not None else ["-Xlinker", "-l:libcuda.so.1"]


def main(words: list[str]) -> int:
    """All of it."""
    out = Path(words[0] if words else os.environ["OUT"]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name, part in (("frameworks", frameworks), ("hang", hang), ("C++", by_hand)):
        begun = time.monotonic()
        try:
            results[name] = part(out)
        except Exception as error:  # noqa: BLE001  # the others are to run
            results[name] = {"right": False, "error": f"{type(error).__name__}: {error}"}
        results[name]["took_s"] = round(time.monotonic() - begun, 1)
        print(json.dumps({name: results[name]}, indent=1), flush=True)
        (out / "results.json").write_text(json.dumps(results, indent=1))
    return 0 if all(each["right"] for each in results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
