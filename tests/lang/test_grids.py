"""Descriptions of CTAs that talk by words of global memory: what is proved, and what is refuted at which line.

The right ones are those of ``docs/examples/grids.py``; a wrong one is its text with one change.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pipesim import Fence, Order, Protocol, Warp, protocol_process, targets
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.errors import ParameterError, ProtocolError
from pipesim.model.coverage import Assumption, NotJudged, NotJudgedKind, Strictness
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, Verdict
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from tests.support.paths import ROOT
from tests.support.random_words import judged_description

EXAMPLES = ROOT / "docs" / "examples" / "grids.py"
SOURCE = EXAMPLES.read_text()
DEADLOCK, RACE, WEAK, NARROW = Ending.DEADLOCK, FaultKind.RACE, FaultKind.WEAK_ORDER, FaultKind.NARROW_SCOPE
WRONG_ITEM = FaultKind.WRONG_ITEM
GIVES = "w.gstore(full[0] if w.cta == 0 else empty[0], value=i + 1, order=Order.RELEASE)"
TAKES = "w.spin_until(full[0], at_least=i + 1, order=Order.ACQUIRE)"
TURN = "w.spin_until(turn[0], equals=w.cta, order=Order.ACQUIRE)"
ENDS = "value=(w.cta + 1) % splits"

#: The example, what is changed to what, the kind, and words of the line at which an agent waits or accesses.
WRONG: list[tuple[str, str, str, FaultKind | Ending, str]] = [
    ("handed_on", GIVES, "pass", DEADLOCK, "w.spin_until(full[0]"),  # never set
    ("handed_on", GIVES, GIVES.replace("i + 1", "i + w.cta"), DEADLOCK, "w.spin_until(full[0]"),
    ("handed_on", GIVES, GIVES.replace(", order=Order.RELEASE", ""), WEAK, "w.gload(tile[0]"),  # no release
    ("handed_on", GIVES, GIVES[:-1] + ", scope=Scope.CTA)", NARROW, "w.gload(tile[0]"),
    ("handed_on", TAKES, TAKES.replace(", order=Order.ACQUIRE", ""), WEAK, "w.gload(tile[0]"),
    ("handed_on", TAKES, TAKES[:-1] + ", scope=Scope.CTA)", NARROW, "w.gload(tile[0]"),
    ("handed_on", "w.spin_until(empty[0]", "w.spin_until(full[0]", RACE, "w.gload(tile[0]"),  # the next lap
    ("split_k", ENDS, "value=w.cta", DEADLOCK, TURN),  # the turn is not given
    ("split_k", ENDS, "value=w.cta + 2", WRONG_ITEM, "w.gload(tile[0]"),
    ("split_k", TURN, "pass", WRONG_ITEM, "w.gload(tile[0]"),
    ("split_k", TURN, TURN.replace(", order=Order.ACQUIRE", ""), WEAK, "w.gload(tile[0]"),
    ("split_k", TURN, TURN.replace("equals=w.cta", "at_least=w.cta - 1"), WRONG_ITEM, "w.gload(tile[0]"),
    ("handed_on", "grid=2", "grid=2, resident=1", DEADLOCK, "w.spin_until(empty[0]"),  # not both on the device
    ("last_block", "order=Order.ACQ_REL", "order=Order.RELEASE", WEAK, "w.gload(parts[block]"),
    ("last_block", "order=Order.ACQ_REL", "order=Order.ACQUIRE", WEAK, "w.gload(parts[block]"),
    ("last_block", "order=Order.ACQ_REL", "scope=Scope.CTA, order=Order.ACQ_REL", NARROW, "w.gload(parts[block]"),
    ("last_block", "== blocks - 1", "== blocks - 2", RACE, "w.gload(parts[block]"),
    ("laps", "lap % 2 * blocks", "0 * blocks", RACE, "w.gstore(parts[mine]"),  # the next lap overwrites
    ("laps", "everyone.sync(w)", "w.sync_threads()", RACE, "w.gload(parts[other]"),
    ("laps", "everyone.sync(w)", "w.cta and everyone.sync(w)", RACE, "w.gstore(parts[mine]"),  # and it hangs
]


def changed(folder: Path, name: str, old: str, new: str) -> CheckReport:
    """The report on an example with a change."""
    assert SOURCE.count(old) == 1
    path = folder / "wrong.py"
    path.write_text(SOURCE.replace("import Order", "import Scope, Order").replace(old, new))
    return check(targets.find(f"{path}:{name}"), {}, quick=True)


@pytest.mark.parametrize(("name", "ctas", "resident"), [
    ("handed_on", 2, True), ("split_k", 3, False), ("last_block", 3, False), ("laps", 3, True),
])  # fmt: skip
def test_right_ones_are_proved_for_their_number_of_ctas(name: str, ctas: int, *, resident: bool) -> None:
    found = check(targets.find(f"{EXAMPLES}:{name}"), {}, quick=True)
    assert (found.verdict, found.scope.together) == (Verdict.PROVED, (ctas,))
    assert (Assumption.RESIDENCY in found.scope.counted()) is resident
    strict = targets.find(f"{EXAMPLES}:{name}").with_strictness(Strictness({Assumption.RESIDENCY}))
    assert check(strict, {}, quick=True).how is (How.ASSUMES if resident else How.CERTIFICATE)


@pytest.mark.parametrize(("name", "old", "new", "kind", "words"), WRONG)
def test_wrong_ones_are_refuted_at_their_line(
    tmp_path: Path, name: str, old: str, new: str, kind: FaultKind | Ending, words: str
) -> None:
    found = changed(tmp_path, name, old, new)
    assert found.verdict is Verdict.REFUTED
    assert said_of(found, kind, words, (tmp_path / "wrong.py").read_text())


def said_of(found: CheckReport, kind: object, words: str, source: str) -> bool:
    """Whether there is a finding of this kind with a line that has these words."""
    shown: list[tuple[object, str]]
    shown = [(DEADLOCK, each.line) for c in found.refutations for each in getattr(c.finding, "blocked", ())]
    shown += [(c.finding.kind, c.place) for c in found.refutations]
    lines = [(each, source.splitlines()[int(place.rpartition(":")[2]) - 1]) for each, place in shown]
    return any(each is kind and words in line for each, line in lines)


def locked(given: int = 1, apart: int = 0) -> Protocol:
    """CTAs that add to the same bytes, with a lock; ``apart``: it is looked at once, and the answer not."""
    p = Protocol("locked", grid=3)
    tile, lock = p.gmem("tile", 1, 64), p.gmem("lock", 1, 4)

    @p.role("adds")
    def adds(w: Warp) -> None:
        with w.elect_one():
            if apart:
                w.atomic(lock[0], cas=(0, 1), order=Order.ACQUIRE)
            else:
                w.spin_until(lock[0], cas=(0, 1), order=Order.ACQUIRE)
            w.gload(tile[0])
            w.gstore(tile[0], item=w.cta)
            if given:
                w.atomic(lock[0], exch=0, order=Order.RELEASE)

    return p


def test_a_lock_orders_what_its_holders_do_and_has_to_be_given_back() -> None:
    right = targets.target_of(locked)
    assert not right.build().coverage.not_judged  # one order is as good as another
    assert check(right, {}, quick=True).verdict is Verdict.PROVED
    kept = check(targets.target_of(lambda: locked(given=0)), {}, quick=True)
    assert [type(each.finding).__name__ for each in kept.refutations] == ["Deadlock"]
    assert "spin_until" in Path(__file__).read_text().splitlines()[int(kept.refutations[0].place.split(":")[1]) - 1]
    once = check(targets.target_of(lambda: locked(apart=1)), {}, quick=True)
    assert once.verdict is not Verdict.PROVED


def generations(late: int = 0) -> Protocol:
    """A barrier that goes round: the last one sets the counter back and the generation on; ``late``: the other way."""
    p = Protocol("generations", grid=2)
    parts, count, generation = p.gmem("parts", 4, 64), p.gmem("count", 1, 4), p.gmem("generation", 1, 4)

    @p.role("worker")
    def worker(w: Warp) -> None:
        with w.elect_one():
            for lap in range(2):
                w.gstore(parts[2 * lap + w.cta], item=lap)
                if w.atomic(count[0], add=1, order=Order.ACQ_REL).old == 1:
                    if not late:
                        w.gstore(count[0], value=0)
                    w.gstore(generation[0], value=lap + 1, order=Order.RELEASE)
                    if late:
                        w.gstore(count[0], value=0)
                else:
                    w.spin_until(generation[0], at_least=lap + 1, order=Order.ACQUIRE)
                w.gload(parts[2 * lap + 1 - w.cta], item=lap)

    return p


def tickets(one: int = 0) -> Protocol:
    """CTAs that take tiles from a counter until there are no more; ``one``: all write to the place of one tile."""
    p = Protocol("tickets", grid=2)
    out, counter = p.gmem("out", 2, 64), p.gmem("counter", 1, 4)

    @p.role("worker")
    def worker(w: Warp) -> None:
        with w.elect_one():
            while (tile := w.atomic(counter[0], add=1).old) < 2:
                w.gstore(out[0 if one else tile], item=tile)

    return p


def last_of_two_warps(early: int = 0) -> Protocol:
    """The answer of the warp that counts is for both; ``early``: it counts before both have stored."""
    p = Protocol("last_of_two_warps", grid=2)
    parts, count = p.gmem("parts", 2, 64), p.gmem("count", 1, 4)

    @p.role("reduce", warps=2)
    def reduce(w: Warp) -> None:
        w.gstore(parts[w.cta].part(32 * w.index, 32), item=w.cta)
        if not early:
            w.sync_threads()
        if w.index == 0:
            with w.elect_one():
                w.atomic(count[0], add=1, order=Order.ACQ_REL)
        w.sync_threads()
        if w.answer(count[0]) == 1:
            w.gload(parts[1 - w.cta])

    return p


@pytest.mark.slow
@pytest.mark.parametrize(("right", "wrong", "kind", "words"), [
    (generations, lambda: generations(late=1), DEADLOCK, "w.spin_until(generation"),
    (tickets, lambda: tickets(one=1), RACE, "w.gstore(out["),
    (last_of_two_warps, lambda: last_of_two_warps(early=1), RACE, "w.gload(parts"),
])  # fmt: skip
def test_answers_of_atomics_decide_what_ctas_do(
    right: Callable[[], Protocol], wrong: Callable[[], Protocol], kind: object, words: str
) -> None:
    """Every order of the atomics is another program."""
    found = check(targets.target_of(right), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    assert found.scope.not_judged == (NotJudged(NotJudgedKind.UNDECLARED),)
    assert said_of(check(targets.target_of(wrong), {}, quick=True), kind, words, Path(__file__).read_text())


def test_an_answer_that_nothing_gives_is_refused() -> None:
    p = Protocol("asks", grid=2)
    word = p.gmem("word", 1, 4)

    @p.role("asks")
    def asks(w: Warp) -> None:
        w.answer(word[0])

    with pytest.raises(ProtocolError, match="never executes"):
        p.flatten()


@pytest.mark.sampled(1, 4)
@pytest.mark.parametrize("first", range(0, 1_000, 10))
def test_random_descriptions_do_what_the_verdict_says(first: int) -> None:
    found = Counter(map(judged_description, range(first, first + 10)))
    assert found.keys() <= {"decided", "not decided"}
    assert found["decided"] > 7


def test_a_word_that_is_never_set_has_its_name_and_a_correction(tmp_path: Path) -> None:
    found = changed(tmp_path, "handed_on", GIVES, "w.gstore(empty[0], value=i + 1)")
    (hang,) = (each.finding for each in found.refutations)
    assert isinstance(hang, Deadlock)
    assert {each.barrier for each in hang.blocked} == {"full[0]"}
    assert hang.correction.startswith("nothing gives full[0] the value that worker@1 waits for")


def test_a_wait_for_a_value_that_is_there_already_is_not_stale() -> None:
    assert judged_description(1_820) == "decided"


def test_what_one_order_of_atomics_shows_is_not_a_proof_of_all() -> None:
    """The program by itself, or one that was written to a file, is that of one order."""
    target = targets.find(f"{EXAMPLES}:last_block")
    program = target.build({"turns": 312})
    assert (prove(program).verdict, prove(program).how) == (Verdict.UNKNOWN, How.SOME_ORDERS)
    assert check(targets.target_of(program), {}, quick=True).how is How.SOME_ORDERS
    assert check(target, {"turns": 312}, quick=True).verdict is Verdict.PROVED
    with pytest.raises(ParameterError, match="turns"):
        targets.find("producer_consumer").build({"turns": 1})
    with pytest.raises(ParameterError, match="CTAs talk"):
        target.build(grid=6)


def test_a_program_that_was_not_judged_proves_nothing() -> None:
    p = Protocol("alone", grid=2)
    p.role("none")(lambda w: w.work(1))
    assert prove(p.flatten()).how is How.WORDS


def test_the_program_of_another_process_has_the_same_scope() -> None:
    text = f"{EXAMPLES}:last_block"
    try:
        assert protocol_process.find(text).build().coverage == targets.find(text).build().coverage
    finally:
        protocol_process.close()


@pytest.mark.parametrize(("does", "fact"), [
    (lambda p, w: w.gload(p.smem("t", 1, 64)[0]), "slot of global memory"),
    (lambda p, w: w.spin_until(p.gmem("t", 1, 64)[0], equals=1), "not a word"),
    (lambda p, w: w.spin_until(p.gmem("t", 1, 4)[0]), "for one thing"),
    (lambda p, w: w.atomic(p.gmem("t", 1, 4)[0], add=1), "32 lanes"),
    (lambda p, w: w.gstore(p.gmem("t", 1, 4)[0]), "no item and value"),
    (lambda p, w: w.cluster_sync(), "cluster of its own"),
    (lambda p, w: w.fence(Fence.ACQ_REL), "without a scope"),
    (lambda p, w: w.read(p.smem("t", 1, 64)[0].mapa(1 - w.cta)), "t\\[0\\] of CTA"),
])  # fmt: skip
def test_what_is_no_access_to_global_memory_is_refused(does: object, fact: str) -> None:
    p = Protocol("refused", grid=2)
    p.role("does")(lambda w: does(p, w))  # type: ignore[operator]
    with pytest.raises(ProtocolError, match=fact):
        p.flatten()


def test_a_word_is_not_data_as_well() -> None:
    p = Protocol("mixed", grid=2)
    word = p.gmem("word", 1, 4)

    @p.role("does")
    def does(w: Warp) -> None:
        w.spin_until(word[0], at_least=0)
        w.gload(word[0])

    with pytest.raises(ProtocolError, match="is a word"):
        p.flatten()
    with pytest.raises(ProtocolError, match="no grid"):
        Protocol("one").gmem("word", 1, 4)
