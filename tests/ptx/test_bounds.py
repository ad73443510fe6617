"""What a hostile kernel or launch file asks for ends within bounds: an error, or a program that is not whole."""

import time

import pytest

from pipesim.bounds import MAX_KERNEL_INSTRUCTIONS
from pipesim.errors import PtxError
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.ptx.emulate import regions
from pipesim.ptx.emulate.cluster import ENDLESS, EmulationLimits
from pipesim.ptx.emulate.global_memory.global_memory import GlobalMemory, HandedOut
from pipesim.ptx.emulate.memory import Bytes
from pipesim.ptx.emulate.stop import EmulationStop
from pipesim.ptx.emulate.values import Leaf, Unknown
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.flow import graph
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Field, Launch, Number, Parameter, Pointer, Policies
from pipesim.ptx.text.read import read_module
from tests.support.paths import EXAMPLES
from tests.support.small_ptx import SET_UP, program_of, text_of

SHAPE = (1, 1, 1)
LAUNCH = Launch("kernel", SHAPE, SHAPE, SHAPE)
START = SET_UP.format(first=1, count=1)


def extracted(body: str, limits: EmulationLimits, threads: int = 64) -> Extraction:
    launch = Launch("kernel", SHAPE, (threads, 1, 1), SHAPE)
    return extract(read_module(text_of(START + body), "small.ptx"), launch, limits)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "mov.u32 %r10, 1; here: add.u32 %r10, %r10, 1; mul.lo.u32 %r11, %r10, 0; bar.sync %r11; bra here;",
            "the limit of 20,000 warp instructions was reached",
        ),
        ("here: bra here;", ENDLESS),
        ("here: setp.ne.u32 %p5, %r0, 5;\n bar.red.and.pred %p6, 0, %p5;\n @!%p6 bra here;", ENDLESS),
    ],
)
def test_a_loop_without_end_is_followed_for_a_while_and_proves_nothing(body: str, why: str) -> None:
    made = extracted(body, EmulationLimits(instructions=20_000))
    assert made.instructions < 30_000
    assert why in made.program.coverage.stopped[0]
    assert check(made.program).verdict is Verdict.UNKNOWN


def test_what_is_in_flight_lands_before_a_wait_is_said_to_be_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are looked at early here: all warps wait, and a copy has not landed."""
    monkeypatch.setattr("pipesim.ptx.emulation._FEW", 300)
    file = EXAMPLES / "row_max.ptx"
    launch = read_launch(file.with_suffix(".json").read_text().replace("1280", "2048"), file.name)
    made = extract(read_module(file.read_text(), file.name), launch, EmulationLimits(instructions=20_000))
    assert made.program.coverage.stopped == ()


def test_a_loop_that_records_without_end_stops_at_the_limit_of_operations() -> None:
    body = "here: mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 16;\n bar.warp.sync -1;\n bra here;\n"
    made = extracted(body, EmulationLimits(operations=500))
    assert sum(map(len, made.program.code)) < 5_000
    assert "the limit of 500 operations was reached" in made.program.coverage.stopped[0]
    assert extracted(body.replace("bra here;", ""), EmulationLimits(operations=500)).program.coverage.stopped == ()
    made = extracted(body, EmulationLimits(operations=500), threads=1024)
    assert sum(map(len, made.program.code)) < 5_000, "it is looked at after each warp, not after all of them"


def test_branches_whose_ways_are_long_are_refused_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    row = " setp.eq.u32 %p9, %r2, {0};\n @%p9 bra m{0};\n st.shared.u32 [tile], %r2;\n"
    many = 20
    body = "".join(map(row.format, range(many))) + "".join(f"m{n}:\n" for n in range(many)) + " bar.sync 0;\n"
    assert program_of(START + body).agents
    monkeypatch.setattr(regions, "MAX_REGION_STEPS", 100)
    with pytest.raises(PtxError, match="too large to be followed"):
        program_of(START + body)


@pytest.mark.slow
def test_a_kernel_that_is_too_long_is_refused() -> None:
    with pytest.raises(PtxError, match="131,072 instructions"):
        program_of(START + " add.u32 %r10, %r10, 1;\n" * MAX_KERNEL_INSTRUCTIONS)


def test_a_word_far_from_the_beginning_of_its_memory_takes_no_memory_between() -> None:
    far = (1 << 38) - 2
    function = read_module(text_of("", ".param .u64 a"), "small.ptx").functions[0]
    memory = Pointer(
        256, (Field(0, Number("u32", 7)), Field(254, Number("u32", 0x01020304)), Field(far, Number("u8", 9)))
    )
    image = Image(Launch("kernel", SHAPE, SHAPE, SHAPE, parameters=(Parameter("a", memory),)), function)
    at = image.parameter(0, 8)
    assert at is not None
    read = [image.load(at + offset, size) for offset, size in ((0, 4), (0, 8), (254, 4), (254, 5), (far, 1), (far, 2))]
    assert read == [7, None, 0x01020304, None, 9, None]


def test_tables_of_branches_that_lead_to_too_many_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [f"m{n}" for n in range(20)]
    table = f"table: .branchtargets {', '.join(labels)};\n"
    body = table + " brx.idx %r0, table;\n" * 10 + "".join(f"{label}:\n" for label in labels) + " bar.sync 0;\n"
    assert program_of(START + body).agents
    monkeypatch.setattr(graph, "MAX_FLOW_EDGES", 100)
    with pytest.raises(PtxError, match="lead to more than 100 places"):
        program_of(START + body + "\n")


def test_stores_to_very_many_words_are_not_followed_further(monkeypatch: pytest.MonkeyPatch) -> None:
    function = read_module(text_of(""), "small.ptx").functions[0]
    image = Image(LAUNCH, function)
    memory = GlobalMemory(image, Policies(), FreeInputs(), HandedOut(LAUNCH, image, FreeInputs()))
    monkeypatch.setattr("pipesim.ptx.emulate.global_memory.global_memory.MAX_STORED_BYTES", 100)
    for address in range(0, 104, 4):
        memory.store(0, address, 4, 7)
    with pytest.raises(EmulationStop, match="more than 100 bytes of global memory are stored"):
        memory.store(0, 104, 4, 7)


def test_of_very_many_words_none_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipesim.ptx.emulate.memory.MAX_STORED_BYTES", 100)
    memory = Bytes()
    for address in range(0, 104, 4):
        memory.store(address, 4, 7)
    leaf = Leaf("a load", 1)
    assert memory.load(0, 4, leaf) == 7
    memory.store(104, 4, 7)
    assert isinstance(memory.load(0, 4, leaf), Unknown)
    assert memory.load(104, 4, leaf) == 7


MALFORMED = (
    "atom.global.add.u32 %r10;", "atom.shared.add.u32 %p9, (%r0), tile;",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [tile];", "setp.eq.b32 %p9;", "mad.lo.s32 %r10;",
    "ld.shared.b32 [tile+4], [%rd1];", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 %r10;",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _;", "shfl.sync.idx.b32 %r10;", "vote.sync.any.pred %p9;",
    "mbarrier.init.shared::cta.b64 [%r3];",
)  # fmt: skip


@pytest.mark.parametrize("row", MALFORMED)
def test_an_instruction_with_operands_that_it_cannot_have_is_an_error_at_its_line(row: str) -> None:
    used = " setp.eq.u32 %p8, %r10, 0;\n @%p9 bra over;\n @%p8 bra over;\n bar.sync 0;\nover:\n"
    body = START + f" {row}\n{used}"
    line = text_of(body).splitlines().index(f" {row}") + 1
    with pytest.raises(PtxError, match="cannot be followed with these operands") as caught:
        program_of(body)
    assert caught.value.place == f"line {line} of the PTX"


HOSTILE_TEXTS = {
    "sections": ".section .debug_str {\nx:\n.b8 1\n" * 50_000,
    "blocks": ".visible .entry k(){" + "{" * 200_000,
    "parameters": ".visible .entry k(" + "(" * 200_000,
    "attributes": ".visible " * 100_000 + ".attribute(" * 50_000,
    "quotes": ".visible .entry k(){ .pragma " + '"a' * 300_000,
    "vectors": ".visible .entry k(){ mov.u32 %r1, " + "{" * 50_000 + "1" + "}" * 50_000 + "; }",
    "signs": ".visible .entry k(){ mov.u32 %r1, " + "!-" * 50_000 + "1; }",
    "blanks": ".visible .entry k(){ " + (" " * 3_000 + "\n") * 500 + "x }",
    "guards": ".visible .entry k(){ " + "@ " * 200_000 + "x }",
    "modifiers": ".visible .entry k(){ mov" + ".x" * 200_000 + " }",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_a_text_is_refused_in_time_that_grows_with_its_length(text: str) -> None:
    """No pattern looks at the rest of the text from every place: sections that are not closed once took minutes."""
    began = time.process_time()
    with pytest.raises(PtxError):
        read_module(".version 8.0\n.target sm_90a\n" + text, "hostile.ptx")
    assert time.process_time() - began < 10
