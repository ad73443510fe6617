"""Broken kernels are proved with the edit that ``check --fix`` shows, compiled again."""

from pathlib import Path

import pytest

from tests.support.hanging_kernels import write_hanging
from tests.support.plain_cuda import PLAIN
from tools.bench_corrector import corrected

pytest.importorskip("cuda.bindings.nvrtc")
EDITS = {
    "last_block": "        __threadfence();  // proposed by pipesim\n        last = atomicAdd",
    "matmul": "        __syncthreads();  // proposed by pipesim\n        left[y][x] = a[",
    "reduce": "part[t + half];\n        __syncthreads();  // proposed by pipesim\n",
    "scan": "        __syncthreads();\n        part[next][t] = computed;",
    "stencil": "i = blockIdx.x * 128 + t;\n#if WRONG\n#endif\n",
    "wrong_count": "set_up(ring, 1, 4);",
    "wrong_parity": "wait(ring.empty[stage], tile / 3 % 2 ^ 1);",
    "copies_not_committed": '"l"(x + tile * TILE + i) : "memory");\n                asm volatile("cp.async.mbarrier',
}


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("name", EDITS)
def test_it_is_proved_after_one_edit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = [each for each in PLAIN if each.name == name]
    if plain:
        plain[0].write(tmp_path, wrong=True)
    else:
        write_hanging(name, tmp_path)
    found = corrected(name, {"WRONG": 1})
    assert (found.ended, found.tries) == ("proved", 1)
    assert EDITS[name] in (tmp_path / f"{name}.cu").read_text()
