"""``pipesim hang``: what it says before a program starts, and how it ends."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support import fake_dumping_driver as fake


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("manner", "code", "said"),
    [
        ("", 5, "1 of 1 core dump"),
        ("early --json", 3, '"end": "truncated"'),
        ("ends", 3, None),
        ("traps", 134, "an exception stopped the program: 1 of 1"),
    ],
)
def test_its_exit_code_says_whether_it_was_dumped(
    call: Call, tmp_path: Path, manner: str, code: int, said: str | None
) -> None:
    manners, json = manner.removesuffix("--json").split(), ["--json"] if manner.endswith("--json") else []
    program = [sys.executable, "-S", fake.__file__, *manners]
    answer = call("hang", *json, "--after", "0.1", "--keep", str(tmp_path), "--", *program)
    assert answer.code == code
    assert any("Ctrl-\\" in line for line in answer.error)
    assert (said or "") in " ".join(answer.out.split())
    assert ("cannot be read" in answer.out) == (code in (5, 134))  # it is no dump of the driver


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "no program is given"),
        (("--now", "1", "--", "true"), "--now is for a program that runs"),
        (("--keep", "/dev/null/x", "--", "true"), "no core dump can be written here"),
    ],
)
def test_what_is_missing_is_said_before_the_program_starts(call: Call, words: Sequence[str], problem: str) -> None:
    answer = call("hang", *words)
    assert (answer.code, problem in answer.error[0]) == (2, True), answer.error
