"""The experiments: the model says what was seen by hand and what is stored, and another answer is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hwkernels.experiments.catalogue import EXPERIMENTS, Case, Experiment, experiment
from hwkernels.experiments.results import Outcome, Stored, dump, read_results, stored_results
from hwkernels.experiments.sequences import SEQUENCES, Code, parse
from hwkernels.experiments.verdict import FAILS, predict, verdict
from pipesim.errors import ParameterError, TraceFormatError
from pipesim.model import barrier
from pipesim.model.barrier import word_of
from tests.support.paths import TRACES


def test_the_catalogue_is_whole() -> None:
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)
    for each in EXPERIMENTS:
        assert len({case.name for case in each.cases}) == len(each.cases)


@pytest.mark.parametrize("sequence", [s for s in SEQUENCES if s.seen], ids=lambda s: s.text)
def test_the_model_does_what_was_seen_by_hand(sequence) -> None:
    predicted = predict(sequence.text)
    assert predicted.answers == sequence.seen
    assert predicted.trapped == sequence.may_trap


def test_a_text_that_is_no_sequence() -> None:
    assert parse("init 3; arrive;  complete_tx 16") == ((Code.INIT, 3), (Code.ARRIVE, 1), (Code.COMPLETE_TX, 16))
    for wrong in ("init -1", "arive", "", "arrive 1 2"):
        with pytest.raises(ParameterError, match="is not an operation"):
            parse(wrong)


# What the chips answered.


def test_the_model_agrees_with_every_stored_answer() -> None:
    assert any("latency" in stored.cases for stored in stored_results(TRACES))
    for stored in stored_results(TRACES):
        measured = [each for each in EXPERIMENTS if each.name in stored.cases]
        assert len(measured) == len(stored.cases), stored.path
        assert {each.name for each in EXPERIMENTS} - set(stored.cases) <= {"latency", "finished"}, stored.path
        for each in measured:
            outcomes = stored.cases[each.name]
            assert list(outcomes) == sorted(case.name for case in each.cases)
            for case in each.cases:
                found = verdict(each, case, outcomes[case.name])
                assert found.agrees is not False, (stored.device, each.name, case.name, found)


def model_chip(each: Experiment, case: Case) -> Outcome:
    """The answers of a chip that does what the model says."""
    if each.name == "mbarrier":
        predicted = predict(case.text)
        answers = [{"-": 4, "0": 5, "1": 6, "!": 8}[a] for a in predicted.answers]
        answers += [0] * (len(parse(case.text)) - len(answers))
        if predicted.trapped:
            return Outcome({"trap: CUDA_ERROR_LAUNCH_FAILED": 2}, {"answers": answers, "words": []})
        return Outcome({"finished": 1}, {"answers": answers, "words": [7, word_of(predicted.state)]})
    a = case.arguments
    state = barrier.init(barrier.FRESH, a["m"])[0]
    for count in [1] * a["n"] if a["apart"] else [a["n"]]:
        state, _, fault = barrier.arrive(state, count)
        if fault:
            return Outcome({"trap: CUDA_ERROR_LAUNCH_FAILED": 2}, {"words": [], "counts": []})
    return Outcome({"finished": a["runs"]}, {"words": [word_of(state)], "counts": [a["runs"]]})


@pytest.mark.parametrize("name", ["mbarrier", "lanes"])
def test_a_chip_that_does_something_else_is_seen(name: str) -> None:
    each = experiment(name)
    for case in each.cases:
        good = model_chip(each, case)
        assert verdict(each, case, good).agrees is True
        if good.trapped:
            wrong = Outcome({"finished": 1}, {"answers": [6], "words": [0, 1], "counts": [1]})
        else:
            wrong = replace(good, data={**good.data, "words": [good.data["words"][-1] ^ (1 << 63)] * 2})
        assert verdict(each, case, wrong).agrees is False


def test_a_case_without_an_answer_agrees_with_nothing() -> None:
    for each in EXPERIMENTS:
        for case in each.cases:
            assert verdict(each, case, Outcome({"failed: no end within 60 s": 1}, {})).agrees is False


def test_copies_pieces_laps_and_clocks_that_do_something_else_are_seen() -> None:
    def agrees(name: str, case: str, outcomes: dict, **data) -> bool | None:
        each = experiment(name)
        return verdict(each, each.case(case), Outcome(outcomes, data)).agrees

    late = word_of(barrier.BarrierState(1, 0, -16))
    assert agrees("copies", "1 KB, all but 16 expected", {"hung": 2000}, words=[late])
    assert not agrees("copies", "1 KB, all but 16 expected", {"hung": 2000}, words=[late ^ 2])
    assert not agrees("copies", "1 KB, all expected", {"hung": 2000}, words=[late])
    pieces = {"expected": [512], "early": [10], "missing": [1]}
    assert agrees("pieces", "1 KB in steps of 16", {}, at_once=[200], **pieces)
    assert not agrees("pieces", "1 KB in steps of 16", {}, at_once=[199], **pieces)
    assert agrees("laps", "held back, 1 phases complete, waits for parity 0", {"returned": 50})
    assert not agrees("laps", "held back, 2 phases complete, waits for parity 0", {"returned": 50})
    assert agrees("laps", "waiting, 2 phases, 0 cycles apart", {"returned": 50, "still waiting at the deadline": 150})
    assert not agrees(
        "laps", "waiting, 3 phases, 0 cycles apart", {"still waiting at the deadline": 1, "returned": 199}
    )
    assert agrees("remote", "alive", {"the wait returned": 20})
    assert not agrees("remote", "alive", {"the wait returned": 19, "the wait did not return": 1})
    assert agrees("remote", "exited", {"trap: X": 2})
    assert not agrees("remote", "exited", {"the wait returned": 2})
    for case in experiment("finished").cases:
        unit = "word" if case.arguments["kind"] < 4 else "sum"
        whole, torn = {f"{unit}s whole": 5}, {f"{unit}s torn": 1, f"{unit}s whole": 4}
        either = case.arguments["kind"] == 3 and not case.arguments["control"]
        assert agrees("finished", case.name, torn) == (bool(case.arguments["control"]) or either), case
        assert agrees("finished", case.name, whole) == (not case.arguments["control"]), "a control has to tear"
        assert not agrees("finished", case.name, torn | {"CTAs at the deadline": 1})
        assert not agrees("finished", case.name, {"trap: X": 1})
    assert agrees("timer_step", "one thread", {"32 ns": 999, "64 ns": 1})
    assert not agrees("timer_step", "one thread", {"32 ns": 999, "96 ns": 1})
    behind = {"least_behind": [0] * 8, "most_behind": [9] * 8}
    assert agrees("quarters", "after a barrier", {}, spread=[1, 8, 20], **behind)
    assert not agrees("quarters", "after a barrier", {}, spread=[1, 8, 21], **behind)
    assert agrees("quarters", "back and forth", {}, low=[-30] * 7, high=[31] * 7)
    assert not agrees("quarters", "back and forth", {}, low=[-30] * 6 + [21], high=[31] * 7)
    assert agrees("timer_agreement", "all SMs", {}, low=[-500] * 3, high=[600] * 3, spread=[32, 64, 96])
    assert not agrees("timer_agreement", "all SMs", {}, low=[-500, 64], high=[600, 700], spread=[32, 64, 96])


def token_ring(shift: int = 0) -> tuple[Experiment, Case, Outcome]:
    """A token in clusters of 2 whose clocks are perfect but for ``shift`` ns in the anchors of CTA 1."""
    each = experiment("pingpong")
    case = each.cases[0]
    epoch, step, lap = 1_790_000_000_000_000_000, 32, 400
    anchors, sent, received = [], [], []
    for cta in range(case.arguments["ctas"]):
        origin, odd = 1_000_000 * (cta + 1), cta % 2
        row = []
        for edge in (0, 25_600):
            timer = epoch + edge + (shift if cta == 1 else 0)
            row += [timer - step, timer, origin + 2 * edge - 20, origin + 2 * edge + 20]
        anchors.append(row)
        laps = [origin + 10_000 + lap * n // 10 for n in range(case.arguments["rounds"])]
        sent.append([at + 220 * odd for at in laps])
        received.append([at + (200 if odd else 420) for at in laps])
    data: dict[str, list[Any]] = {"sm": list(range(8)), "anchors": anchors, "sent": sent, "received": received}
    return each, case, Outcome({"CTAs finished": 8}, data)


def test_a_token_that_arrives_before_it_was_sent_is_seen() -> None:
    assert verdict(*token_ring()).agrees is True
    wrong = verdict(*token_ring(shift=-320))
    assert wrong.agrees is False
    assert "CTA 0 → CTA 1" in wrong.seen
    each, case, outcome = token_ring()
    assert verdict(each, case, replace(outcome, outcomes={"CTAs at the deadline": 8})).agrees is False


# Files.


def model_stored(path: Path) -> Stored:
    """A file of the answers of a chip that does what the model says, for two experiments."""
    found = {}
    for name in ("mbarrier", "lanes"):
        each = experiment(name)
        results = {case.name: model_chip(each, case) for case in each.cases}
        cases = {case: {"outcomes": r.outcomes, "data": r.data} for case, r in results.items()}
        found[name] = {"kernel": "0", "cases": cases}
    device = {"name": "Model", "sms": 1, "driver": "1", "nvrtc": "13"}
    path.write_text(dump({"version": 1, "device": device, "experiments": found}), encoding="utf-8")
    return read_results(path)


def test_answers_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "experiments.json"
    stored = model_stored(path)
    assert (stored.device, stored.driver, stored.nvrtc, stored.sms) == ("Model", "1", "13", 1)
    assert stored.cases["lanes"]["2 on 1"].trapped
    assert dump(json.loads(path.read_text())) == path.read_text()
    assert (
        verdict(experiment("lanes"), experiment("lanes").case("2 on 1"), stored.cases["lanes"]["2 on 1"]).seen == FAILS
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 2}', '{"version": 1, "device": 3}'])
def test_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "experiments.json"
    path.write_text(text)
    with pytest.raises(TraceFormatError) as caught:
        read_results(path)
    assert caught.value.place == str(path)
