"""The lines with which a report says how to see a schedule again are taken as they are printed."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipesim.errors import ParameterError
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from pipesim.report.findings import schedule
from tests.ptx.global_memory.test_global_memory import SOURCES, WRONG, launch_of
from tests.support.fixture_types import Call
from tests.support.planted_ptx import PLANTED

_BY_NAME = {each.name: each for each in PLANTED}
_RIGHT = _BY_NAME["proxy_fence"]


def kernels() -> Iterator[tuple[str, Launch]]:
    """Wrong kernels: the first are those of CI."""
    yield _RIGHT.text.replace("bulk.wait_group 0", "bulk.wait_group.read 0"), _RIGHT.launch
    texts = [each.with_suffix(".ptx").read_text("utf-8") for each in SOURCES]
    for case in reversed(WRONG):
        yield next(text for text in texts if f".entry {case.entry}(" in text), launch_of(case)
    yield from ((each.text, each.launch) for each in PLANTED if each.finding)


def written(folder: Path, text: str, launch: Launch) -> str:
    (folder / "kernel.ptx").write_text(text, "utf-8")
    (folder / "kernel.json").write_text(launch_json(launch), "utf-8")
    return str(folder / "kernel.ptx")


def commands(report: str) -> list[list[str]]:
    """The words of each command that a report has under ``again``, ``then`` and ``as a timeline``."""
    found: list[list[str]] = []
    for block in report.split("\n\n"):
        text, *others = block.replace("  as a timeline: ", "\0").replace("   then: ", "\0").split("\0")
        if text.startswith("  again: "):
            lines = [text.removeprefix("  again: "), *others]
            found += [shlex.split(each.replace("\\\n", "")) for each in lines if not each.startswith("`")]
    return found


@pytest.mark.sampled(0, 1, 2)
@pytest.mark.parametrize(("text", "launch"), [*kernels()])
def test_each_line_that_is_printed_is_taken(call: Call, tmp_path: Path, text: str, launch: Launch) -> None:
    told = call("check", written(tmp_path, text, launch))
    assert told.code == 1
    assert ("again: " in told.out) is bool(commands(told.out))
    for words in commands(told.out):
        answer = call(*words[1:])
        assert (answer.code, answer.err) == (1, "")
        assert words[1] == "run" or answer.verdict.endswith("fails in this schedule")


@pytest.mark.slow
def test_a_long_schedule_is_taken_from_a_file(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, _BY_NAME["uncounted_reader"].text, _BY_NAME["uncounted_reader"].launch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schedule, "MOST_REPLAY", 2)
    found = commands(call("check", "kernel.ptx").out)
    assert [each[-1] for each in found[1::2]] == ["@found.json:2", "@found.json:1", "@found.json"]
    assert found[0] == ["pipesim", "check", "kernel.ptx", "--json", ">", "found.json"]
    (tmp_path / "found.json").write_text(call(*found[0][1:4]).out, "utf-8")
    said = [call(*words[1:]).out for words in found[1::2]]
    assert [["wrong_item" in each, "lapped" in each] for each in said] == [[True, False], [False, True], [False, False]]
    wrong = call("check", "kernel.ptx", "--replay", "@found.json:7")
    assert (wrong.code, "found.json has no schedule of finding 7" in wrong.err) == (ParameterError.exit_code, True)
