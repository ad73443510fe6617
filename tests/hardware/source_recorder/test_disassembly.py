"""In the machine code, each record's clock is read where the record says: before an arrive, after a wait's return."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.sources import headers, source_file
from tests.support.cuda_tools import nvdisasm
from tests.support.lanes import long_but, slow_but

SOURCE = source_file("producer_consumer.cu")
RING = {"STAGES": 4, "TILE_BYTES": 4096, "CONSUMER_WARPS": 2, "ARRIVE_LANES": 1, "PIPESIM_TRACE": 1}

# One letter an instruction: a record's clock (it is read by one lane, so under a predicate), another clock (of the
# work; a record that is stored at once may be behind a branch instead), a try to wait, a shared load, an arrive, a bulk
# copy. A wait has two tries and its slow part between two records.
LETTERS = (
    ("R", r"@!?P\d\s+CS2R\.32 \S+ SR_(?:CLOCKLO|GLOBALTIMERLO)"),
    ("r", r"CS2R\.32 \S+ SR_CLOCKLO|S2UR \S+ SR_CLOCKLO"),
    ("W", r"(?:@!?P\d\s+)?SYNCS\.PHASECHK\S*TRYWAIT"),
    ("L", r"(?:@!?P\d\s+)?LDS\.128"),
    ("A", r"(?:@!?P\d\s+)?SYNCS\.ARRIVE"),
    ("C", r"(?:@!?P\d\s+)?UBLKCP"),
)
CONSUMER = "RW+RL+Rr*RRA"  # wait, got, (the tile is read), work begins, (works), ends, arrive
PRODUCER = "RW+RARC"  # wait, got and expect with one clock, copy


def instructions(cubin: bytes, folder: Path) -> list[str]:
    """The kernel's instructions, in the order of their addresses."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    text = subprocess.run([nvdisasm(), "-c", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", text)


def letters(cubin: bytes, folder: Path) -> str:
    """The kernel's instructions of those kinds, in the order of their addresses."""
    kinds = (
        next((letter for letter, what in LETTERS if re.match(what, one)), "") for one in instructions(cubin, folder)
    )
    return "".join(kinds)


def holds(found: str, *, behind_branches: bool = False) -> bool:
    order = f"{CONSUMER}{PRODUCER}W+$"  # the last: for copies in flight when a CTA gives up
    return re.match(order.replace("R", "[Rr]") if behind_branches else order, found) is not None


CHANGES = [{}, {"ARRIVE_LANES": 32}, {"STAGES": 1}, {"CONSUMER_WARPS": 8, "TILE_BYTES": 16384}]


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0, 1])
@pytest.mark.parametrize("clock", long_but([0], slow_but([0], [0, 1])))
@pytest.mark.parametrize("change", long_but([CHANGES[3]], slow_but([], CHANGES)))
def test_clocks_are_read_in_the_order_of_the_source(memory, clock, change, tmp_path):
    build = RING | change | {"PIPESIM_MEMORY": memory, "PIPESIM_CLOCK": clock}
    found = letters(compile_cubin(SOURCE, build).cubin, tmp_path)
    assert holds(found), found


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [2, pytest.param(1, marks=pytest.mark.long)])
def test_so_they_are_with_the_encodings_of_format_2(encoding, tmp_path):
    build = RING | {"PIPESIM_MEMORY": 0, "PIPESIM_ENCODING": encoding}
    found = letters(compile_cubin(SOURCE, build).cubin, tmp_path)
    assert holds(found), found


@pytest.mark.long
def test_records_that_are_stored_at_once_are_in_order_too(tmp_path):
    found = letters(compile_cubin(SOURCE, RING | {"PIPESIM_MEMORY": 1, "PIPESIM_EAGER": 1}).cubin, tmp_path)
    assert holds(found, behind_branches=True), found


ARRIVES = "if (lane < ARRIVE_LANES) mbarrier_arrive(empty);\n"
RECORDS = "PIPESIM_RECORD(SITE_consumer_arrive_empty, ARRIVE_LANES)\n"
GOT = "        PIPESIM_RECORD(SITE_consumer_got_full, 0)\n"
WAITS = "        PIPESIM_RECORD(SITE_consumer_wait_full, 0)\n"
GUARD = "FAULT == FAULT_RELEASE_EARLY) && faulty)) {\n"


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{GUARD}            {RECORDS}            {ARRIVES}", f"{GUARD}            {ARRIVES}            {RECORDS}"),
        (GOT, ""),
        (WAITS, WAITS + GOT.replace("got", "wait")),
    ],
)
def test_another_order_is_seen(before, after, tmp_path):
    for path in headers():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = SOURCE.read_text()
    assert text.count(before) == 1
    wrong = tmp_path / SOURCE.name
    wrong.write_text(text.replace(before, after))
    assert not holds(letters(compile_cubin(wrong, RING | {"PIPESIM_MEMORY": 0}).cubin, tmp_path))


#: A consumer of gemm_sm90 and one of attention_sm90 with positional records: what its first product's end looks like.
GEMM = {"RING_STAGES": 4, "NUM_CONSUMER": 2, "BLOCK_N": 128, "K_GROUP": 1, "LOOKAHEAD": 0, "DRAIN": 0}
ATTENTION = {"DEPTH": 128, "BLOCK_N": 128, "QK_STAGES": 1, "STAGES": 2, "NUM_CONSUMER": 2, "PINGPONG": 1}
RELEASE = "PIPESIM_RECORD_IF(warp == 0, SITE_consumer_arrive_empty, 1)\n"
BY_PLACE = {"TRACE": 1, "MEMORY": 0, "ENCODING": 2, "CHECKED": 0, "COUNTED": 1}


def after_products(path, build, folder):
    """What follows the first product that a consumer waits for, up to the arrive that gives its stage back.

    R: a record's clock; S: a store; B: a branch, or where one ends; A: the arrive.
    """
    kinds = (
        ("R", r"@!?P\d CS2R\.32"),
        ("S", r"(@!?P\d )?ST[SG]"),
        ("B", r"(@!?P\d )?(BRA|BSSY|BSYNC)"),
        ("A", r".*SYNCS\.ARR"),
    )
    found = ""
    for one in instructions(
        compile_cubin(path, build | {f"PIPESIM_{name}": value for name, value in BY_PLACE.items()}).cubin, folder
    ):
        if found or "WARPGROUP.DEPBAR" in one:
            found += next((letter for letter, what in kinds if re.match(what, one)), "" if found else " ")
        if found.endswith("A"):
            break
    return found.strip()


@pytest.mark.long
def test_no_branch_is_behind_the_record_of_an_arrive(tmp_path):
    gemm = source_file("gemm_sm90.cu")
    assert after_products(gemm, GEMM, tmp_path) == "RSA"
    assert after_products(source_file("attention_sm90.cu"), ATTENTION, tmp_path) == "RSA"
    for path in headers():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text, branch = gemm.read_text(), RELEASE.replace("_IF(warp == 0, ", "(")
    assert text.count(RELEASE) == 1
    (tmp_path / gemm.name).write_text(text.replace(RELEASE, f"if (warp == 0) {{ {branch} }}\n"))
    assert "B" in after_products(tmp_path / gemm.name, GEMM, tmp_path)


@pytest.mark.slow
def test_switched_off_there_is_no_record(tmp_path):
    assert "R" not in letters(compile_cubin(SOURCE, RING | {"PIPESIM_TRACE": 0}).cubin, tmp_path)
