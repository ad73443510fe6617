"""The GEMM's machine code on the CPU: products back to back, stages given back behind them, registers that suffice."""

import re
import subprocess
from pathlib import Path

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90
from pipesim.targets import find
from tests.support.cuda_tools import cuobjdump, nvdisasm

# One letter an instruction: a try to wait, the fence before products, a product, the wait for them, an arrive, a load
# or store of local memory, a store to a tensor, a load of one.
LETTERS = (
    ("w", r"SYNCS\.PHASECHK\S*TRYWAIT"),
    ("f", r"WARPGROUP\.ARRIVE"),
    ("P", r"HGMMA"),
    ("g", r"WARPGROUP\.DEPBAR"),
    ("a", r"SYNCS\.ARRIVE"),
    ("l", r"(?:LDL|STL)\b"),
    ("s", r"UTMASTG"),
    ("t", r"UTMALDG"),
)


def built(tmp_path: Path, traced: bool, **changes: int) -> tuple[str, int]:
    """The kernel's instructions of those kinds, in the order of their addresses, and its registers a thread."""
    params = find("gemm_sm90").defaults | changes
    extra = {"PIPESIM_TRACE": int(traced)} | ({"PIPESIM_MEMORY": 1, "PIPESIM_ROOM": GEMM_SM90.room} if traced else {})
    compiled = compile_cubin(GEMM_SM90.source, {**GEMM_SM90.defines(params), **extra})
    assert compiled.log == ""
    path = tmp_path / "gemm.cubin"
    path.write_bytes(compiled.cubin)
    code = subprocess.run([nvdisasm(), "-c", path], capture_output=True, text=True, check=True).stdout
    found = (re.search(r"\*/\s+(?:@!?U?P\w+\s+)?(\S+)", line) for line in code.splitlines())
    names = [match[1] for match in found if match]
    text = "".join(letter for name in names for letter, pattern in LETTERS if re.match(pattern, name))
    usage = subprocess.run([cuobjdump(), "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return text, int(re.findall(r"REG:(\d+)", usage)[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("k_group_size", "num_consumer", "block_n"), [(1, 2, 256), (2, 1, 64), (4, 2, 128)])
def test_a_stage_is_multiplied_without_a_stop_and_then_given_back(tmp_path, k_group_size, num_consumer, block_n):
    changes = {"k_group_size": k_group_size, "num_consumer": num_consumer, "block_n": block_n, "stages": 4}
    text, registers = built(tmp_path, traced=False, **changes)
    products = "P" * 4 * k_group_size
    assert f"f{products}ga" in text  # and no local memory between them
    assert text.count("P") == 4 * k_group_size
    assert f"wa{'t' * 2 * k_group_size}" in text
    threads, groups = 128 * (1 + num_consumer), num_consumer
    wanted = 128 * (40 if groups == 2 else 24) + 128 * groups * (232 if groups == 2 else 240)
    assert wanted <= registers * threads <= 65536  # else setmaxnreg.inc would wait indefinitely


@pytest.mark.slow
def test_looking_ahead_is_a_try_while_the_product_runs(tmp_path):
    plain, _ = built(tmp_path, traced=False)
    ahead, _ = built(tmp_path, traced=False, lookahead=1)
    assert "PPPPga" in plain
    assert re.search("PPPPw+ga", ahead)


@pytest.mark.slow
def test_a_recorded_kernel_multiplies_alike(tmp_path):
    text, registers = built(tmp_path, traced=True, stages=3, block_n=256)
    assert "PPPPg" in text
    assert text.count("P") == 4
    assert registers == 168
