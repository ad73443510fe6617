"""What PTX does not allow of bulk copies, mbarriers and shared memory: with it nothing is proved."""

from __future__ import annotations

import pytest

from pipesim.model.assumptions import LENIENT
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of

START = SET_UP.format(first=1, count=1) + " mov.u64 %rd1, 268435456;\n setp.eq.u32 %p1, %r1, 1;\n"
WAIT = """again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [{0}], 0;
 @!%p9 bra again;
"""


def verdict(body: str, cluster: int = 1) -> str:
    found = check(program_of(START + body, cluster=cluster).with_strictness(LENIENT))
    return found.verdict.value if found.how is not How.UNDEFINED else "undefined"


def copied(size: int, place: str = "[tile]", expected: int | None = None) -> str:
    return f""" mov.u32 %r20, {size};
 @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size if expected is None else expected};
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {place}, [%rd1], %r20, [%r3];
issued:
{WAIT.format("%r3")}"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (copied(32), copied(24)),
        (copied(16, place="[tile+16]"), copied(16, place="[tile+8]")),
        (copied(4096), copied(4112)),
        (" @!%p0 mbarrier.init.shared::cta.b64 [%r3+16], 1;\n", " @!%p0 mbarrier.init.shared::cta.b64 [%r3+20], 1;\n"),
        (" @!%p0 mbarrier.init.shared::cta.b64 [%r3+16], 1;\n", " @!%p1 mbarrier.init.shared::cta.b64 [%r3+16], 1;\n"),
    ],
)
def test_what_is_not_allowed_forbids_a_proof(right: str, wrong: str) -> None:
    assert verdict(right) == "proved"
    assert verdict(wrong) == "undefined"


def test_a_copy_of_no_bytes_completes_none() -> None:
    assert verdict(copied(0)) == "proved"
    assert verdict(copied(0, expected=16)) == "refuted"


def test_a_wait_is_for_an_mbarrier_of_the_own_cta() -> None:
    meet = " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
    text = " mapa.shared::cluster.u32 %r10, %r3, {0};\n" + meet + " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
    text += WAIT.format("%r10") + meet
    own = " mov.u32 %r11, %cluster_ctarank;\n"
    assert verdict(own + text.format("%r11"), cluster=2) == "proved"
    assert verdict(text.format(1), cluster=2) == "undefined"


def test_a_source_in_shared_memory_is_read_and_how_long_is_left_out() -> None:
    text = """ mov.u32 %r30, tile;
 add.u32 %r31, %r30, 1024;
 {0} st.shared.v2.u64 [tile+1024], {{%rd1, %rd1}};
 {1} @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r30], [%r31], 16, [%r3];
issued:
"""
    meet = "fence.proxy.async.shared::cta;\n bar.sync 0;\n"
    ordered = text.format("@%p1", meet) + WAIT.format("%r3")
    assert verdict(ordered) == "proved"
    assert verdict(text.format("@%p1", "fence.proxy.async.shared::cta;\n") + WAIT.format("%r3")) == "refuted"
    (said,) = program_of(START + ordered).coverage.left_out
    assert said.endswith("how long it reads its source in shared memory")
    again = START + ordered + " bar.sync 0;\n @!%p0 st.shared.u32 [tile+"
    assert check(program_of(again + "1040], 1;\n").with_strictness(LENIENT)).verdict.value == "proved"
    late = check(program_of(again + "1036], 1;\n").with_strictness(LENIENT))
    assert late.how is How.UNREAD  # perhaps while the copy still reads it


@pytest.mark.parametrize(
    "exchange",
    ["vote.sync.any.pred %p7, %p4, {0};", "shfl.sync.idx.b32 %r9, %r2, 0, 31, {0};", "elect.sync _|%p7, {0};"],
)
def test_lanes_of_a_mask_exchange_values_on_one_way(exchange: str) -> None:
    """Those that wait for what comes after the exchange never get there: PTX has all lanes of the mask wait."""
    half = f""" setp.lt.u32 %p4, %r2, 16;
 @!%p4 bra others;
 {exchange}
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra done;
others:
 {WAIT.format("%r3")}done:
"""
    assert verdict(half.format("0xffff")) == "proved"
    assert verdict(half.format(-1)) == "undefined"
    ended = f" setp.ge.u32 %p4, %r2, 16;\n @%p4 bra done;\n {exchange}\ndone:\n"
    assert verdict(ended.format(-1)) == "proved"
