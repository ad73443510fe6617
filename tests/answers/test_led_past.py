"""Why something did not come: kernels in which a branch leads a warp past an arrive, a copy or a meeting, or out."""

from pathlib import Path

import pytest

from pipesim.answers.checking.counterexample import corrections_of, led_past_of
from pipesim.prove.check import check
from pipesim.report.findings.finding import led_past_words
from pipesim.targets import find
from tests.support.lanes import slow_but

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
ARRIVE, COPY, WAIT, LEFT = ("mbarrier.arrive.shared", "cp.async.bulk.shared", "add.s32 	%r25", "$L__BB0_27")
NEXT, SKIPS = "$L__BB0_23", "@%p8 bra 	$L__BB0_23;"


def goes(compare: str, to: str) -> str:
    return f"{{\n.reg .pred q;\n{compare};\n@q bra {to};\n}}\n"


def other_arrive(at: int) -> str:
    """Another instruction arrives at one tile."""
    same = f"mbarrier.arrive.shared::cta.b64 _, [%r87];\nbra {NEXT};"
    return f"{goes(f'setp.ne.s32 q, %r136, {at}', 'first')}{same}\nfirst:\n"


def in_loop(at: int) -> str:
    """The arrive is in the third iteration of a loop, which has one at a tile."""
    arrive = f"{goes('setp.ne.s32 q, %r57, 3', 'over')}mbarrier.arrive.shared::cta.b64 _, [%r87];\nover:\n"
    last = f"mov.u32 %r58, 3;\n{goes(f'setp.ne.s32 q, %r136, {at}', 'begin')}mov.u32 %r58, 1;\nbegin:\n"
    loop = f"mov.u32 %r57, 0;\n{last}round:\nadd.s32 %r57, %r57, 1;\n{arrive}"
    return f"{loop}{goes('setp.lt.s32 q, %r57, %r58', 'round')}bra {NEXT};"


def past(who: str, barrier: int, why: str, times: str = "") -> str:
    led = f"did not arrive on s.empty[{barrier}]: this branch led it past its arrive (row_max.cu:60)"
    return f"{who} {led}{why}{f', the {times} time it came there' if times else ''}"


OMIT = "compute arrives every time (row_max.cu:60): omit the condition at row_max.cu:60"
COPY_OMIT = "load does so every time (row_max.cu:51): omit the condition at row_max.cu:51"
AND = ".reg .pred r;\nsetp.eq.s32 r, %r136, 4;\nand.pred q, q, r"

#: What is inserted before which instruction of the right kernel; then what is said, and the correction ("": none).
CASES: dict[str, tuple[str, str, str, str]] = {
    "an arrive, at one tile": (
        ARRIVE, goes("setp.eq.s32 q, %r136, 4", NEXT), past("compute/0", 1, "", "5th"), OMIT
    ),
    "an arrive, by one of two conditions": (
        ARRIVE, goes("setp.eq.s32 q, %r136, 4;\nor.pred q, q, %p16", NEXT),
        past("compute/0", 1, "", "5th"), OMIT,
    ),
    "an arrive of which there are two": (
        ARRIVE, other_arrive(1) + goes("setp.eq.s32 q, %r136, 4", NEXT),
        past("compute/0", 1, "", "4th"), OMIT,
    ),
    "an arrive in a loop of three iterations": (
        ARRIVE, in_loop(4), past("compute/0", 1, ", since 1 >= 1", "13th"), "*"
    ),
    "an arrive, by one warp": (
        ARRIVE, goes("setp.gt.s32 q, %r4, 512", NEXT), past("compute_2", 0, ", since 1,024 > 512"),
        OMIT.replace("compute", "compute_2"),
    ),
    "all lanes arrive, but two": (
        ARRIVE, goes(f"setp.gt.s32 q, %r2, 29;\n{AND}", NEXT), past("2 lanes of compute/0", 1, "", "5th"), OMIT
    ),
    "all lanes arrive, but one": (
        ARRIVE, goes(f"setp.gt.s32 q, %r2, 30;\n{AND}", NEXT),
        past("lane 31 of compute/0", 1, ", since 31 > 30", "5th"), OMIT,
    ),
    "all lanes arrive, but at no tile": (
        ARRIVE, goes("setp.ge.s32 q, %r136, 0", NEXT), past("compute/0", 0, ", since 0 >= 0"), OMIT
    ),
    "a copy": (
        COPY, goes("setp.ge.u32 q, %r136, 7", NEXT),
        ("load did not copy to s.full[1]: this branch led it past its copy (row_max.cu:51), "
         "since 7 >= 7, the 8th time it came there"),
        COPY_OMIT,
    ),
    "the loop, too early": (
        COPY, goes("setp.lt.s32 q, %r132, 0", NEXT) + goes("setp.eq.s32 q, %r136, 4", LEFT),
        ("load did not copy to s.full[1]: this branch ended its way to the copy (row_max.cu:51), "
         "the 5th time it came there"),
        COPY_OMIT,
    ),
    "a meeting": (
        WAIT, goes(f"setp.eq.s32 q, %r1, 2;\n{AND}", "over") + "bar.sync 1, 64;\nover:",
        ("compute/1 did not reach named barrier 1: this branch led it past its sync (row_max.cu:57), "
         "the 5th time it came there"),
        "compute does so every time (row_max.cu:57): omit the condition at row_max.cu:57",
    ),
}  # fmt: skip


@pytest.mark.slow
def test_a_role_that_never_arrives_there_is_not_named(tmp_path: Path) -> None:
    """With a count that is too high no branch is wrong; a warp that waits before its arrive has not been led past it.

    With the count of all warps, of which one is led past its arrive, that one is named.
    """
    text = (EXAMPLES / "row_max.ptx").read_text().replace(SKIPS, "")
    led = goes("setp.gt.s32 q, %r4, 512", NEXT)
    right = text.replace(f"\t{ARRIVE}", f"\t{led}\t{ARRIVE}")
    named = []
    for each in (text.replace("%r54, 2;", "%r54, 3;"), right, right.replace("%r54, 2;", "%r54, 3;")):
        (tmp_path / "row_max.ptx").write_text(each)
        (tmp_path / "row_max.json").write_bytes((EXAMPLES / "row_max.json").read_bytes())
        target = find(str(tmp_path / "row_max.ptx"))
        (refuted,) = check(target.build()).refutations
        named.append([past.agent for past, _ in led_past_of(target.build(), refuted, target.editable)])
    assert named == [[], ["compute_2"], ["compute_2"]]


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("name", slow_but({"a copy"}, CASES))
def test_the_branch_that_led_past_it_is_named_with_its_values(name: str, tmp_path: Path) -> None:
    before, inserted, said, correction = CASES[name]
    for file in ("row_max.cu", "row_max.json"):
        (tmp_path / file).write_bytes((EXAMPLES / file).read_bytes())
    text = (EXAMPLES / "row_max.ptx").read_text().replace(SKIPS, "")
    assert text.count(f"	{before}") == 1
    if name.startswith("all lanes"):
        text = text.replace("%r54, 2;", "%r54, 64;").replace("@%p16 bra", "// @%p16 bra")
    (tmp_path / "row_max.ptx").write_text(text.replace(f"	{before}", f"	{inserted}\n	{before}"))
    target = find(str(tmp_path / "row_max.ptx"))
    program = target.build()
    (refuted,) = check(program).refutations
    past = led_past_of(program, refuted, target.editable)
    assert [led_past_words(each) for each, _ in past][:1] == [said]
    given = corrections_of(
        program, refuted, program, lambda done, of: None, target.editable, [branch for _, branch in past]
    )
    if correction != "*":  # the count of the loop is what is wrong, which no correction changes alone
        offered = [each.said.partition(" (row_max.ptx")[0] for each in given[:1]]
        assert offered == ([correction] if correction else [])


@pytest.mark.slow
def test_who_is_held_up_is_not_led_past_the_meeting_at_the_end(tmp_path: Path) -> None:
    """A group that waits has not met the others: said is which arrive did not come, and nothing of another group's."""
    kernel = EXAMPLES.parents[1] / "tests" / "ptx" / "kernels" / "scale_ws_s3-sm_90a.ptx"
    arrive = "	@%p33 mbarrier.arrive.shared::cta.b64 _, [%r86];"
    for skips, said in ((5, "the 6th time it came there"), (99, "")):
        (tmp_path / "k.json").write_bytes(kernel.with_suffix(".json").read_bytes())
        skip = f"{{\n.reg .pred q;\nsetp.eq.u32 q, %r183, {skips};\n@q bra over;\n{arrive}\nover:\n}}\n"
        (tmp_path / "k.ptx").write_text(kernel.read_text().replace(arrive, skip))
        target = find(str(tmp_path / "k.ptx"))
        program = target.build()
        found = [each for one in check(program).refutations for each in led_past_of(program, one, target.editable)]
        assert [(each.does, led_past_words(each).partition(", ")[2]) for each, _ in found] == [("arrive", said)] * bool(
            said
        )
