"""``setmaxnreg``: a request for more waits until the CTA's pool has it, in every engine; who gives late hangs."""

from collections import Counter

import pytest

from pipesim import Protocol, Warp, find
from pipesim.answers.check import check as answer
from pipesim.conform.diagnose.outcomes import random_schedule
from pipesim.errors import ProtocolError
from pipesim.model.coverage import Assumed, Assumption, Strictness
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, FaultReport, Verdict
from pipesim.prove.check import How, check
from pipesim.prove.search.breadth_first import explore
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import target_of
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.lanes import long_after, slow_but
from tests.support.random_programs.registers import random_registers


def handing_over(late: int = 0, registers: int = 0, consumers: int = 2) -> Protocol:
    """A producer group gives registers back at once, or (late) only when it has heard from the consumers."""
    p = Protocol("handing_over", registers=registers)
    ready = p.mbarriers("ready", 1, count=consumers)

    @p.role("producer", warps=4)
    def producer(w: Warp) -> None:
        if late:
            ready[0].wait(0)
        w.setmaxnreg(40)

    @p.role("consumer", warps=4 * consumers)
    def consumer(w: Warp) -> None:
        w.setmaxnreg(232)
        if w.index % 4 == 0:
            with w.elect_one():
                ready[0].arrive()

    return p


@pytest.mark.parametrize(("met", "verdict"), [(0, Verdict.REFUTED), (1, Verdict.PROVED)])
def test_waiting_for_registers_does_not_publish_an_init(met: int, verdict: Verdict) -> None:
    """The consumers come after the init in every schedule, by the registers alone: no barrier makes it visible."""
    p = Protocol("handing_over_a_barrier", registers=168)
    ready = p.mbarriers("ready", 1)

    @p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @p.role("producer", warps=4)
    def producer(w: Warp) -> None:
        if w.index == 0:
            with w.elect_one():
                ready[0].init(1)
        if met:
            w.sync_threads()
        w.setmaxnreg(40)
        if w.index == 0:
            with w.elect_one():
                ready[0].arrive()

    @p.role("consumer", warps=8)
    def consumer(w: Warp) -> None:
        if met:
            w.sync_threads()
        w.setmaxnreg(232)
        ready[0].wait(0)

    said = check(p.flatten())
    assert said.verdict is verdict
    faults = [shown.fault for shown in said.refutations if shown.fault is not None]
    assert [fault.kind for fault in faults] == [FaultKind.UNPUBLISHED_INIT] * (not met)
    assert all(p.flatten().agents[fault.other_agent].role == "producer" for fault in faults)


@pytest.mark.parametrize("registers", [0, 168])
def test_who_gives_at_once_hangs_nobody(registers: int) -> None:
    program = handing_over(registers=registers).flatten()
    said = check(program)
    assert (said.verdict, said.how) == (Verdict.PROVED, How.CERTIFICATE)
    assert simulate(program, load_profile("h100")).outcome is Ending.FINISHED


@pytest.mark.parametrize("registers", [0, 168])
def test_who_gives_only_after_hearing_from_the_others_hangs(registers: int) -> None:
    program = handing_over(late=1, registers=registers).flatten()
    said = check(program)
    assert said.verdict is Verdict.REFUTED
    (shown,) = said.refutations
    assert isinstance(shown.deadlock, Deadlock)
    waits = {each.agent: (each.barrier, each.count, each.arrivals_missing) for each in shown.deadlock.blocked}
    assert waits["consumer/0"] == ("registers of its CTA", 64 * 128, 64 * 128)
    assert waits["producer/0"][0] == "ready[0]"
    assert simulate(program, load_profile("h100")).outcome is Ending.DEADLOCK


@pytest.mark.parametrize(("registers", "hangs"), [(0, False), (256, False), (216, True)])
def test_a_group_of_which_one_warp_asks_keeps_what_it_was_launched_with(registers: int, hangs: bool) -> None:
    """PTX leaves that undefined, which is found; the launch is not taken to have too few registers for it."""
    p = Protocol("one_warp_asks", registers=registers)

    @p.role("load", warps=4)
    def load(w: Warp) -> None:
        if w.index == 0:
            w.setmaxnreg(40)

    @p.role("compute", warps=4)
    def compute(w: Warp) -> None:
        w.setmaxnreg(256)

    shown = check(p.flatten()).refutations
    assert [each.fault and each.fault.kind for each in shown] == [FaultKind.WARP_SHAPE] + [None] * hangs


def test_with_registers_to_spare_nobody_waits() -> None:
    assert check(handing_over(late=1, registers=232, consumers=1).flatten()).verdict is Verdict.PROVED


def test_the_pool_is_what_the_cta_was_launched_with() -> None:
    assert check(handing_over(registers=160).flatten()).verdict is Verdict.REFUTED
    found = answer(target_of(handing_over), {"registers": 176}).findings[0]
    assert isinstance(found, FaultReport)
    assert (found.kind, found.correction) == (
        FaultKind.TOO_MANY_REGISTERS, "launch it with at most 168 registers a thread"
    )  # fmt: skip


def test_what_is_not_known_of_the_launch_is_an_assumption() -> None:
    unknown, known = (answer(target_of(handing_over), {"registers": n}) for n in (0, 168))
    assert unknown.scope.assuming == (Assumed(Assumption.REGISTERS, "168 registers a thread at the launch"),)
    assert known.scope.assuming == ()
    assert "the stated number of registers a thread, which setmaxnreg distributes" in check_sentence(unknown)
    assert "registers" not in check_sentence(known)
    strict = answer(target_of(handing_over).with_strictness(Strictness({Assumption.REGISTERS})), {"registers": 0})
    assert (strict.verdict, strict.how) == (Verdict.UNKNOWN, How.ASSUMES)


def test_one_lane_alone_may_not_ask() -> None:
    p = Protocol("one_lane")

    @p.role("only")
    def only(w: Warp) -> None:
        with w.elect_one():
            w.setmaxnreg(24)

    with pytest.raises(ProtocolError, match="1 of 32 lanes execute setmaxnreg"):
        p.flatten()


def test_warps_of_a_group_that_ask_unlike_are_an_advisory() -> None:
    said = answer(find("attention_sm100"), {"kv_blocks": 1}, quick=True).advisories
    (claim,) = (each.claim for each in said if "registers" in each.claim)
    assert claim.startswith("idle/0 asks for 24 registers a thread, mma in the same warp group asks for 40 registers")
    assert claim.endswith("a thread, which PTX leaves undefined")
    assert not answer(find("gemm_sm90"), {"k_iters": 1, "tiles": 1}, quick=True).advisories


# the engines against each other


@pytest.mark.slow
@pytest.mark.parametrize("first", long_after(1, slow_but([500], (500, 0, 100, 200))))
def test_the_engines_agree_on_random_requests(first: int) -> None:
    """``tools/judge_proof.py --family registers`` runs as many as there is time for."""
    seen: Counter[object] = Counter()
    for seed in range(first, first + 100):
        program = random_registers(seed)
        plain, reduced, said = explore(program, reduced=False), explore(program), check(program)
        assert (plain.verdict, plain.wrong, plain.outcomes) == (reduced.verdict, reduced.wrong, reduced.outcomes), seed
        assert said.verdict is plain.verdict, seed
        for n in range(5):
            walked = random_schedule(program, 10 * seed + n)
            assert walked.ended or plain.verdict is Verdict.REFUTED, seed
        seen[plain.verdict, said.how, program.register_pools is not None] += 1
    assert seen[Verdict.PROVED, How.CERTIFICATE, True] >= 3, seen
    assert seen[Verdict.REFUTED, How.SCHEDULE, True] >= 20, seen


def test_a_certificate_that_does_not_look_at_registers_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipesim.prove.certificate.certificate.Certificate._registers", lambda *_: None)
    for seed in (325, 483):  # of the first 600
        program = random_registers(seed)
        assert check(program).verdict is not explore(program).verdict
