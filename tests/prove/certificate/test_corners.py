"""Corners that a certificate is easily wrong about: it is not, and one that lacks any of its rules is caught.

``tools/judge_proof.py`` judges them by the thousand.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from pipesim.model.machine import Flight
from pipesim.model.ops import IN_ORDER, Engine, Op
from pipesim.prove.certificate import certificate
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.certificate.requirements import OtherCta
from pipesim.prove.happens_before import accesses
from pipesim.prove.happens_before.accesses import OWN, Accesses, AccessEvent
from pipesim.prove.happens_before.snapshot import Clock
from pipesim.prove.refutation import Doubt, Why
from tests.support.random_programs.corners import CORNERS, features, random_corners
from tools.judge_proof import judge

PROGRAMS = 240


def said(seed: int) -> list[str]:
    return judge(seed, "corners")


@pytest.mark.slow
def test_every_corner_is_drawn_right_and_wrong_and_judged_as_the_search_does() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(PROGRAMS):
        words = said(seed)
        assert not any(word.isupper() for word in words), seed
        for corner in features(random_corners(seed)):
            seen.update((corner, word) for word in words)
    for corner in CORNERS:
        for word in ("right", "wrong", "proved by certificate", "refuted by schedule"):
            assert seen[corner, word], (corner, word)


# What a certificate lacks, and the program that it then takes for right


def no(why: Why) -> Callable[[pytest.MonkeyPatch], None]:
    """Without a reason to doubt."""

    def lacks(patch: pytest.MonkeyPatch) -> None:
        doubt, other_cta = Certificate._doubt, OtherCta.doubts
        patch.setattr(Certificate, "_doubt", lambda self, d: doubt(self, d) if d.why is not why else None)
        patch.setattr(OtherCta, "doubts", lambda self, *given: [d for d in other_cta(self, *given) if d.why is not why])

    return lacks


def no_bytes_are_bytes(op: Op) -> Callable[[pytest.MonkeyPatch], None]:
    """Without a doubt about an operation that carries no bytes."""

    def lacks(patch: pytest.MonkeyPatch) -> None:
        doubt = Certificate._doubt

        def doubts(self: Certificate, d: Doubt) -> None:
            if d.why is not Why.UNSUPPORTED or self._program.code[d.agent][d.pc][0] != op:
                doubt(self, d)

        patch.setattr(Certificate, "_doubt", doubts)

    return lacks


def one_engine_orders_all(patch: pytest.MonkeyPatch) -> None:
    def in_order(one: AccessEvent, other: AccessEvent) -> bool:
        return one.engine in IN_ORDER and (one.agent, one.engine) == (other.agent, other.engine)

    patch.setattr(accesses, "_in_order", in_order)


def a_token_leaves_the_answer(patch: pytest.MonkeyPatch) -> None:
    arrive = Certificate._arrive

    def arrives(self: Certificate, did: certificate._StepTaken) -> None:
        tries = self._tries.copy()
        arrive(self, did)
        self._tries = tries

    patch.setattr(Certificate, "_arrive", arrives)


def an_answer_is_for_any_wait(patch: pytest.MonkeyPatch) -> None:
    wait = Certificate._wait

    def waits(self: Certificate, did: certificate._StepTaken) -> None:
        asked = self._tries.get((did.agent, did.op[3]))
        if did.op[0] == Op.WAIT_UNLESS and asked is not None:
            phase = len(self._done[did.op[1]]) - 1
            self._tries[did.agent, did.op[3]] = asked._replace(barrier=did.op[1], parity=did.op[2], phase=phase)
        wait(self, did)

    patch.setattr(Certificate, "_wait", waits)


def a_try_knows_what_its_wait_knows(patch: pytest.MonkeyPatch) -> None:
    tries = Certificate._try

    def asks(self: Certificate, did: certificate._StepTaken) -> None:
        tries(self, did)
        for key in {(did.agent, did.op[3])} & self._tries.keys():
            self._tries[key] = self._tries[key]._replace(known=1 << 30)

    patch.setattr(Certificate, "_try", asks)


def what_is_issued_is_over(patch: pytest.MonkeyPatch) -> None:
    def ordered(_: Accesses, clock: Clock, other: AccessEvent, access: AccessEvent) -> bool:
        return other.agent == access.agent or clock.covers(other.agent, other.pc)

    patch.setattr(Accesses, "ordered", ordered)


def what_is_taken_back_is_an_arrival(patch: pytest.MonkeyPatch) -> None:
    landed = Certificate.on_landing

    def lands(self: Certificate, flight: Flight, *given: object) -> None:
        if flight.barrier >= 0 and flight.engine == Engine.CP_ASYNC:
            phase = self._open[flight.barrier]
            phase.arrivals = phase.arrivals.join(
                self._issued[flight.sequence].before.after_operation(flight.agent, flight.pc)
            )
        landed(self, flight, *given)  # type: ignore[arg-type]

    patch.setattr(Certificate, "on_landing", lands)


def one_read_is_remembered(patch: pytest.MonkeyPatch) -> None:
    enter = Accesses.enter

    def enters(self: Accesses, access: AccessEvent) -> object:
        yield from enter(self, access)
        if not access.writes:
            for cell in range(access.first, access.end):
                self._reads[cell] = {(access.agent, access.engine, access.flight == OWN): access}

    patch.setattr(Accesses, "enter", enters)


def a_wait_for_groups_is_for_all(patch: pytest.MonkeyPatch) -> None:
    wait = Certificate._wait_group
    patch.setattr(Certificate, "_wait_group", lambda self, did: wait(self, did._replace(op=(*did.op[:2], 0))))


def meetings_are_never_early(patch: pytest.MonkeyPatch) -> None:
    part = Certificate._part

    def counted(self: Certificate, channel: int, clock: Clock, *given: object) -> None:
        if channel >= len(self._program.barriers):
            clock = clock.with_phases(channel, len(self._done[channel]))
        part(self, channel, clock, *given)  # type: ignore[arg-type]

    patch.setattr(Certificate, "_part", counted)


LACKING = [
    (no(Why.UNPUBLISHED), 2),
    (no(Why.EARLY_PART), 18),
    (no(Why.EARLY_PASS), 2391),
    (no(Why.LAP), 203),
    (no(Why.LATE_RAISE), 40),
    (no(Why.BYTES), 22),
    (no(Why.ARRIVALS), 4),
    (no(Why.EXIT), 12),
    (no(Why.RACE), 33),
    (no_bytes_are_bytes(Op.TMA_LOAD), 480),
    (no_bytes_are_bytes(Op.COMPLETE_TX), 77),
    (one_engine_orders_all, 225),
    (a_token_leaves_the_answer, 196),
    (an_answer_is_for_any_wait, 677),
    (a_try_knows_what_its_wait_knows, 2391),
    (what_is_issued_is_over, 33),
    (what_is_taken_back_is_an_arrival, 110),
    (one_read_is_remembered, 1186),
    (a_wait_for_groups_is_for_all, 608),
    (meetings_are_never_early, 18),
]


@pytest.mark.parametrize(("lacks", "seed"), LACKING)
def test_a_certificate_that_lacks_a_rule_is_caught(
    lacks: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "CONTRADICTION" not in said(seed)
    lacks(monkeypatch)
    assert "CONTRADICTION" in said(seed)
