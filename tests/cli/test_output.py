"""Where a command writes, in what form, and what it does where nobody reads or nothing can be written."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipesim.cli.output import progress
from tests.support.fixture_types import Call
from tests.support.lanes import long_after, slow_after
from tests.support.paths import ROOT

PC = "producer_consumer"


def pipesim(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, piped."""
    program = "import sys; from pipesim.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **options.pop("env", {})}
    environment.pop("PYTHONUNBUFFERED", None)  # a buffer that is still full at the end is part of the story
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    command = [sys.executable, "-W", "error", "-c", program, *argv]
    return subprocess.run(command, check=False, text=True, encoding="utf-8", env=environment, **streams)


HEAD = ["schema", "pipesim", "exit_code"]  #: of every document


class TestJson:
    @pytest.mark.sampled(1)
    @pytest.mark.parametrize(
        "argv",
        [
            ["run", PC, "-p", "tiles=16"],
            ["run", "ring.py:ring", "-p", "arrivals=1"],
            pytest.param(["verify", PC], marks=pytest.mark.long),
            pytest.param(["verify", "ring.py:ring"], marks=pytest.mark.long),
            ["diff", "edited/h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"],
        ],
    )
    def test_valid_the_same_twice_and_in_ascii(self, call: Call, ring: str, refuted: Path, argv: list[str]) -> None:
        first, second = call(*argv, "--json"), call(*argv, "--json")
        assert first == second
        assert list(first.json) == [*HEAD, "findings", "report", *(["error"] if first.code == 3 else [])]
        assert first.json["exit_code"] == first.code
        assert first.out.isascii()
        assert "NaN" not in first.out

    @pytest.mark.parametrize(
        ("argv", "code", "kind"),
        [
            (["run", "nothing"], 2, "UnknownProtocolError"),
            (["verify", PC, "-p", "stages"], 2, "ParameterError"),
            (["capture", PC], 3, "HardwareError"),
            (["diff", "empty.parquet"], 3, "TraceFormatError"),
        ],
    )
    def test_an_error_is_a_document_too(self, call: Call, argv: list[str], code: int, kind: str) -> None:
        Path("empty.parquet").touch()
        answer = call(*argv, "--json")
        assert answer.code == answer.json["exit_code"] == code
        assert list(answer.json) == [*HEAD, "error"]
        error = answer.json["error"]
        assert list(error) == ["kind", "fact", "place", "cause", "correction"]
        assert error["kind"] == kind
        assert answer.err == call(*argv).err
        assert answer.err.startswith(f"pipesim: {error['fact']}\n")


class TestProgress:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    @pytest.mark.slow
    @pytest.mark.parametrize("argv", [["run", PC], pytest.param(["verify", PC], marks=pytest.mark.long)])
    def test_it_is_on_standard_error_if_that_is_a_terminal(
        self, call: Call, monkeypatch: pytest.MonkeyPatch, argv: list[str]
    ) -> None:
        plain = call(*argv)
        terminal = self.Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        answer = call(*argv)
        assert (answer.code, answer.out) == (plain.code, plain.out)
        assert f"simulating {PC} on h100 ..." in terminal.getvalue()
        assert terminal.getvalue().endswith("\x1b[2K")  # the line is wiped

    def test_it_ends_where_the_work_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = self.Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(KeyError), progress("working"):
            raise KeyError
        assert terminal.getvalue().endswith("\x1b[2K")


class TestPipes:
    @pytest.mark.slow
    @pytest.mark.parametrize("encoding", ["utf-8", pytest.param("ascii", marks=pytest.mark.long)])
    def test_a_pipe_gets_text_only(self, encoding: str) -> None:
        answer = pipesim("run", PC, "-p", "tiles=4", env={"PYTHONIOENCODING": encoding})
        assert (answer.returncode, answer.stderr) == (0, "")
        assert "\x1b" not in answer.stdout
        assert answer.stdout.isascii() is (encoding == "ascii")
        assert answer.stdout.splitlines()[-1].endswith(" finished: no deadlock and no fault in this schedule")
        assert max(map(len, answer.stdout.splitlines())) <= 80

    @pytest.mark.sampled(0, 1)
    @pytest.mark.parametrize(
        ("argv", "code"),
        [
            (["run", PC, "--max-steps", "9", "--json"], 3),
            (["check", str(ROOT / "docs" / "examples" / "row_max.ptx"), "--quick", "--untrusted"], 1),
            (["list"], 0),
        ],
    )
    def test_a_reader_that_has_gone_changes_nothing(self, argv: list[str], code: int) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        answer = pipesim(*argv, stdout=writing)
        os.close(writing)
        assert (answer.returncode, answer.stderr) == (code, "")


LOUD = """
from pipesim import Protocol
print("the module")

def ring(tiles: int = 2):
    print("the protocol")
    p = Protocol("ring")
    full = p.mbarriers("full", 1, 1)

    @p.role("a")
    def a(w):
        print("the role")
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[0].arrive()
                full[0].wait(i & 1)
    return p
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code"),
    long_after(
        1,
        slow_after(
            0,
            [
                ("run", 0), ("verify --jobs 2 --no-hardware producer_consumer", 0),
                ("check", 0), ("show", 0), ("verify", 3),
            ],
        ),
    ),
)  # fmt: skip
def test_what_a_protocol_prints_is_no_part_of_the_report(tmp_path, command, code):
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    done = pipesim(*command.split(), "loud.py:ring", "--json", cwd=tmp_path)
    assert (isinstance(json.loads(done.stdout), dict), done.returncode) == (True, code)
    assert [text in done.stderr for text in ("the module", "the protocol", "the role")] == [True] * 3
