"""Warps that are not followed to their end: what is wrong in what was read is refuted, and all else is unknown."""

import pytest

from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, program_of, text_of, word

START = SET_UP.format(first=1, count=1)
#: What follows depends on a parameter that the launch leaves open.
OPEN = """ ld.param.u32 %r20, [n];
 setp.eq.u32 %p6, %r20, 0;
 @%p6 bra other{0};
 {1}
other{0}:
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [{0}];"
BY_LANE = " @!%p2 " + ARRIVE + "\n"
WAIT = """again{0}:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [{1}], {2};
 @!%p9 bra again{0};
"""
ROLES = """ setp.eq.u32 %p1, %r1, 1;
 setp.ne.u32 %p2, %r2, 0;
 setp.eq.u32 %p3, %r1, 2;
 @%p3 bra third;
 @%p1 bra second;
"""


def roles(first: str, second: str, third: str = "") -> str:
    return f"{START}{ROLES}{first} bra.uni end;\nsecond:\n{second} bra.uni end;\nthird:\n{third}end:\n"


def read(body: str, warps: int = 2) -> Program:
    return program_of(body, warps, params=".param .u32 n", values=[word(None)])


def found(body: str, warps: int = 2) -> tuple[str, set[tuple[FaultKind | Ending, str]]]:
    """The verdict, and of each refutation the kind and the line of the fault, "" for a deadlock."""
    program = read(body, warps)
    assert program.coverage.stopped
    said = check(program)
    shown = {(r.kind, program.line(r.fault.agent, r.fault.pc) if r.fault else "") for r in said.refutations}
    return ("cut" if said.how is How.CUT else said.verdict.value), shown


STORE = " st.shared.u32 [tile], 7;\n" + BY_LANE.format("%r3") + OPEN.format(0, ARRIVE.format("%r3+8"))
LOAD = " ld.shared.u32 %r30, [tile];\n" + OPEN.format(1, "bar.warp.sync -1;\n" + ARRIVE.format("%r3+8"))
MORE = OPEN.format(5, ARRIVE.format("%r3+16"))


def line_of(body: str, instruction: str) -> str:
    lines = [n for n, line in enumerate(body.splitlines(), 11) if instruction in line]
    return f"small.ptx:{lines[0]}"


@pytest.mark.parametrize("unread", [ARRIVE.format("%r3+8"), "bar.sync 1;"])
def test_a_race_before_a_branch_on_an_unknown_value_is_a_race(unread: str) -> None:
    right = roles(STORE, WAIT.format(0, "%r3", 0) + LOAD)
    wrong = roles(STORE, LOAD + WAIT.format(0, "%r3", 0))
    assert found(right.replace(ARRIVE.format("%r3+8"), unread)) == ("cut", set())
    verdict, shown = found(wrong.replace(ARRIVE.format("%r3+8"), unread))
    assert (verdict, {kind for kind, _ in shown}) == ("refuted", {FaultKind.RACE})
    assert {line for _, line in shown} <= {line_of(wrong, "ld.shared"), line_of(wrong, "st.shared")}


def test_a_race_with_what_comes_after_the_branch_is_not_known() -> None:
    store = " st.shared.u32 [tile], 7;\n"
    first, meet = STORE.removeprefix(store), " bar.sync 1;\n"
    assert found(roles(store + meet + first + store, meet + LOAD)) == ("cut", set())
    assert found(roles(store + meet + store + first, meet + LOAD))[0] == "refuted"


def test_one_arrival_too_many_is_a_fault_whoever_goes_on_unread() -> None:
    twice = BY_LANE.format("%r3") * 2
    once = BY_LANE.format("%r3") + OPEN.format(0, ARRIVE.format("%r3")) + BY_LANE.format("%r3")
    assert found(roles(once, MORE)) == ("cut", set())
    wrong = roles(BY_LANE.format("%r3+8") + twice.replace("@!%p2 ", ""), MORE)
    assert found(wrong)[0] == "refuted"


def test_a_deadlock_stands_if_nobody_who_goes_on_unread_can_end_it() -> None:
    """The first two wait for each other. The third, which is not read to its end, may bring what they wait for."""
    one = WAIT.format(0, "%r3", 0) + BY_LANE.format("%r3+8")
    other = WAIT.format(1, "%r3+8", 0) + BY_LANE.format("%r3")
    helps = OPEN.format(2, ARRIVE.format("%r3"))
    stores = OPEN.format(3, "st.shared.u32 [tile], 1;\n exit;")
    assert found(roles(one, other, helps), 3) == ("cut", set())
    assert found(roles(one, other, stores + BY_LANE.format("%r3")), 3) == ("cut", set())
    alone = check(read(roles(one, other, stores), 3))
    assert [each.kind for each in alone.refutations] == [Ending.DEADLOCK]


def test_a_deadlock_before_anybody_stops_is_one() -> None:
    one = WAIT.format(0, "%r3", 0) + BY_LANE.format("%r3+8") + MORE
    other = WAIT.format(1, "%r3+8", 0) + BY_LANE.format("%r3")
    program = program_of(roles(one, other), params=".param .u32 n", values=[word(None)])
    assert program.coverage.stopped == ()
    assert [each.kind for each in check(program).refutations] == [Ending.DEADLOCK]


@pytest.mark.parametrize("does", [WAIT.format(2, "%r3+8", 0), f" {ARRIVE.format('%r3+8')}\n"])  # a hang, 32 arrivals
def test_what_the_answer_not_yet_leads_to_is_certain_only_where_it_is_the_answer(does: str) -> None:
    """After the barrier the phase has ended. A try may say no even so, which PTX allows and no one has seen."""
    asks = f" mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r3], 0;\n @%p5 bra known;\n{does}known:\n"
    for meets, usual in (" bar.sync 0;\n", False), ("", True):
        said = check(program_of(roles(BY_LANE.format("%r3") + meets, meets + asks)))
        assert [each.usual for each in said.refutations] == [usual]


def test_what_one_way_after_a_try_writes_is_no_item_that_others_expect() -> None:
    """Nobody arrives, so that the way is not taken. It was refuted: a read did not find what that way writes."""
    stores = " @!%p2 st.shared.u32 [tile], 7;\n"
    asks = " mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r3+8], 0;\n @!%p5 bra known;\n"
    body = roles(" @!%p2 ld.shared.u32 %r30, [tile];\n", f"{asks}{stores}known:\n")
    program = program_of(body.replace(" fence.", " st.shared.u32 [tile], 1;\n fence."))
    assert (check(program).refutations, bool(program.cut)) == ((), True)


GUARDED = [
    " ld.param.u32 %r20, [n];\n setp.eq.u32 %p6, %r20, 0;\n @%p6 bra skip{0};\n {1}\nskip{0}:\n",
    " ld.param.u32 %r20, [n];\n setp.eq.u32 %p6, %r20, 0;\n @!%p6 {1}\n",
    " ld.global.u32 %r20, [%rd1];\n setp.eq.u32 %p6, %r20, 0;\n @!%p6 {1}\n",
]


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_write_that_may_not_happen_is_none_for_a_read_that_does(guarded: str) -> None:
    """Where both may not happen they are taken to go together."""
    store, load = "st.shared.u32 [tile], 7;", "ld.shared.u32 %r30, [tile];"

    def said(first: str, second: str) -> How:
        address = " mov.u64 %rd1, 268435456;\n"
        return check(read(roles(f"{address} {first}\n bar.sync 1;\n", f"{address} bar.sync 1;\n {second}\n"))).how

    assert said(guarded.format(7, store), load) is How.PERHAPS
    assert said(guarded.format(7, store), guarded.format(8, load)) is How.CERTIFICATE
    assert said(store + guarded.format(7, store), load) is How.CERTIFICATE
    assert said(store, guarded.format(8, load)) is How.CERTIFICATE


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_race_is_certain_where_it_is_not_the_launch_that_decides_whether_it_happens(guarded: str) -> None:
    """Of two accesses that may not happen, one may exclude the other; of one, only what the launch gives can tell."""
    store = "st.shared.u32 [tile], 7;"

    def said(first: str, second: str) -> How:
        return check(
            read(roles(f" mov.u64 %rd1, 268435456;\n {first}\n", f" mov.u64 %rd1, 268435456;\n {second}\n"))
        ).how

    assert said(store, store.replace("7", "8")) is How.SCHEDULE
    given = "ld.param" in guarded
    assert said(guarded.format(7, store), store.replace("7", "8")) is (How.PERHAPS if given else How.SCHEDULE)
    assert said(guarded.format(7, store), guarded.format(8, store.replace("7", "8"))) is How.PERHAPS
    assert said(guarded.format(7, store), store.replace("[tile]", "[tile+64]")) is How.CERTIFICATE
    certain = store.replace("[tile]", "[tile+64]")
    assert said(certain + guarded.format(7, store), store + certain.replace("7", "9")) is How.SCHEDULE


def test_a_race_before_the_limit_of_the_reader_is_a_race() -> None:
    body = text_of(roles(" st.shared.u32 [tile], 7;\n", " st.shared.u32 [tile], 8;\n") + "here:\n bra here;\n")
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1), (1, 1, 1))
    program = extract(read_module(body, "small.ptx"), launch, EmulationLimits(instructions=5_000)).program
    assert "the limit of 5,000 warp instructions" in program.coverage.stopped[0]
    assert [each.kind for each in check(program).refutations] == [FaultKind.RACE]
