"""Every command has a limit of time and one of memory, and ends as unknown with what it knows.

No test waits for a limit: the work that is to reach it has no end, and says itself that the time is up.
"""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pipesim.answers import verify as verify_parts
from pipesim.answers.checking import stepped, verdict
from pipesim.cli.main import COMMANDS, main
from pipesim.model.live.rules import rules_of
from pipesim.process.watch import current
from pipesim.timed import timed_run
from tests.support.fixture_types import Call

PC = "producer_consumer"
FEW = ("-p", "tiles=2")
#: A command whose work ends at its limit of time, and one that goes on in steps: all have the same net.
WORDS = {"run": (PC,), "check": (PC,)}


def endless(*_: object, **__: object) -> NoReturn:
    """Work that reaches whatever limit there is."""
    while True:
        pass


def time_is_up(*_: object, **__: object) -> NoReturn:
    """Work at which the time limit is reached."""
    current().start(1e-9)
    endless()


def out_of_memory(*_: object, **__: object) -> NoReturn:
    """Work at which the memory limit is reached."""
    current().out_of_memory()
    endless()


def carrier(name: str) -> Any:
    """The function that carries out a command."""
    return next(command for command in COMMANDS if command.name == name).carry_out


class TestEveryCommand:
    def test_ends_at_its_time_limit(self, call: Call, tmp_path: Path) -> None:
        answer = call("run", PC, "--time-limit", "1e-9", "--json")
        assert (answer.code, answer.json["exit_code"], answer.json["error"]["kind"]) == (3, 3, "LimitError")
        assert answer.error[0] == "pipesim: unknown: the time limit of 1e-09 s was reached"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("command", WORDS)
    def test_ends_at_its_memory_limit(self, call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
        monkeypatch.setattr(carrier(command), "__code__", endless.__code__)
        answer = call(command, *WORDS[command], "--max-memory", "1M", "--json")
        assert (answer.code, answer.json["error"]["kind"]) == (3, "LimitError")
        assert answer.error[0] == "pipesim: unknown: the memory limit of 1 MiB was reached"

    @pytest.mark.parametrize("command", WORDS)
    def test_ends_so_where_memory_is_refused(self, call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
        monkeypatch.setattr(carrier(command), "__code__", (lambda options: bytearray(1 << 62)).__code__)
        answer = call(command, *WORDS[command])
        assert (answer.code, answer.out) == (3, "")
        assert answer.error[0].startswith("pipesim: unknown: the memory limit of ")


class TestCheck:
    def test_without_a_verdict_it_is_unknown(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verdict, "prove", time_is_up)
        answer = call("check", PC, *FEW)
        assert (answer.code, answer.err) == (3, "")
        assert answer.verdict == "? unknown: neither proved nor refuted when the time limit was reached"
        document = call("check", PC, *FEW, "--json").json
        assert (document["exit_code"], document["report"]["cut"]) == (3, "time")

    @pytest.mark.parametrize(("reached", "what"), [(time_is_up, "time"), (out_of_memory, "memory")])
    def test_a_verdict_is_kept(
        self, call: Call, monkeypatch: pytest.MonkeyPatch, reached: Callable[..., None], what: str
    ) -> None:
        monkeypatch.setattr(stepped.SteppedCheck, "_look_for_leftovers", reached)
        answer = call("check", PC, *FEW)
        assert (answer.code, answer.err) == (0, "")
        said = " ".join(answer.out.split())
        assert f"left out what is left at the end: {what} limit · other sizes: {what} limit" in said


class TestOthers:
    def test_a_simulation_is_reported_as_far_as_it_went(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        left = iter(range(500))

        def limited(live: Any) -> Any:
            return [None if rule is None else partial(once, rule) for rule in rules_of(live)]

        def once(rule: Callable[..., int], *state: Any) -> int:
            return rule(*state) if next(left, None) is not None else time_is_up()

        monkeypatch.setattr(timed_run, "rules_of", limited)
        answer = call("run", PC, "--save-trace", "t.parquet")
        assert (answer.code, answer.err) == (3, "")
        assert answer.verdict == "? unknown: the time limit was reached after 625 steps, before the program ended"
        assert Path("t.parquet").is_file()

    def test_behaviour_is_reported_where_times_take_too_long(
        self, call: Call, recorded: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pipesim.conform.compare.simulate", time_is_up)
        answer = call("diff", recorded)
        assert (answer.code, answer.err) == (3, "")
        assert answer.verdict == (
            "? the order of events agrees; times: not compared: a limit of time or memory ended the simulation"
        )

    @pytest.mark.slow
    def test_the_proof_is_reported_where_the_simulation_takes_too_long(
        self, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pipesim.answers.verify.run", time_is_up)
        answer = call("verify", PC, *FEW, "--no-hardware")
        assert (answer.code, answer.err) == (3, "")
        assert "✓ proved for every schedule" in answer.out
        assert answer.verdict.endswith("the time limit was reached before everything was simulated and compared")
        document = call("verify", PC, *FEW, "--no-hardware", "--json").json
        assert (document["exit_code"], document["report"]["cut"]) == (3, "time")


class TestSeveral:
    def test_in_the_summary(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        for each in ("run", "check"):
            monkeypatch.setattr(verify_parts, each, time_is_up)
        answer = call("verify", PC, "cluster_multicast", *FEW, "--no-hardware", "--jobs", "1", "--json")
        assert (answer.code, answer.err) == (3, "")
        for each in answer.json["protocols"].values():
            failures = each["report"]["failures"]
            assert len(failures) == 2
            assert all(failed["said"].startswith("unknown: the time limit of ") for failed in failures)


def test_a_command_that_is_not_in_the_main_thread_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Signals reach the main thread only, so nothing could be raised; the command is carried out all the same."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["list", "--time-limit", "1e-9"])))
    thread.start()
    thread.join()
    assert codes == [0]
