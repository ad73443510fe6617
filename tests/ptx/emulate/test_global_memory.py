"""Words of global memory that decide: what the launch gives, until a warp changes them; loops that wait for one."""

from pipesim.model.coverage import LENIENT, Assumed, Assumption
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Field, Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, program_of, text_of

START = SET_UP.format(first=1, count=1) + """ ld.param.u64 %rd1, [words];
 setp.eq.u32 %p1, %r1, 1;
 setp.ne.u32 %p2, %r2, 0;
"""  # fmt: skip
#: Lane 0 arrives if the word is not 0; all wait for that.
DECIDES = """ setp.eq.u32 %p5, %r11, 0;
 @%p5 bra decided;
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];
decided:
"""
WAIT = """again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""
LOAD = " ld.global.u32 %r11, [%rd1];\n"


def program(first: str, second: str, word: int = 1) -> Program:
    """What warp 0 and warp 1 do before both wait. ``word``: the first of global memory; the second is 0."""
    body = f"{START} @%p1 bra other;\n{first} bra.uni meet;\nother:\n{second}meet:\n{WAIT}"
    words = Pointer(256, (Field(0, Number("u32", word)), Field(4, Number("u32", 0))))
    return program_of(body, params=".param .u64 words", values=[words])


def verdict(of: Program) -> str:
    return check(of.with_strictness(LENIENT)).verdict.value


def test_a_warp_sees_what_it_has_stored() -> None:
    store = " st.global.u32 [%rd1+{0}], 0;\n"
    assert verdict(program(store.format(4) + LOAD + DECIDES, "")) == "proved"
    assert verdict(program(store.format(0) + LOAD + DECIDES, "")) == "refuted"


def test_what_another_warp_has_stored_is_not_known() -> None:
    after = program(" bar.sync 0;\n" + LOAD + DECIDES, " @!%p2 st.global.u32 [%rd1], 0;\n bar.sync 0;\n")
    assert verdict(after) == "unknown"
    elsewhere = program(" bar.sync 0;\n" + LOAD + DECIDES, " @!%p2 st.global.u32 [%rd1+4], 0;\n bar.sync 0;\n")
    assert verdict(elsewhere) == "proved"


def test_that_a_word_is_read_before_another_warp_changes_it_is_stated() -> None:
    said = Assumed(Assumption.GLOBAL_WORDS, "byte 0 at parameter 0 is read by one warp before another one changes it")
    for change in (" @!%p2 st.global.u32 [%rd1+{0}], 0;\n", " @!%p2 red.global.add.u32 [%rd1+{0}], 1;\n"):
        assert said in program(change.format(0), LOAD + DECIDES).coverage.assumed
        assert said not in program(change.format(4), LOAD + DECIDES).coverage.assumed


def test_that_a_loop_ends_which_waits_for_global_memory_is_stated() -> None:
    spin = """flag:
 ld.{0}global.u32 %r12, [%rd1+4];
 setp.eq.u32 %p6, %r12, 0;
 @%p6 bra flag;
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
    (said,) = program(spin.format("acquire.gpu."), "").coverage.assumed
    assert said.what.endswith("ends, which waits for global memory")
    (weak,) = program(spin.format(""), "").coverage.assumed  # it need not see what others store
    assert (weak.kind, weak.what) == (Assumption.LOOPS, "the loop at small.ptx:27 ends")
    lock = spin.replace("ld.{0}global.u32 %r12, [%rd1+4]", "atom.global.cas.b32 %r12, [%rd1+4], 0, 1")
    assert any("ends, which waits" in each.what for each in program(lock, "").coverage.assumed)


def test_a_table_in_constant_memory_holds_its_initial_values() -> None:
    """Which the host may change: that is stated. One without them is not known, and named."""
    load = " ld.const.u32 %r11, [table+{0}];\n"
    body = f"{START} @%p1 bra other;\n{load}{DECIDES} bra.uni meet;\nother:\nmeet:\n{WAIT}"
    given = Parameter("words", Pointer(256))
    table = ".const .align 4 .b8 table[16] = {0, 0, 0, 0, 7};\n.const .align 4 .b8 other[16];\n.visible"
    for offset, said in ((4, "proved"), (0, "refuted"), (12, "refuted"), (16, "unknown")):
        text = text_of(body.format(offset), ".param .u64 words").replace(".visible", table)
        made = extract(read_module(text, "k.ptx"), Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=(given,))).program
        assert verdict(made) == said
        assumed = Assumed(Assumption.GLOBAL_WORDS, "table in constant memory holds its initial values")
        assert (assumed in made.coverage.assumed) is (offset < 16)
