"""``pipesim launches``: a program runs as it would without it, and what it launched is written, whatever its end.

The programs here write the records that the observer writes on a machine with a GPU.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.views.launches import CaughtKernel, CaughtLaunch, LaunchesReport
from pipesim.formats.documents import launches_exit_code
from pipesim.launches import checks, inject
from pipesim.launches.inject import observed_environment
from pipesim.launches.observe.limits import Limits
from pipesim.model.finding import Verdict
from pipesim.process.system import ENDING
from pipesim.process.watch import SignalError
from pipesim.ptx.launch.file import read_launch
from tests.support.fixture_types import Call
from tests.support.paths import ROOT
from tests.support.spools import record_of, write_spool

resource = pytest.importorskip("resource")  # a program is observed on Linux alone

KERNELS = ROOT / "tests" / "ptx" / "kernels"
COPY = 'cp prepared/* "$PIPESIM_LAUNCHES_SPOOL"'
PTX = KERNELS / "scale_ws_s3-sm_90a.ptx"


def sh(script: str) -> tuple[str, ...]:
    return ("--", "sh", "-c", script)


@pytest.fixture(autouse=True)
def prepared(tmp_path: Path) -> Path:
    """The records of a process that launches one kernel of ours twice, with two grids."""
    given = read_launch(PTX.with_suffix(".json").read_text(encoding="utf-8"), "x")
    count = {"kind": "count", "kernel": "scale_ws", "image": "i", "launches": 9, "distinct": 2, "left_out": 0}
    records = [record_of(given), record_of(replace(given, grid=(4, 1, 1))), count]
    return write_spool(tmp_path / "prepared", records, i=PTX.read_text(encoding="utf-8"))


class TestWhatIsWritten:
    def test_every_distinct_launch_beside_its_ptx_and_a_table(self, call: Call) -> None:
        answer = call("launches", *sh(COPY))
        assert (answer.code, answer.err) == (0, "")
        assert answer.out == (
            "  kernel    PTX from  launches  distinct\n"
            "  scale_ws  Triton           9         2\n"
            "    scale_ws.json    grid 8 · block 256\n"
            "    scale_ws-2.json  grid 4 · block 256\n"
            "\n"
            "✓ 2 launch files of 1 kernel written to launches\n"
            "\n"
            "  pipesim check launches/scale_ws.ptx\n"
        )
        names = {"launches.json", "scale_ws.ptx", "scale_ws.json", "scale_ws-2.json"}
        assert {path.name for path in Path("launches").iterdir()} == names

    def test_the_folder_and_the_kernels_can_be_chosen(self, call: Call) -> None:
        answer = call("launches", "--out", "a/b", "--kernels", "gemm*", *sh(COPY))
        assert answer.code == 3
        assert "kernels that match no pattern: 1" in answer.out
        assert [path.name for path in Path("a/b").iterdir()] == ["launches.json"]

    def test_a_folder_with_something_in_it_is_refused_before_the_program_runs(self, call: Call) -> None:
        Path("launches").mkdir()
        Path("launches/mine").write_text("")
        answer = call("launches", *sh("touch ran"))
        assert (answer.code, answer.err.splitlines()[0]) == (2, "pipesim: launches is not empty")
        assert not Path("ran").exists()
        assert call("launches", "--force", *sh(COPY)).code == 0


class TestVerdicts:
    @pytest.mark.slow
    def test_a_refuted_one_is_a_finding_and_is_named(self, call: Call, prepared: Path) -> None:
        text = PTX.read_text(encoding="utf-8")
        line = next(each for each in text.splitlines() if "mbarrier.arrive.shared" in each)
        (prepared / "i.ptx").write_text(text.replace(line, "", 1))
        answer = call("launches", "--check", "--json", *sh(COPY))
        assert answer.code == 1
        verdicts = {each["verdict"] for each in answer.json["report"]["kernels"][0]["caught"]}
        assert verdicts == {"refuted"}

    def test_an_interrupted_check_keeps_what_is_known(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        verdicts: Iterator[Any] = iter([(Verdict.PROVED, "proved"), SignalError(signal.SIGINT)])

        def checked(*_: object, **__: object) -> Any:
            found = next(verdicts)
            if isinstance(found, SignalError):
                raise found
            return found

        monkeypatch.setattr(checks, "check_launch", checked)
        answer = call("launches", "--check", *sh(COPY))
        assert answer.code == 3
        assert "✓ scale_ws.json    proved\n" in answer.out
        assert "? scale_ws-2.json  unknown: interrupted before there was a verdict" in answer.out

    def test_another_signal_ends_the_command(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        def ended(*_: object, **__: object) -> tuple[Verdict, str]:
            raise SignalError(signal.SIGTERM)

        monkeypatch.setattr(checks, "check_launch", ended)
        assert call("launches", "--check", *sh(COPY)).code == 128 + signal.SIGTERM


class TestExitCode:
    def report(self, status: int | None, *verdicts: Verdict | None, file: str = "k.json") -> LaunchesReport:
        one = (1, 1, 1)
        caught = tuple(CaughtLaunch(file, one, one, one, "launch", verdict=each) for each in verdicts)
        kernel = CaughtKernel("k", "", "sm_90a", "k.ptx", True, 1, 1, 0, caught)
        return LaunchesReport("out", (), status, (), (kernel,), checked=None not in verdicts and bool(verdicts))

    @pytest.mark.parametrize(
        ("status", "verdicts", "code"),
        [
            (0, (None,), 0),
            (None, (None,), 0),
            (5, (None,), 5),
            (137, (None,), 137),
            (0, (Verdict.PROVED,), 0),
            (0, (Verdict.PROVED, Verdict.UNKNOWN), 3),
            (0, (Verdict.PROVED, Verdict.REFUTED), 1),
            (5, (Verdict.REFUTED,), 1),
            (1, (Verdict.PROVED,), 3),
        ],
    )
    def test_of_a_program_and_verdicts(self, status: int, verdicts: tuple[Verdict | None, ...], code: int) -> None:
        assert launches_exit_code(self.report(status, *verdicts)) == code


class TestTheProgramItself:
    """It runs as it would without pipesim: words, streams, signals, limits."""

    def pipesim(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(Path.cwd() / "tmp")}
        Path("tmp").mkdir(exist_ok=True)
        line = [sys.executable, "-m", "pipesim", "launches", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **more)

    @pytest.mark.slow
    def test_its_words_and_streams_are_its_own(self) -> None:
        """Nor has it the limits of pipesim."""
        script = "import resource, signal; print(resource.getrlimit(resource.RLIMIT_DATA), signal.getitimer(0))"
        program = f'cat; {sys.executable} -S -c "$0"; echo "$@" >&2; exit 3'
        limits = ("--max-memory", "1G", "--time-limit", "9")
        process = self.pipesim("--once", *limits, "--", "sh", "-c", program, script, "--check", "--", "-x")
        out, err = process.communicate("from stdin\n")
        assert (process.returncode, err) == (3, "--check -- -x\n")
        assert out.startswith(f"from stdin\n{resource.getrlimit(resource.RLIMIT_DATA)} (0.0, 0.0)\n")

    @pytest.mark.slow
    @pytest.mark.sampled(1, 1)
    @pytest.mark.parametrize("number", ENDING)
    def test_a_signal_is_passed_on_and_what_was_launched_is_written(self, number: int) -> None:
        """The program says that it got the signal, and ends with a status of its own."""
        script = f"import os, signal, sys\nsignal.signal({number}, lambda *_: sys.exit(9))\nos.system({COPY!r})\n"
        process = self.pipesim("--", sys.executable, "-c", script + "print('ready', flush=True)\nsignal.pause()\n")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert len(list(Path("tmp").iterdir())) == 1
        process.send_signal(number)
        out, _ = process.communicate()
        assert process.returncode == 9
        assert "2 launch files of 1 kernel written to launches; the command ended with status 9" in " ".join(
            out.split()
        )
        assert list(Path("tmp").iterdir()) == []

    @pytest.mark.slow
    def test_the_third_ctrl_c_kills_a_program_that_does_not_end(self) -> None:
        """As a Python program whose kernel hangs: Ctrl-C does not end it."""
        script = f"import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nos.system({COPY!r})\n"
        loop = "while True:\n    print('again', flush=True)\n    signal.sigwait([2])\n"  # pause() may miss one
        process = self.pipesim("--", sys.executable, "-c", script + loop)
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "again\n"
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert (process.returncode, "2 launch files of 1 kernel written" in out) == (137, True)


class TestTheEnvironment:
    def test_the_observer_comes_first_and_the_rest_stays(self, tmp_path: Path) -> None:
        limits = Limits(("a*", "b"), True, 5, 1000)
        made = observed_environment(tmp_path, limits, {"HOME": "/h", "PYTHONPATH": "/mine"})
        first, second = made["PYTHONPATH"].split(os.pathsep)
        assert (Path(first, "sitecustomize.py").is_file(), second) == (True, "/mine")
        assert (made["HOME"], made["PIPESIM_LAUNCHES_SPOOL"]) == ("/h", str(tmp_path))
        assert Limits.from_environment(made) == limits
        assert os.pathsep not in observed_environment(tmp_path, limits, {})["PYTHONPATH"]

    def test_a_library_is_injected_unless_another_tool_has_its_own(
        self, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inject, "injection_library", lambda _: Path("/lib.so"))
        monkeypatch.setattr(inject, "_loadable", lambda _: ("libcupti.so.13",))
        made = observed_environment(tmp_path, Limits(("k",)), {}, inject=True)
        assert (made["CUDA_INJECTION64_PATH"], made["PIPESIM_LAUNCHES_CUPTI"]) == ("/lib.so", "libcupti.so.13")
        assert (Limits.from_environment(made), made["PIPESIM_LAUNCHES_SPOOL"]) == (Limits(("k",)), str(tmp_path))
        assert observed_environment(tmp_path, Limits(), {})["CUDA_INJECTION64_PATH"] == "/lib.so"
        other = {"CUDA_INJECTION64_PATH": "/a/profiler.so"}
        assert observed_environment(tmp_path, Limits(), other)["CUDA_INJECTION64_PATH"] == "/a/profiler.so"
        assert observed_environment(tmp_path, Limits(), other, inject=True)["CUDA_INJECTION64_PATH"] == "/lib.so"
        monkeypatch.setenv("CUDA_INJECTION64_PATH", "/a/profiler.so")
        assert call("launches", "--inject", *sh('test "$CUDA_INJECTION64_PATH" = /lib.so')).code == 3
        assert call("launches", "--force", *sh('test "$CUDA_INJECTION64_PATH" = /lib.so')).code == 1

    def test_without_a_compiler_the_program_does_not_run(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CC", "no-compiler-of-this-name")
        monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd() / "cache"))
        answer = call("launches", "--inject", *sh("touch ran"))
        assert (answer.code, Path("ran").exists()) == (2, False)
        assert answer.error[0].startswith("pipesim: there is no C compiler")
