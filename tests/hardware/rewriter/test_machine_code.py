"""What ptxas makes of the recorder: clocks that are read when they should be, and no predicate that is waited for."""

import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest

from hwkernels.rewriter import Encoding, assemble
from hwkernels.rewriter.assemble import find_ptxas
from pipesim.errors import HardwareError
from tests.support.rewritten_ring import rewritten, ring


def nvdisasm() -> Path:
    """The disassembler of cubins, as NVIDIA's package installs it."""
    files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
    return next(Path(str(file.locate())) for file in files if file.name == "nvdisasm")


def has_ptxas() -> bool:
    try:
        return bool(find_ptxas())
    except HardwareError:
        return False


pytestmark = pytest.mark.skipif(not has_ptxas(), reason="ptxas assembles")
TRY = re.compile(r"SYNCS\.PHASECHK\S*TRYWAIT (P\d),")
CLOCK = re.compile(r"(@!?P\d )?CS2R\.32 \S+, SR_CLOCKLO")


def around_tries(ptx: str, folder: Path) -> list[tuple[str, str, int]]:
    """Of each try the guard of the clock before it, of the one after it ("its own": the answer), and of how many
    instructions from the try to the branch back a predicate is made."""
    path = folder / "ring.cubin"
    path.write_bytes(assemble(ptx).cubin)
    said = subprocess.run([nvdisasm(), "-c", path], check=True, capture_output=True, text=True).stdout
    code = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", said)
    found = []
    for at, one in enumerate(code):
        if tried := TRY.search(one):
            back = next(n for n in range(at, len(code)) if re.match(rf"@!{tried[1]} BRA", code[n]))
            clocks = [(n, guard[1] or "") for n in range(at - 8, back) if (guard := CLOCK.match(code[n]))]
            before = [guard.strip() for n, guard in clocks if n < at][-1]
            after = next(guard.strip() for n, guard in clocks if n > at)
            own = "its own" if after == f"@{tried[1]}" else after
            found.append((before, own, sum("LOP3.LUT P" in each or "ISETP" in each for each in code[at + 1 : back])))
    return found


@pytest.mark.slow
def test_the_clock_after_a_try_waits_for_its_answer_alone(tmp_path: Path) -> None:
    assert around_tries(rewritten(ring(), Encoding.POSITIONAL).ptx, tmp_path) == [("", "its own", 0)] * 2
    stopped = rewritten(ring(), Encoding.POSITIONAL, stops=True).ptx
    assert [own for _, own, made in around_tries(stopped, tmp_path) if made] == ["its own"] * 2


@pytest.mark.slow
def test_a_clock_that_is_chosen_afterwards_is_read_too_early(tmp_path: Path) -> None:
    """Where the register of the clock holds a constant before the try, ptxas reads the clock and then chooses."""
    ptx = rewritten(ring(), Encoding.POSITIONAL).ptx
    tries = re.compile(r"(\s+mbarrier\.try_wait)")
    assert around_tries(tries.sub(r"\n\tmov.u32 %pipesim_now, 7;\1", ptx), tmp_path) == [("", "", 0)] * 2
