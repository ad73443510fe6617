"""What was not understood: unknown instructions, and accesses of shared memory at addresses that are not known."""

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of, word

#: Warp 0 has a copy land in the tile; both wait for it. ``%r21`` is an offset that nobody knows, ``%rd4`` the tile's
#: generic address.
START = (
    SET_UP.format(first=1, count=1)
    + """ ld.param.u32 %r20, [n];
 and.b32 %r21, %r20, 4095;
 mov.u32 %r22, tile;
 add.u32 %r23, %r22, %r21;
 mov.u64 %rd1, 268435456;
 mov.u64 %rd2, tile;
"""
)
GENERIC = " cvta.shared.u64 %rd3, %rd2;\n cvt.u64.u32 %rd4, %r21;\n add.u64 %rd5, %rd3, %rd4;\n"
COPY = """ @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+1024], [%rd1], 32, [%r3];
issued:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""


def verdict(
    instruction: str, *, warps: int = 2, cluster: int = 1, copies: str = COPY, below: int = 4096
) -> tuple[str, str]:
    """The verdict, and what is said of the instruction: "stopped", "unread", "left out" or nothing."""
    body = f"{START}{GENERIC if '%rd5' in instruction else ''} {instruction}\n{copies}"
    body = body.replace("4095", str(below - 1 - 15))
    program = program_of(body, warps, params=".param .u32 n", values=[word(None)], cluster=cluster)
    found, said = check(program), program.coverage
    assert found.verdict is not Verdict.UNKNOWN or found.how in (How.CUT, How.UNREAD)
    mnemonic = instruction.removeprefix("@!%p0 ").split()[0].rstrip(";")
    lines = {"stopped": said.stopped, "unread": said.unread, "left out": said.left_out}
    return found.verdict.value, next((name for name, each in lines.items() if any(mnemonic in one for one in each)), "")


@pytest.mark.parametrize(
    "instruction",
    [
        "frob.shared::cta.b64 [%r3];",
        "frob.shared.u32 %r30, [tile+1024];",
        "frob.shared.u32 [%r23], %r2;",
        "frob.shared::cluster.b32 [%r23], %r2;",
        "frob.b64 [%rd3], %rd5;",
        "frob.shared.u32 %r30, %r23;",
        "frob.b64 [%rd5], %rd5;",
        "@!%p0 frob.shared::cta.b64 [%r3];",
        "frob.arrive.sync;",
        "frob.wait %r30, %r2;",
        "frob;",
        "mbarrier.frob.shared::cta.b64 [%r3];",
        "barrier.frob 0;",
        "barrier.cluster.frob;",
        "fence.frob;",
        "fence.proxy.frob;",
        "cp.async.frob [%r22], [%rd1], 16;",
        "cp.async.bulk.shared::cluster.global.frob [%r22], [%rd1], 16, [%r3];",
        "wgmma.frob.sync.aligned;",
        "tcgen05.frob.cta_group::1;",
        "clusterlaunchcontrol.frob [%r22], [%r3];",
        "griddepcontrol.frob;",
        "setmaxnreg.frob.sync.aligned.u32 40;",
    ],
)
def test_nothing_is_proved_where_others_may_notice_an_instruction_that_is_not_known(instruction: str) -> None:
    assert verdict(instruction) == ("unknown", "stopped")


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("frob.f32 %r30, %r2, %r2;", "left out"),
        ("frob.sync.u32 {%r30, %r31}, %r2, -1;", "left out"),
        ("frob.global.u32 [%rd1], %r2;", "left out"),
        ("frob.u32 [%rd1], %r2;", "left out"),
        ("griddepcontrol.wait;", ""),
        ("fence.proxy.alias;", ""),
    ],
)
def test_what_nobody_else_notices_is_listed_at_most(instruction: str, said: str) -> None:
    assert verdict(instruction) == ("proved", said)


def test_memory_of_its_own_is_known_by_its_variable() -> None:
    """One warp uses the tile; the mbarriers are another variable."""
    wait = COPY.replace("32;", "0;").replace(" cp.async.bulk", " // cp.async.bulk")
    for place in ("[tile+8]", "[%r22+1024]"):
        unknown, stores = f"@!%p0 frob.shared.u32 {place}, %r2;", " {} st.shared.u32 [tile], 1;\n"
        assert verdict(unknown, copies=stores.format("@!%p0") + wait) == ("proved", "left out")
        assert verdict(unknown, copies=stores.format("") + wait) == ("unknown", "stopped")
        assert verdict(unknown) == ("unknown", "stopped")


@pytest.mark.parametrize(
    "access",
    [
        "st.shared.u32 [%r23], %r2;",
        "ld.shared.u32 %r30, [%r23];",
        "ld.shared::cluster.u32 %r30, [%r23];",
        "st.shared::cluster.u32 [%r23], %r2;",
        "atom.shared.add.u32 %r30, [%r23], 1;",
        "red.shared.add.u32 [%r23], 1;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r30}, [%r23];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r23], {%r30};",
        "st.bulk.weak.shared::cta [%r23], 16, 0;",
        "cp.async.ca.shared.global [%r23], [%rd1], 16;",
        "st.u32 [%rd5], %r2;",
        "ld.u32 %r30, [%rd5];",
    ],
)
def test_nothing_is_proved_of_an_access_that_may_touch_what_a_copy_writes(access: str) -> None:
    assert verdict(access) == ("unknown", "unread")
    if not access.startswith(("cp", "st.bulk")):  # below what the copy writes
        assert verdict(access, below=1024) == ("proved", "left out")


def test_an_access_that_can_touch_nobody_elses_bytes_forbids_no_proof() -> None:
    meet = " bar.sync 0;\n"
    body = " mov.u32 %r22, tile;\n ld.param.u32 %r20, [n];\n add.u32 %r23, %r22, %r20;\n st.shared.u32 [%r23], 1;\n"
    alone = program_of(body + meet, 1, params=".param .u32 n", values=[word(None)])
    assert (check(alone).verdict, len(alone.coverage.left_out)) == (Verdict.PROVED, 1)
    assert alone.coverage.unread == ()
    shared = program_of(body + " ld.shared.u32 %r24, [tile];\n", 2, params=".param .u32 n", values=[word(None)])
    assert check(shared).how is How.UNREAD


def test_a_read_disturbs_no_reads() -> None:
    """Nothing but the mbarriers is written; of the word that both read nothing is known, and nobody needs it."""
    reads = START + " ld.shared.u32 %r30, [%r23];\n {} bar.sync 0;\n"
    program = program_of(reads.format(""), 2, params=".param .u32 n", values=[word(None)])
    assert (check(program).verdict, len(program.coverage.left_out)) == (Verdict.PROVED, 1)
    written = program_of(reads.format("st.shared.u32 [tile], 1;\n"), 2, params=".param .u32 n", values=[word(None)])
    assert check(written).how is How.UNREAD


def test_what_an_unknown_store_may_change_is_not_known() -> None:
    """A word that decides: after a store to nobody knows where it is as unknown as that address."""
    decides = " st.shared.u32 [tile], 1;\n {0}\n ld.shared.u32 %r30, [tile];\n setp.eq.u32 %p5, %r30, 1;\n"
    decides += " @%p5 mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
    for store, stopped in (("st.shared.u32 [%r23], %r2;", True), ("", False)):
        body = START + decides.format(store)
        program = program_of(body, 1, params=".param .u32 n", values=[word(None)])
        assert bool(program.coverage.stopped) is stopped


def test_a_finding_before_it_stands() -> None:
    twice = " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"
    assert verdict("frob.wait;", copies=COPY + twice)[0] == "unknown"
    assert verdict(twice, copies=COPY + " frob.wait;\n")[0] == "refuted"
