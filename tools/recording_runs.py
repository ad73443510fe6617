"""What recording needs of the GPU, in three calls: ``python tools/recording_runs.py PART [OUT] [KERNELS]``.

``cost``: what a record costs (``recording_cost.py``). ``kernels``: kernels from their PTX, with their hangs
(``record_kernels.py``; KERNELS is a folder of families with PTX that was prepared, ``.carry/kernels`` if left out).
``process``: ``pipesim record`` over programs (``launches/record.py``). OUT is ``$OUT`` if left out. What a part prints
is shown, and packed with its files into ``OUT/PART.tar.gz``, which ``recording_doc.py`` reads. A part takes less than
four minutes: it is stopped after that, with what there is until then.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 225.0
FAMILIES = ("gluon", "modular", "triton")
#: Mutants that hang, of which only those that a flag can end (hang_mutants.py).
HANGS = ("hang_modular_gemm", "hang_modular_attention", "hang_triton_gemm_tma_w8_s4")


def command(part: str, into: Path, kernels: Path) -> list[str]:
    """The program of a part. KeyError if there is none of this name."""
    found = [str(path) for family in FAMILIES for path in sorted((kernels / family).glob("*.ptx"))]
    hangs = [str(kernels / "hang" / f"{name}.ptx") for name in HANGS]
    words = {
        "cost": ["recording_cost.py", "--json", f"{into}/recording_cost.json"],
        "kernels": ["record_kernels.py", str(into), *hangs, *found],
        "process": ["launches/record.py", str(into)],
    }[part]
    return [sys.executable, str(ROOT / "tools" / words[0]), *words[1:]]


def run(words: list[str], printed: Path, limit_s: float) -> int:
    """Show and keep what a program prints; its status, 124 if it was stopped with all that it started."""
    pipe, joined = subprocess.PIPE, subprocess.STDOUT
    with (
        printed.open("w") as kept,
        subprocess.Popen(words, text=True, start_new_session=True, stdout=pipe, stderr=joined) as started,
    ):
        timer = threading.Timer(limit_s, lambda: os.killpg(started.pid, signal.SIGKILL))
        timer.start()
        assert started.stdout is not None
        for line in started.stdout:
            print(line, end="", flush=True)
            kept.write(line)
        status = started.wait()
        timer.cancel()
    return 124 if status == -signal.SIGKILL else status


def main(words: list[str]) -> int:
    """Run one part and pack what it wrote."""
    part, out = words[0], Path(words[1] if len(words) > 1 else os.environ["OUT"]).resolve()
    kernels = Path(words[2]) if len(words) > 2 else ROOT / ".carry" / "kernels"
    into = out / part
    into.mkdir(parents=True, exist_ok=True)
    status = run(command(part, into, kernels), into / "printed.txt", LIMIT_S)
    with tarfile.open(out / f"{part}.tar.gz", "w:gz") as packed:
        packed.add(into, part)
    shutil.rmtree(into)
    print(f"{part}: status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
