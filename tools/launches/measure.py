"""What the capture of launches shows and costs, measured on the GPU: ``python tools/launches/measure.py``.

1. Every word of the parameters that was recorded against what the kernel of ``mixed.cu`` saw itself.
2. The time that observing adds to a launch: rounds with and without it in turn, in one process.
3. That the results of ``program.py`` are the same with it and without it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from pipesim.launches.observe import Limits, start  # noqa: E402

LAUNCHES, ROUNDS = 2000, 7


def records(spool: Path) -> list[dict[str, Any]]:
    """All records of a folder."""
    return [json.loads(line) for file in sorted(spool.glob("*.jsonl")) for line in file.read_text().splitlines()]


def words(spool: Path) -> bool:
    """Whether what was recorded is what the kernel saw."""
    from tools.launches.mixed import TRIPS, Mixed

    observation = start(spool, Limits(patterns=("mixed",)))
    mixed = Mixed()
    mixed.run()
    observation.stop()
    found = [each for each in records(spool) if each["kind"] == "launch"]
    print(json.dumps([{k: v for k, v in each.items() if k != "parameters"} for each in found]))
    print([each for each in records(spool) if each["kind"] == "note"])
    seen = mixed.words()[4:]
    at, right = 0, len(found) == 1
    for number, each in enumerate(found[0]["parameters"]):
        data = bytes.fromhex(each["bytes"])
        padded = data + b"\0" * (-len(data) % 4)
        same = seen[at : at + len(padded)] == padded
        right &= same
        at += len(padded)
        print(
            f"parameter {number}: {len(data)} bytes, {'equal' if same else 'DIFFER'}; {each['pointers']} {each['maps']}"
        )
    contents = next(p["contents"] for p in found[0]["parameters"][2]["pointers"])
    right &= at == len(seen)
    right &= bytes.fromhex(contents)[:8] == b"".join(n.to_bytes(4, "little") for n in TRIPS)
    print(f"{at // 4} words of the parameters, {len(seen) // 4} seen by the kernel: {'equal' if right else 'DIFFER'}")
    return right


def overhead(spool: Path) -> float:
    """Microseconds that observing adds to a launch, the median of the rounds' differences."""
    import torch

    from tools.launches.mixed import Mixed

    mixed = Mixed()
    mixed.launch(10)
    torch.cuda.synchronize()

    def timed() -> float:
        begin = time.perf_counter()
        mixed.launch(LAUNCHES)
        spent = (time.perf_counter() - begin) / LAUNCHES * 1e6
        torch.cuda.synchronize()
        return spent

    plain, observed = [], []
    for _ in range(ROUNDS):
        plain.append(timed())
        observation = start(spool, Limits())
        mixed.launch(10)
        observed.append(timed())
        observation.stop()
    print(f"plain    {' '.join(f'{each:.1f}' for each in plain)} us a launch")
    print(f"observed {' '.join(f'{each:.1f}' for each in observed)} us a launch")
    return statistics.median(b - a for a, b in zip(plain, observed, strict=True))


def same_results(spool: Path) -> bool:
    """Whether the program prints the same with and without being observed; its records are left in the folder."""
    program = [sys.executable, str(ROOT / "tools" / "launches" / "program.py")]
    site = ROOT / "pipesim" / "launches" / "observe" / "site"
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    observed = {**os.environ, "PIPESIM_LAUNCHES_SPOOL": str(spool), "PYTHONPATH": path}
    texts = []
    for environment in (dict(os.environ), observed):
        begin = time.perf_counter()
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=200, check=False)
        texts.append(done.stdout)
        print(done.stdout, done.stderr[-1500:], f"{time.perf_counter() - begin:.1f} s, status {done.returncode}")
    return texts[0] == texts[1]


def main() -> int:
    """Everything; 0 if all of it is as it should be."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folders = [out / name for name in ("words", "overhead", "program")]
    for each in folders:
        each.mkdir(parents=True, exist_ok=True)
    right = words(folders[0])
    cost = overhead(folders[1])
    print(f"observing adds {cost:.1f} us to a launch")
    same = same_results(folders[2])
    print(f"the program's results are {'the same' if same else 'DIFFERENT'}")
    return 0 if right and same and cost < 100 else 1


if __name__ == "__main__":
    raise SystemExit(main())
