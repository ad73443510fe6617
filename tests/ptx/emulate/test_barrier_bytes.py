"""Memory over an mbarrier: it is free before the init and after the inval, and only in that order."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of

MEET = " bar.sync 0;\n"
INVAL = """ @%p0 bra ended;
 mbarrier.inval.shared::cta.b64 [%r3];
ended:
"""
#: By a thread of the other warp, over bars[0].
STORE = """ setp.ne.u32 %p1, %r0, 32;
 @%p1 bra stored;
 st.shared.u32 [%r3], 7;
stored:
"""
START = SET_UP.format(first=1, count=1)


def test_after_the_inval_its_bytes_are_memory() -> None:
    found = check(program_of(START + INVAL + MEET + STORE))
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_what_may_come_before_the_inval_is_a_race() -> None:
    found = check(program_of(START + INVAL + STORE))
    assert found.verdict is Verdict.REFUTED
    assert {shown.kind for shown in found.refutations} == {FaultKind.RACE}


@pytest.mark.parametrize("body", [START + STORE, START + MEET + STORE + MEET + INVAL])
def test_over_a_barrier_that_lives_nothing_is_proved(body: str) -> None:
    program = program_of(body)
    assert program.coverage.undefined == (
        f"small.ptx:{program_line(body)}: it writes over the mbarrier of small.ptx:17, which is in use",
    )
    assert check(program).how is How.UNDEFINED


def program_line(body: str) -> int:
    """The line of the store in the file."""
    head = 10
    return head + body[: body.index("st.shared")].count("\n") + 1
