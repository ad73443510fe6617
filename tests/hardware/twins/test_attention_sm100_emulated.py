"""Blackwell's attention on the CPU, instruction by instruction: softmax(Q K^T) V against float64, and every warp does
what its protocol says, operation by operation.
"""

from __future__ import annotations

import shutil
from itertools import product
from math import e, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from hwkernels.device.bf16 import from_bf16, random_bf16
from hwkernels.device.sources import source_file
from hwkernels.recorder.table import read_table
from hwkernels.twins.hopper.attention_sm90 import attention
from pipesim.targets import find
from pipesim.trace.schema import EventKind
from pipesim.trace.sites import site_table
from tests.support.emulator.kernel import LEAVES_AT_ONCE, SLOW, Emulated, tensor
from tests.support.emulator.marks import wrong_marks

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator is C++")

NAME, ROWS, TILES_OF_HEAD, CALL = "attention_sm100", 128, 1, "maps[0], maps[1], maps[2], maps[3], n[0], n[1], f[0]"
MOVED, WAITED = (EventKind.EXPECT, EventKind.COPY), (EventKind.WAIT_ENTER, EventKind.WAIT_RETURN)
FUSED = {"depth": 128, "block_n": 64, "kv_stages": 3, "fused": 1, "qk_stages": 1, "pv_stages": 2}
SPLIT = {"depth": 128, "block_n": 128, "kv_stages": 2, "fused": 0, "qk_stages": 2, "pv_stages": 4}
Event = tuple[Any, ...]


class Twin(NamedTuple):
    """A mistake: text of the source, what stands there in the twin, and how it is noticed."""

    before: str
    after: str
    noticed: str


# In the order of the source: sizes, load, MMA, softmax, correction.
TWINS = (
    Twin("&& s ? ROWS :", "&& s ? TWIN(ROWS, 2 * ROWS) :", "gave up"),
    Twin("block ? K_SLICE : Q_SLICE + K_SLICE)", "block ? K_SLICE : Q_SLICE + TWIN(K_SLICE, K_SLICE - 16))", "gave up"),
    Twin("Ring k = {0, 1}, of_v", "Ring k = {0, TWIN(1u, 0u)}, of_v", "gave up"),
    Twin("0, at.q_row + ROWS, j", "0, at.q_row + TWIN(ROWS, 0u), j", "wrong values"),
    Twin("stage * K_SLICE + columns_16(i, KV", "stage * K_SLICE + columns_16(TWIN(i, i ^ 1), KV", "wrong values"),
    Twin("commit(at.barrier(BARRIER_K_cons, stage)", "commit(at.barrier(BARRIER_K_cons, TWIN(stage, 0u))", "gave up"),
    Twin("+ keys_16(i), KV_PANEL", "+ keys_16(i), TWIN(KV_PANEL, 1024u)", "wrong values"),
    Twin("+ weights_16(i), b", "+ TWIN(weights_16(i), weights_16(i) / 2), b", "wrong values"),
    Twin("1), block | i)", "1), TWIN(block, 0u) | i)", "wrong values"),
    Twin("commit(at.barrier(BARRIER_V_cons, slot)", "commit(at.barrier(BARRIER_V_cons, TWIN(slot, 0u))", "gave up"),
    Twin("held = v.stage;", "held = TWIN(v.stage, 0u);", "gave up"),
    Twin("columns_8(r,", "columns_8(TWIN(r, r ^ 1),", "wrong values"),
    Twin("row.sum * factor", "row.sum * TWIN(factor, 1.0f)", "wrong values"),
    Twin("block & 1 ^ 1, SITE_OF", "TWIN(block & 1 ^ 1, block & 1), SITE_OF", "gave up"),
    Twin("if (done && threadIdx.x < 32) tc", "if (done && threadIdx.x < TWIN(32, 0)) tc", "tensor memory is left"),
    Twin("factor != 1)", "TWIN(factor != 1, false))", "wrong values"),
    Twin("(at, BARRIER_OF(C, WG, cons)", "(at, TWIN(BARRIER_OF(C, WG, cons), BARRIER_OF(C, WG, prod))", "gave up"),
)


class Problem(NamedTuple):
    """One launch: its tensors, which the maps point into, and the result that must stand in the last at the end."""

    arrays: list[npt.NDArray[Any]]
    maps: list[Any]
    expected: npt.NDArray[np.float64]
    blocks: int


def panels(array: npt.NDArray[Any], rows: int, count: int) -> Any:
    """The map of a tensor in panels of 64 columns, and a box of so many rows and panels."""
    return tensor(array.reshape(len(array), -1, 64).transpose(1, 0, 2), (64, rows, count), 128)


def problem(params: dict[str, int], blocks: int, ctas: int, *, first_is_largest: bool = False) -> Problem:
    random, depth, keys = np.random.default_rng(blocks), params["depth"], blocks * params["block_n"]
    q, k, v = (
        random_bf16(random, (rows, depth)) for rows in (2 * ROWS * ctas, max(keys * ctas, 1), max(keys * ctas, 1))
    )
    if first_is_largest:
        k[params["block_n"] :] &= 0x8000  # then O is never rescaled
    heads = range(ctas)
    wide = [from_bf16(x).astype(np.float64) for x in (q, k, v)]
    expected = np.concatenate(
        [attention(wide[0][256 * h : 256 * h + 256], *(x[h * keys : h * keys + keys] for x in wide[1:])) for h in heads]
    )
    out, all_of = np.zeros_like(q), depth // 64
    part = all_of // params["qk_stages"]
    maps = [panels(q, ROWS, part), panels(k, params["block_n"], part), panels(v, params["block_n"], all_of),
            panels(out, ROWS, all_of)]  # fmt: skip
    return Problem([q, k, v, out], maps, expected, blocks)


def defines(params: dict[str, int]) -> dict[str, int]:
    return {name.upper(): value for name, value in params.items()}


def recorded(params: dict[str, int], said: Any, cta: int) -> list[list[Event]]:
    """The events of each warp: kind, barrier, stage, parity of a wait (else -1), and value in bytes or arrivals."""
    table = read_table(source_file(f"{NAME}{'' if params['fused'] else '_split'}.table.h"), defines(params))
    row, parts = params["depth"] * 2, params["qk_stages"]
    q, k, v = ROWS * row // parts, params["block_n"] * row // parts, params["block_n"] * row
    moved = (q, k, v, q + k)

    def event(record: Any) -> Event:
        site = table.sites[record.site]
        parity = record.parity if site.kind in WAITED else -1
        return (
            site.kind,
            site.barrier,
            record.stage,
            parity,
            moved[record.value] if site.kind in MOVED else record.value,
        )

    return [[event(record) for record in said.records.get((cta, agent.warp), [])] for agent in table.agents]


def of_protocol(params: dict[str, int], blocks: int) -> list[list[Event]]:
    protocol = site_table(find(NAME).build(find(NAME).defaults | params | {"kv_blocks": blocks}))
    sites = protocol.sites
    return [
        [(sites[r.site].kind, sites[r.site].barrier, r.stage, r.parity, r.value) for records in agent for r in records]
        for agent in protocol.records
    ]


def noticed(params: dict[str, int], kernel: Any, given: Problem, seed: int, twin: int = 0) -> str:
    """What is wrong with a run, in a word; "" if nothing is."""
    ctas = len(given.expected) // (2 * ROWS)
    said = kernel.run(
        given.maps, ctas, seed, [given.blocks, TILES_OF_HEAD], [log2(e) / sqrt(params["depth"])], twin=twin
    )
    if said.fault:
        return str(said.fault)
    out = from_bf16(given.arrays[-1]).astype(np.float64)
    error, usual = np.abs(out - given.expected), float(np.sqrt(np.mean(given.expected**2)))
    if not (error <= 2.0**-7 * np.abs(given.expected) + 2.0**-6 * usual).all():
        return "wrong values"
    if any(recorded(params, said, cta) != of_protocol(params, given.blocks) for cta in range(ctas)):
        return "other operations"
    return ""


def wrong_marks_of(params: dict[str, int], kernel: Any, given: Problem) -> str:
    """What is wrong with the marks of the last warp that waits."""
    program = find(NAME).build(find(NAME).defaults | params | {"kv_blocks": given.blocks})
    table = read_table(source_file(f"{NAME}{'' if params['fused'] else '_split'}.table.h"), defines(params))
    ctas, scale = len(given.expected) // (2 * ROWS), log2(e) / sqrt(params["depth"])
    numbers = [given.blocks, TILES_OF_HEAD]
    return wrong_marks(program, table, lambda marks: kernel.run(given.maps, ctas, 0, numbers, [scale], marks=marks))


def give_up_early(params: dict[str, int], kernel: Any, leaves_at_once: int = 0) -> None:
    """With deadlines that pass the right kernel ends with a report, wherever its warps stand: no trap, nothing left."""
    given, factor = problem(params, 3, 1), [log2(e) / sqrt(params["depth"])]

    def ends(seed: int, deadline_ns: int, twin: int = 0) -> str:
        n = [given.blocks, TILES_OF_HEAD]
        return str(kernel.run(given.maps, 1, seed, n, factor, twin=twin, delay=SLOW, deadline_ns=deadline_ns).fault)

    found = {ends(seed, deadline_ns) for seed, deadline_ns in product(range(3), (0, 3000, 6000))}
    assert {fault.partition(":")[0] for fault in found} | {""} == {"", "gave up"}, found
    assert len(found - {""}) >= 2
    if leaves_at_once:
        assert ends(0, 0, twin=leaves_at_once).startswith("a copy outlives the kernel")


@pytest.mark.slow
def test_it_computes_and_does_what_its_protocol_says_and_wrong_twins_are_noticed(tmp_path):
    twins = [*((twin.before, twin.after) for twin in TWINS), LEAVES_AT_ONCE]
    kernel = Emulated(NAME, defines(FUSED), CALL, tmp_path, twins)
    for blocks, ctas in ((0, 1), (1, 1), (4, 2)):
        assert noticed(FUSED, kernel, problem(FUSED, blocks, ctas), seed=blocks) == ""
    assert noticed(FUSED, kernel, problem(FUSED, 3, 1, first_is_largest=True), seed=3) == ""
    assert wrong_marks_of(FUSED, kernel, problem(FUSED, 4, 2)) == ""
    for number, twin in enumerate(TWINS, start=1):
        found = noticed(FUSED, kernel, problem(FUSED, 3, 1), 0, number)
        assert found.startswith(twin.noticed), (twin.after, found)
    give_up_early(FUSED, kernel, len(TWINS) + 1)


@pytest.mark.slow
def test_so_it_does_with_a_ring_each_for_k_and_v(tmp_path):
    kernel = Emulated(NAME, defines(SPLIT), CALL, tmp_path)
    for blocks in (1, 3):
        assert noticed(SPLIT, kernel, problem(SPLIT, blocks, 1), seed=blocks) == ""
    give_up_early(SPLIT, kernel)
