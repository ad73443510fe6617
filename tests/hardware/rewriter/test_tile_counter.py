"""A kernel that takes tiles from a counter, which other CTAs take from as well: its records have the answers."""

from dataclasses import replace

import pytest

from hwkernels.rewriter import RewrittenPtx, decode_records, instrument
from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.errors import EvidenceError, TraceFormatError
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer, Policies
from pipesim.ptx.text.read import read_module
from pipesim.trace.schema import HANDED_OUT, Device, Trace
from tests.support.ptx_machine import GLOBAL, Machine, run_grid
from tests.support.tile_kernels import RIGHT, TAIL, kernel_of_tiles

DEVICE = Device("machine", sm_khz=2_000_000)
CTAS, END = 16, 32
TEXT = kernel_of_tiles(TAIL.format(tail=3), RIGHT, counter=True)[0]
TEXT = TEXT.replace("mov.u64 %rd5, 268435456;", "ld.param.u64 %rd5, [counter];")
TEXT = TEXT.replace(".param .u32 n", ".param .u32 n, .param .u64 counter")
PARAMETERS = Parameter("n", Number("u32", END)), Parameter("counter", Pointer())
LAUNCH = Launch("kernel", (CTAS, 1, 1), (64, 1, 1), parameters=PARAMETERS, policies=Policies(tile_counter=CTAS))


def rewritten(cta: int = 0, text: str = TEXT) -> RewrittenPtx:
    return instrument(text, "tiles.ptx", replace(LAUNCH, cta=cta))


def run(kernel: RewrittenPtx, ctas: int, seed: int) -> bytes:
    """The buffer that so many CTAs leave, which come to the counter in a seeded order."""
    at = -(-kernel.nbytes // 8) * 8
    memory = bytearray(at + 64)
    memory[: kernel.nbytes] = kernel.initial()
    for place, value in ((0, GLOBAL), (8, END), (16, GLOBAL + at + 32), (32, CTAS)):
        memory[at + place : at + place + 8] = value.to_bytes(8, "little")
    symbols = {kernel.symbol: GLOBAL + at, "n": GLOBAL + at + 8, "counter": GLOBAL + at + 16}
    module = read_module(kernel.ptx, "tiles.ptx")
    machines = [Machine(module, module.entries[0], 64, memory, symbols, cta=cta) for cta in range(ctas)]
    assert run_grid(machines, seed)
    return bytes(memory[: kernel.nbytes])


def agreement(trace: Trace, cta: int = 0) -> Agreement:
    read = extract(read_module(TEXT, "tiles.ptx"), replace(LAUNCH, cta=cta))
    return compare_kernel(read, trace, "tiles").comparison.agreement


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("ctas", "cta"), [(1, 0), (3, 2), (5, 0)])
def test_a_cta_conforms_whichever_tiles_it_was_given(ctas: int, cta: int, seed: int) -> None:
    kernel = rewritten(cta)
    trace = decode_records(kernel, run(kernel, ctas, seed), DEVICE)
    tiles = trace.meta.extra[HANDED_OUT]
    assert tiles == sorted(set(tiles))
    assert (tiles == list(range(CTAS, END + 1, 2))) == (ctas == 1)
    assert tiles[-1] >= END
    assert agreement(trace, cta) is Agreement.CONFORMS


@pytest.mark.slow
def test_an_atomic_of_many_lanes_decides_about_no_tiles() -> None:
    """Of several answers nothing is known: the ring's place in shared memory does not depend on them."""
    more = " ld.param.u64 %rd5, [counter];\n atom.global.add.u32 %r60, [%rd5+8], 1;\n add.u32 %r60, %r60, %r4;\n"
    more += " and.b32 %r60, %r60, 4;\n add.u32 %r60, %r60, %r4;\n st.shared.u32 [%r60+72], %r10;\n"
    kernel = rewritten(text=TEXT.replace("next:\n", f"{more}next:\n", 1))
    assert decode_records(kernel, run(kernel, 1, 0), DEVICE).meta.extra[HANDED_OUT] == [
        16,
        18,
        20,
        22,
        24,
        26,
        28,
        30,
        32,
    ]


@pytest.mark.slow
def test_other_tiles_are_another_way() -> None:
    kernel = rewritten()
    data = run(kernel, 3, 0)
    trace = decode_records(kernel, data, DEVICE)
    tiles = trace.meta.extra[HANDED_OUT]

    def told(said: object) -> Trace:
        return replace(trace, meta=replace(trace.meta, extra=trace.meta.extra | {HANDED_OUT: said}))

    assert agreement(told(tiles[1:])) is not Agreement.CONFORMS
    assert agreement(told([])) is not Agreement.CONFORMS  # every tile would be this CTA's
    with pytest.raises(EvidenceError, match="no whole numbers"):
        agreement(told([*tiles, -1]))
    words = bytearray(data)
    last = tiles[-2].to_bytes(4, "little")
    at = next(n for n in range(0, len(words), 8) if words[n : n + 4] == last and n > 1000)
    words[at : at + 4] = END.to_bytes(4, "little")  # as if there had been no tile after it
    with pytest.raises(TraceFormatError):
        decode_records(kernel, bytes(words), DEVICE)
