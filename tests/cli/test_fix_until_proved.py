"""Broken kernels are proved with the edit that ``check --fix`` shows, compiled again."""

import re
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

from hwkernels.device.compile import compile_ptx
from tests.support.fixture_types import Call
from tests.support.hanging_kernels import write_hanging
from tests.support.plain_cuda import PLAIN

pytest.importorskip("cuda.bindings.nvrtc")
EDITS = {
    "last_block": "        __threadfence();  // proposed by pipesim\n        last = atomicAdd",
    "matmul": "        __syncthreads();  // proposed by pipesim\n        right[y][x] = b[",
    "reduce": "part[t + half];\n        __syncthreads();  // proposed by pipesim\n",
    "scan": "        __syncthreads();\n        part[next][t] = computed;",
    "stencil": "i = blockIdx.x * 128 + t;\n#if WRONG\n#endif\n",
    "wrong_count": "set_up(ring, 1, 4);",
    "wrong_parity": "wait(ring.empty[stage], tile / 3 % 2 ^ 1);",
    "copies_not_committed": '"l"(x + tile * TILE + i) : "memory");\n                asm volatile("cp.async.mbarrier',
}


def apply(shown: str) -> None:
    """Apply the first difference that is shown, if it is not in its file yet, as a proposal is not."""
    head, _, place, *rest = dropwhile(lambda each: not each.startswith("--- a/"), shown.splitlines())
    path, found = Path(head.removeprefix("--- a/")), re.match(r"@@ -(\d+)", place)
    assert found is not None
    hunk = list(takewhile(lambda each: each[:1] in ("+", "-", " ") and not each.startswith("--- a/"), rest))
    old, new = ([each[1:] for each in hunk if each[0] in kept] for kept in (" -", " +"))
    text, first = path.read_text(encoding="utf-8").splitlines(), int(found[1]) - 1
    if text[first : first + len(old)] == old:
        text[first : first + len(old)] = new
        path.write_text("\n".join(text) + "\n", encoding="utf-8")


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("name", EDITS)
def test_it_is_proved_after_one_edit(name: str, call: Call) -> None:
    plain = [each for each in PLAIN if each.name == name]
    if plain:
        plain[0].write(Path(), wrong=True)
    else:
        write_hanging(name, Path())
    for code in (1, 0):
        Path(f"{name}.ptx").write_text(compile_ptx(Path(f"{name}.cu"), {"WRONG": 1}), encoding="utf-8")
        answer = call("check", f"{name}.ptx", *["--fix", "--write"] * code)
        assert answer.code == code
        if code:
            apply(answer.out)
    assert EDITS[name] in Path(f"{name}.cu").read_text()
