"""Answers before and after a change: equal ones are equal, and another verdict, text or exit code is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import same_answers as tool


@pytest.mark.slow
def test_every_kind_of_question_is_asked() -> None:
    asked = set(tool.questions())
    assert len(asked) > 1_500
    assert ("check", "producer_consumer") in asked
    assert {(words[0], Path(words[1]).suffix) for words in asked} == {
        ("check", ""), ("run", ""), ("verify", ""), ("check", ".ptx"), ("run", ".ptx"), ("diff", ".parquet"),
    }  # fmt: skip


@pytest.mark.slow
def test_an_answer_is_the_same_twice_and_a_changed_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question, answer = tool.answer(("check", "producer_consumer", "--quick"))
    assert (answer["exit_code"], answer["document"]["report"]["verdict"]) == (0, "proved")
    assert tool.answer(("check", "producer_consumer", "--quick")) == (question, answer)
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    changed = {
        **answer,
        "exit_code": 1,
        "document": {**answer["document"], "report": {**answer["document"]["report"], "verdict": "refuted"}},
    }
    for file, said in ((before, answer), (after, changed)):
        file.write_text(json.dumps([question, said]) + "\n")
    assert tool.main(["compare", str(before), str(before)]) == 0
    assert tool.main(["compare", str(before), str(after)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "/document/report/verdict: 1 times, as in pipesim check producer_consumer --quick",
        "  before: proved",
        "  after:  refuted",
        "/exit_code: 1 times, as in pipesim check producer_consumer --quick",
        "  before: 0",
        "  after:  1",
        "1 questions were asked twice, 0 once; 2 keys differ",
    ]


def test_an_error_is_an_answer_too() -> None:
    _, answer = tool.answer(("check", "no_such_protocol"))
    assert (answer["exit_code"], answer["document"]) == (2, None)
    assert "no_such_protocol" in answer["text"]
