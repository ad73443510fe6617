"""``st.async`` and ``red.async``: bytes that lanes store in another CTA, counted by an mbarrier of it."""

import pytest

from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.protocols.limits import require_fits
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of, said

MEET = " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
#: Warp 0 of each CTA stores in the tile of the other CTA, from 1,024 on; ``{first}``: before all have met.
EXCHANGE = (
    SET_UP.format(first=1, count=1)
    + """ mov.u32 %r10, %cluster_ctarank;
 xor.b32 %r11, %r10, 1;
 mov.u32 %r12, tile;
 mad.lo.u32 %r13, %r2, {size}, %r12;
 mapa.shared::cluster.u32 %r14, %r13, %r11;
 mapa.shared::cluster.u32 %r15, %r3, %r11;
 mov.u64 %rd1, 268435456;
 {first}
"""
    + MEET
    + """ setp.ne.u32 %p1, %r1, 0;
 @%p1 bra stored;
 @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {expected};
 {store}
stored:
again:
 mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
 {last}
"""
    + MEET
)
NAME = "shared::cluster.mbarrier::complete_tx::bytes"
READ = "ld.shared.u32 %r30, [%r13];"


def exchanged(store: str, size: int, **changed: object) -> Program:
    parts = {"first": "", "last": READ, "expected": 32 * size} | changed
    program = program_of(EXCHANGE.format(store=store, size=size, **parts), 2, cluster=2)
    require_fits(program)
    assert loads(dumps(program)) == program
    return program


def outcome(program: Program) -> tuple[str, set[FaultKind | Ending]]:
    found = check(program)
    return found.verdict.value, {each.kind for each in found.refutations}


STORE = f"st.async.weak.{NAME}.b32 [%r14], %r2, [%r15];"
TYPES = [(f"{kind}{bits}", bits // 8) for bits in (32, 64) for kind in "busf"]


@pytest.mark.parametrize(("kind", "size"), TYPES)
def test_each_type_and_vector_of_st_async_has_its_bytes(kind: str, size: int) -> None:
    register = "%r2" if size == 4 else "%rd1"
    for parts in (1, 2, 4):
        value = "{" + ", ".join([register] * parts) + "}" if parts > 1 else register
        vector = f".v{parts}" if parts > 1 else ""
        program = exchanged(f"st.async.{NAME}{vector}.{kind} [%r14], {value}, [%r15];", size * parts)
        (copy,) = (line for line in said(program, 0) if line.startswith("TMA_LOAD"))
        assert f"bytes={32 * size * parts} " in copy  # of all lanes together
        assert outcome(program) == ("proved", set())


REDUCTIONS = [(op, "u32") for op in ("inc", "dec", "min", "max", "add")]
REDUCTIONS += [(op, "s32") for op in ("min", "max", "add")]
REDUCTIONS += [*((op, "b32") for op in ("and", "or", "xor")), ("add", "u64")]


@pytest.mark.parametrize(("op", "kind"), REDUCTIONS)
def test_each_operation_of_red_async_is_counted(op: str, kind: str) -> None:
    size, register = (8, "%rd1") if kind == "u64" else (4, "%r2")
    store = f"red.async.relaxed.cluster.{NAME}.{op}.{kind} [%r14], {register}, [%r15];"
    assert outcome(exchanged(store, size)) == ("proved", set())
    assert outcome(exchanged(store, size, expected=33 * size)) == ("refuted", {Ending.DEADLOCK})


def test_bytes_that_are_read_before_the_wait_or_not_expected_are_findings() -> None:
    written = " @!%p1 st.shared.u32 [%r13], 1;"
    assert outcome(exchanged(STORE, 4)) == ("proved", set())
    assert outcome(exchanged(STORE + "\n " + READ, 4, last="", first=written)) == ("refuted", {FaultKind.RACE})
    assert outcome(exchanged(STORE, 4, expected=132)) == ("refuted", {Ending.DEADLOCK})
    assert outcome(exchanged(STORE, 4, expected=64))[0] == "refuted"


@pytest.mark.parametrize(
    ("stored", "more", "found"),
    [
        ("%r10", "", ("proved", set())),  # what the other CTA waits for
        ("%r11", "", ("refuted", {Ending.DEADLOCK})),
        ("%r30", "", ("unknown", set())),  # of a load: it is not known which way its receiver goes
        ("%r10", READ, ("refuted", {FaultKind.RACE})),
    ],
)
def test_what_is_stored_decides_what_its_receiver_does(
    stored: str, more: str, found: tuple[str, set[FaultKind | Ending]]
) -> None:
    """As a scheduler hands tiles to the CTAs of its cluster."""
    never = "never: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 0;\n @!%p9 bra never;\n as_told:"
    last = f"{READ}\n setp.eq.u32 %p2, %r30, %r11;\n @%p2 bra as_told;\n {never}"
    first = "ld.global.u32 %r30, [%rd1];\n @!%p1 st.shared.u32 [%r13], 9;"
    program = exchanged(STORE.replace("%r2", stored) + more, 4, first=first, last=last)
    assert outcome(program) == found


def test_they_are_stores_of_threads_and_no_bulk_copies() -> None:
    """What a thread has stored there before needs no proxy fence; a bulk copy that reads them later does."""
    first = " @!%p0 st.shared.u32 [tile], 1;"
    assert outcome(exchanged(STORE, 4, first=first)) == ("proved", set())
    bulk = f"@!%p0 cp.async.bulk.{NAME.replace('.', '.global.', 1)} [%r14], [%rd1], 128, [%r15];"
    assert outcome(exchanged(bulk, 4, first=first)) == ("refuted", {FaultKind.MISSING_PROXY_FENCE})
    reads = "@!%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;\n"
    reads += " @!%p0 cp.async.bulk.commit_group;\n @!%p0 cp.async.bulk.wait_group 0;"
    assert outcome(exchanged(STORE, 4, last=reads)) == ("refuted", {FaultKind.MISSING_PROXY_FENCE})
    assert outcome(exchanged(STORE, 4, last=" fence.proxy.async;\n " + reads)) == ("proved", set())


def test_reductions_of_the_same_bytes_are_not_called_a_race() -> None:
    add = f"red.async.relaxed.cluster.{NAME}.add.u32 [%r14], %r2, [%r15];"
    program = exchanged(add + "\n " + add, 4, expected=256)
    assert check(program).how is How.PERHAPS
    assert outcome(exchanged(STORE + "\n " + STORE, 4, expected=256)) == ("refuted", {FaultKind.RACE})


@pytest.mark.parametrize("form", ["st.async.release.gpu.global.u32", "st.async.mmio.release.sys.global.u32"])
def test_those_without_an_mbarrier_are_stores_to_global_memory(form: str) -> None:
    plain = exchanged(STORE, 4)
    for more in (f"{form} [%rd1], %r2;", "red.async.release.gpu.global.add.u32 [%rd1], %r2;"):
        program = exchanged(f"{STORE}\n {more}", 4)
        assert (program.code, program.coverage.complete) == (plain.code, True)


@pytest.mark.parametrize(
    ("meets", "verdict"), [(MEET, "proved"), (MEET.replace("arrive", "arrive.relaxed"), "refuted")]
)
def test_no_fence_is_needed_for_the_init_that_all_have_met_since(meets: str, verdict: str) -> None:
    """As libcu++ shows it: ``init(&bar, ...); cluster.sync();`` and the store (its page on ``st.async``).

    The init and the count of the bytes are both of the generic proxy; ``fence.mbarrier_init`` is for a relaxed arrive.
    """
    text = EXCHANGE.format(store=STORE, size=4, first="", last=READ, expected=128)
    text = text.replace(" fence.mbarrier_init.release.cluster;\n", "").replace(MEET, meets, 1)
    found = outcome(program_of(text, 2, cluster=2))
    assert found[0] == verdict
    copied = text.replace(
        STORE, f"@!%p0 cp.async.bulk.shared::cluster.shared::cta.{NAME.partition('.')[2]} [%r14], [%r13], 128, [%r15];"
    )
    assert FaultKind.UNPUBLISHED_INIT in outcome(program_of(copied, 2, cluster=2))[1]
