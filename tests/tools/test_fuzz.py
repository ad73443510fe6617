"""The fuzzers of tools/fuzz: a few hundred cases of each kind, and wrong twins that they must see."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesim.answers.views import check as views
from pipesim.model.finding import Verdict
from pipesim.model.program_json import dumps
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring
from tests.support.random_programs import FAMILIES
from tools.fuzz import naive, worker
from tools.fuzz.cases import Answer, Case, complaints, judged
from tools.fuzz.kinds import KINDS, programs, schedules, traces
from tools.fuzz.runner import run

FIRST = 30_040  #: the first seed of those in the fast lane
CASES = 20  #: of each kind; tools/fuzz does thousands
TESTS = {"traces": 4, "profiles": 4}  #: in which they are done, so that each takes less than a second; of others 2


def parts() -> list[tuple[str, range]]:
    """The kinds, each with the seeds of one test."""
    sizes = {kind: CASES // TESTS.get(kind, 2) for kind in KINDS}
    return [(kind, range(n, n + size)) for kind, size in sizes.items() for n in range(FIRST, FIRST + CASES, size)]


@pytest.mark.sampled(2, 4)
@pytest.mark.parametrize(("kind", "seeds"), parts(), ids=lambda part: part if isinstance(part, str) else part.start)
def test_what_comes_back_is_a_clear_error_or_a_result_that_is_confirmed(kind: str, seeds: range) -> None:
    """In this process: without those whose code may end it."""
    inside = [seed for seed in seeds if not worker.case_of(kind, seed).alone]
    wrong = [(seed, worker.carry_out(kind, seed).wrong) for seed in inside]
    assert [each for each in wrong if each[1]] == []


# What a wrong answer looks like


def answer(code: int = 0, out: str = "", err: str = "", left: tuple[str, ...] = ()) -> Answer:
    return Answer(code, out, err, 0.0, left)


CASE = Case("a case", {}, ("run", "x"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answer(), []),
        (answer(2, err="pipesim: no\n  try: yes\n    again\n"), []),
        (answer(5), ["exit code 5"]),
        (answer(130), ["exit code 130"]),
        (answer(2), ["exit code 2 without a word"]),
        (answer(70, err="pipesim: an internal error of pipesim: KeyError: 1\n  at: /a/b.py:3\n"),
         ["internal error: KeyError at b.py:3"]),
        (answer(1, "found", "Traceback (most recent call last)\n"),
         ["a traceback", "standard error has lines that are no part of an error"]),
        (answer(0, "\x1b[31m"), ["standard output has control characters"]),
        (answer(0, "ok\n  ::error::x"), ["standard output has a command of a CI system"]),
        (answer(0, "a ##[error]"), ["standard output has a command of a CI system"]),
        (answer(left=("tmp/x",)), ["left files: tmp/x"]),
    ],
)  # fmt: skip
def test_what_is_complained_of(given: Answer, said: list[str]) -> None:
    assert complaints(CASE, given) == said


# Wrong twins: an engine that is wrong is not confirmed


def wrong_program() -> Any:
    return BROKEN["consumer_does_not_wait"](tiles=2).flatten()


def test_a_wrong_verdict_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = dumps(wrong_program()).encode()
    case = Case("wrong", {programs.FILE: data}, ("check", programs.FILE, "--quick", "--json"), programs.confirm(data))
    right = in_folder(case, tmp_path / "right")
    assert (right[0].code, right[1]) == (1, [])
    honest = views.CheckReport.__init__

    def always(self: Any, *given: Any, **named: Any) -> None:
        honest(self, *given, **named)
        object.__setattr__(self, "verdict", Verdict.PROVED)
        object.__setattr__(self, "refutations", ())

    monkeypatch.setattr(views.CheckReport, "__init__", always)
    found, said = in_folder(case, tmp_path / "wrong")
    assert found.code == 0
    assert said[0].startswith("proved, and a schedule ends in ")


def test_a_counterexample_that_shows_nothing_is_seen(tmp_path: Path) -> None:
    data = dumps(right_ring(1, 2).flatten()).encode()
    claims = programs.confirm(data)
    found = '{"exit_code": 1, "findings": [{"kind": "deadlock"}], "report": {"refutations": []}}'
    assert claims(answer(1, found)) == "refuted by deadlock, which no schedule shows"
    shown = '{"finding": {"kind": "wrong_item"}, "replay": "0"}'
    found = f'{{"exit_code": 1, "findings": [], "report": {{"refutations": [{shown}]}}}}'
    assert claims(answer(1, found)) == "a counterexample of wrong_item that ends in []"


def test_a_trace_that_wrongly_agrees_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = traces.base(1)
    columns = {name: list(values) for name, values in right.columns.items()}
    row = columns["parity"].index(1)
    columns["parity"][row] = 0
    types = dict.fromkeys(columns, traces.INTEGER)
    data = traces.sealed(dict(right.document), columns, types, fix=True)
    words = ("diff", "t.parquet", "--json")
    case = Case("parity", {"t.parquet": data}, words, traces.confirm(right, " ".join(words)))
    found, said = in_folder(case, tmp_path / "right")
    assert (found.code, said) == (1, [])
    same = replace(case, files={"t.parquet": right.data})
    found, said = in_folder(same, tmp_path / "same")
    assert (found.code, said) == (0, [])
    (tmp_path / "t.parquet").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert case.confirm(answer(0)) == "it agrees, and producer/0@0 recorded something else"


def test_a_schedule_that_is_wrongly_refused_or_accepted_is_seen() -> None:
    program = right_ring(1, 2).flatten()
    line = schedules.walked(program, Random(0))
    accepts = schedules.confirm(program, line)
    assert accepts(answer(2, '{"error": {}}')) == "a schedule that is possible is refused"
    assert accepts(answer(3, '{"findings": []}')) == ""
    said = accepts(answer(1, '{"findings": [{"kind": "race"}]}'))
    assert said is not None
    assert said.startswith("findings ['race'], and it ends in")
    refuses = schedules.confirm(program, f"{line}.99")
    assert refuses(answer(2, '{"error": {}}')) == ""
    assert refuses(answer(3, "{}")) == "exit code 3 for a line that is not a schedule"


def in_folder(case: Case, folder: Path) -> tuple[Answer, list[str]]:
    """A case's answer and what is complained of, in a folder that is made for it."""
    folder.mkdir()
    found = run(case, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return found, judged(case, found)[0]
    finally:
        os.chdir(before)


# The naive engines


@pytest.mark.sampled(2, 4)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_naive_search_and_the_plain_one_agree(family: str) -> None:
    from pipesim.prove.search.breadth_first import explore

    compared = 0
    for seed in range(12):
        program = FAMILIES[family](seed)
        plain, seen = explore(program, 1_500, reduced=False), naive.explore(program, 1_500)
        if plain.complete and seen.complete:
            compared += 1
            assert {kind.name.lower() for kind in plain.kinds} == seen.wrong
    assert compared > 4
