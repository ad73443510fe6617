"""The experiments: every kernel compiles, the model says what was seen by hand and what is stored, and the runner
leaves nothing out, whatever becomes of a child."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.experiments import run as runner
from hwkernels.experiments.bench import BENCHES, Bench, _integers, run_case
from hwkernels.experiments.catalogue import EXPERIMENTS, Case, Experiment, experiment
from hwkernels.experiments.results import Outcome, Stored, dump, read_results, stored_results
from hwkernels.experiments.sequences import NAMES, SEQUENCES, Code, parse
from hwkernels.experiments.verdict import FAILS, predict, verdict
from pipesim.errors import HardwareError, ParameterError, TraceFormatError
from pipesim.model import barrier
from pipesim.model.barrier import word_of
from tests.support.paths import TRACES

INFO = DeviceInfo(0, "Array GPU", 132, "9.0", "999.1", 232448, 233472)


@pytest.mark.parametrize("each", EXPERIMENTS, ids=lambda e: e.name)
def test_every_kernel_compiles_without_a_warning(each: Experiment) -> None:
    compiled = compile_cubin(each.source, each.defines)
    assert (compiled.log, compiled.entry) == ("", each.kernel)


def test_the_catalogue_is_whole() -> None:
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)
    assert {each.source.name for each in EXPERIMENTS} == {
        path.name for path in EXPERIMENTS[0].source.parent.glob("*.cu") if path.stem != "products"
    }  # products.cu has a driver of its own
    for each in EXPERIMENTS:
        assert len({case.name for case in each.cases}) == len(each.cases)
        assert each.bench in BENCHES
    text = EXPERIMENTS[0].source.read_text()
    names = text[text.index("enum Code") : text.index("};")].replace("\n", " ").partition("{")[2].split(",")
    assert [name.strip() for name in names] == [f"CODE_{code.name}" for code in Code]


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
    if each.bench == "sequence":
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


# The bench, on a chip made of the model.


class ModelGpu:
    """The device calls of the sequences' bench; a launch does what the model says."""

    def __init__(self, info: DeviceInfo) -> None:
        self.memory: dict[int, np.ndarray] = {}

    def load(self, compiled, smem_bytes):
        return compiled.entry

    def allocate(self, nbytes: int) -> int:
        address = (len(self.memory) + 1) << 32
        self.memory[address] = np.full(nbytes, 0x77, dtype=np.uint8)
        return address

    def host_mapped(self, nbytes: int):
        address = self.allocate(nbytes)
        return address, self.memory[address]

    def upload(self, address, array):
        self.memory[address][: array.nbytes] = array.reshape(-1).view(np.uint8)

    def close(self):
        pass

    def launch(self, kernel, shape, arguments, *, cluster=1):
        assert (kernel, shape, cluster) == ("sequences", (1, 1, 0), 1)
        ops, count, out = (int(a) for a in arguments)
        names = {code: name for name, code in NAMES.items()}
        pairs = self.memory[ops].view(np.uint32).reshape(count, 2).tolist()
        predicted = predict("; ".join(f"{names[Code(code)]} {operand}" for code, operand in pairs))
        said = self.memory[out].view(np.uint64)
        for n, answer in enumerate(predicted.answers):
            said[n] = {"-": 4, "0": 5, "1": 6, "!": 8}[answer]
        if predicted.trapped:
            raise HardwareError("the kernel trapped: cuStreamSynchronize says CUDA_ERROR_LAUNCH_FAILED")
        said[count : count + 3] = [7, word_of(predicted.state), 1]


def test_the_bench_reads_what_the_kernel_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwkernels.experiments.bench.Gpu", ModelGpu)
    each = experiment("mbarrier")
    for case in each.cases:
        result = run_case(INFO, each, case)
        expected = model_chip(each, case)
        outcomes = dict.fromkeys(expected.outcomes, 1)
        assert result == {"outcomes": outcomes, "data": expected.data}
        assert json.loads(json.dumps(result)) == result


class AnyGpu:
    """A GPU whose memory holds numbers that no kernel wrote, the same every time: shapes and integers are at stake."""

    def allocate(self, nbytes: int) -> int:
        return 1 << 32

    def host_mapped(self, nbytes: int):
        return 1 << 32, np.zeros(nbytes, dtype=np.uint8)

    def upload(self, address, array):
        assert array.flags.c_contiguous

    def fill(self, address, byte, nbytes):
        assert byte == 0

    def launch(self, kernel, shape, arguments, *, cluster=1):
        assert shape[0] % cluster == 0
        assert all(isinstance(a, int | np.uint32) for a in arguments)

    def download(self, address, array):
        words = array.reshape(-1).view(np.uint8)
        words[:] = (np.arange(words.size, dtype=np.int64) * 2654435761 >> 7).astype(np.uint8)


@pytest.mark.parametrize("each", EXPERIMENTS, ids=lambda e: e.name)
def test_every_bench_gives_integers_and_known_outcomes(each: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(cast("Gpu", AnyGpu()), "kernel", "hash", 132)
    for case in each.cases:
        if each.bench == "laps":  # whatever else the memory holds is no answer
            monkeypatch.setattr(bench, "fetch", lambda address, shape, dtype: np.ones(shape, dtype=dtype))
        raw = BENCHES[each.bench](bench, case)
        assert all(count >= 0 for count in raw["outcomes"].values())
        assert raw["outcomes"] or each.bench == "copy"
        assert all(isinstance(list(values), list) for values in raw["data"].values())
        assert dump({"data": {name: _integers(values) for name, values in raw["data"].items()}})


# The runner, with children made of paper.


class Paper:
    """A child that answers as it is told: a number of cases, then an end."""

    returncode = 0
    script: tuple[tuple[int, int, bool], ...] = ()  # cases it comes through, exit code, whether it hangs
    started = 0

    def __init__(self) -> None:
        self.cases, self.returncode, self.hangs = Paper.script[Paper.started]
        Paper.started += 1

    def communicate(self, job: str | None = None, timeout: float | None = None):
        if job is not None:
            self.job = json.loads(job)
            if self.hangs:
                raise subprocess.TimeoutExpired("child", timeout or 0)
        lines = [json.dumps({"outcomes": {name: 1}, "data": {"n": [Paper.started]}}) for name in self.job["cases"]]
        return "\n".join(lines[: self.cases]), "a complaint\nthe last word"

    def kill(self) -> None:
        self.returncode = -9

    def poll(self) -> int:
        return self.returncode


def _play(monkeypatch: pytest.MonkeyPatch, *script: tuple[int, int, bool]) -> Experiment:
    monkeypatch.setattr(Paper, "script", script)
    monkeypatch.setattr(Paper, "started", 0)
    monkeypatch.setattr(runner, "_start", Paper)
    cases = tuple(Case(name) for name in "abcd") + tuple(Case(name, may_trap=True) for name in "xy")
    return Experiment("play", "?", "!", "sequences", "sequence", cases)


def _outcomes(results: dict) -> dict[str, dict[str, int]]:
    return {name: result["outcomes"] for name, result in results.items()}


def test_a_child_that_dies_costs_its_case_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    each = _play(monkeypatch, (1, 3, False), (0, 0, True), (9, 0, False))
    assert _outcomes(runner._together(each, each.cases[:4])) == {
        "a": {"a": 1},
        "b": {"failed: the last word": 1},
        "c": {"failed: no end within 60 s": 1},
        "d": {"d": 1},
    }
    assert Paper.started == 3


def test_cases_that_may_trap_are_repeated_each_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    each = _play(monkeypatch, (1, 0, False), (1, 0, False), (0, 1, False), (1, 0, False))
    found = runner._apart(each, each.cases[4:], 2)
    assert _outcomes(found) == {"x": {"x": 2}, "y": {"failed: the last word": 1, "y": 1}}
    assert Paper.started == 4


def test_repetitions_that_differ_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {"outcomes": {"ok": 1}, "data": {"n": [1]}}
    other = {"outcomes": {"ok": 1}, "data": {"n": [2]}}
    assert runner._merged([same, same]) == {"outcomes": {"ok": 2}, "data": {"n": [1]}}
    assert runner._merged([same, other, other])["data"] == {"n": [1], "repetitions_that_differ": [2]}


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    assert runner.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [each.name for each in EXPERIMENTS]
    target = tmp_path / "answers" / "experiments.json"
    document = {"version": 1, "device": {"name": "N", "sms": 1, "driver": "D", "nvrtc": "V"}, "experiments": {}}
    monkeypatch.setattr(runner, "run", lambda chosen, repeat: document | {"chosen": [e.name for e in chosen]})
    assert runner.main(["--json", str(target), "--only", "lanes"]) == 0
    assert json.loads(target.read_text())["chosen"] == ["lanes"]
    again = document | {"experiments": {"lanes": 2, "laps": 3}}
    target.write_text(json.dumps(document | {"experiments": {"copies": 1, "lanes": 1}}))
    monkeypatch.setattr(runner, "run", lambda chosen, repeat: again)
    assert runner.main(["--json", str(target), "--only", "lanes", "--only", "laps", "--force"]) == 0
    assert json.loads(target.read_text())["experiments"] == {"copies": 1, "lanes": 2, "laps": 3}
    monkeypatch.setattr(runner, "run", lambda chosen, repeat: again | {"device": {"name": "another"}})
    assert runner.main(["--json", str(target), "--only", "lanes", "--force"]) != 0
    assert "the answers there are of" in capsys.readouterr().err
    assert runner.main(["--json", str(target)]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert runner.main(["--json", str(target), "--force", "--only", "nothing"]) == 2
    assert "there is no experiment 'nothing'" in capsys.readouterr().err


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
