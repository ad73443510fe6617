"""A program that hangs is dumped, whatever its launcher does meanwhile, and no other is."""

import lzma
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pipesim.answers.autopsy.autopsy import autopsy
from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.launches import DumpEnd, HangCause, HangReport, ProcessDump
from pipesim.errors import UsageError
from pipesim.hang import compare, dumps, surroundings
from pipesim.hang.dumps import (
    WATCHER,
    DumpTarget,
    HangWatch,
    dump_environment,
    dump_now,
    is_complete,
    take_dumps,
    targets_of,
)
from pipesim.hang.processes import inner_number, is_alive, moved, tree_of
from pipesim.hang.surroundings import missing_of_driver, pipe_folder, require_dump_folder
from pipesim.process.program import ProgramEnd, run_program
from pipesim.process.watch import Watch
from pipesim.report.pages.programs.autopsy import hang_lines
from tests.coredump.joined import joined, without_kernels
from tests.coredump.test_dump import RING
from tests.support import fake_dumping_driver as fake
from tests.support.present import present

FAKE = (sys.executable, "-S", fake.__file__)
COMPLETE, TRUNCATED, MISSING = DumpEnd.COMPLETE, DumpEnd.TRUNCATED, DumpEnd.MISSING


@contextmanager
def hanging(folder: Path, manner: str = "", environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """The process of a program that hangs, all of whose processes wait by now."""
    words = [*FAKE, manner] if manner else FAKE
    given = dump_environment(folder, folder, memory=False) if environment is None else environment
    with subprocess.Popen(words, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        for _ in range(2 if manner == "ranks" else 1):
            assert present(program.stdout).readline() == b"hangs\n"
        everyone = tree_of(program.pid)
        try:
            yield program.pid
        finally:
            for each in everyone:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("manner", "expected"),
    [
        ("", [("", COMPLETE)]),
        ("early", [("", TRUNCATED)]),
        ("mute", [("", MISSING)]),
        ("ranks", [("0", COMPLETE), ("1", COMPLETE)]),  # although the launcher would kill the second after the first
        ("deaf", []),
    ],
)
def test_each_process_with_a_context_is_dumped(tmp_path: Path, manner: str, expected: Sequence[object]) -> None:
    with hanging(tmp_path, manner) as program:
        everyone = tree_of(program)
        dumps = take_dumps(program)
        assert [(each.rank, each.end) for each in dumps] == expected
        assert not any(map(is_alive, everyone))
        for each in dumps:
            assert is_complete(Path(each.file)) == (each.end is COMPLETE)
            assert Path(each.file).name == f"core.{os.uname().nodename}.{each.process}"


def test_a_file_is_complete_with_its_last_section_header(tmp_path: Path) -> None:
    before, table = fake.elf(b"content")
    whole, file = before + table, tmp_path / "core"
    for length in (0, 10, 64, len(before), len(before) + 39, len(whole) - 1, len(whole)):
        file.write_bytes(whole[:length])
        assert is_complete(file) == (length == len(whole)), length
    assert not is_complete(tmp_path / "none")


def test_what_moves_is_seen(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin is not None
        assert cat.stdout is not None
        cat.stdin.write(b"1\n")
        cat.stdin.flush()
        cat.stdout.readline()
        (first,) = moved([cat.pid]).values()
        cat.stdin.write(b"23\n")
        cat.stdin.flush()
        cat.stdout.readline()
        assert [each - first for each in moved([cat.pid]).values()] == [6]
        cat.stdin.close()


def test_a_program_stands_still_after_a_time_without_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, read, told = [0.0], [{"1": 0}], list[str]()
    dump = ProcessDump(1, "", "core", 1, COMPLETE)
    monkeypatch.setattr(dumps, "tree_of", lambda program: (program,))
    monkeypatch.setattr(dumps, "moved", lambda _: dict(read[0]))
    monkeypatch.setattr(dumps, "take_dumps", lambda _: (dump,))
    target = DumpTarget(1, "", Path("pipe"), Path("core"))
    targets: list[tuple[DumpTarget, ...]] = [()]
    monkeypatch.setattr(dumps, "targets_of", lambda _: targets[0])
    watched, patient = (HangWatch(after, told.append, lambda: seconds[0]) for after in (5.0, None))

    def at(second: float, bytes_read: int) -> HangCause | None:
        seconds[0], read[0] = second, {"1": bytes_read}
        watched.look(1)
        patient.look(1)
        return watched.cause

    assert [at(1, 10), at(5, 10), at(5.9, 11)] == [None, None, None]  # the byte was read within the time
    assert [at(6, 12), at(11, 12)] == [None, None]  # nothing can be dumped, and nothing counts
    targets[0] = (target,)
    assert [at(14.9, 12), at(16, 12)] == [None, HangCause.STOOD_STILL]
    assert (watched.dumps, patient.cause, told) == ((dump,), None, [])
    targets[0] = ()
    patient.ask()
    patient.look(1)
    assert (patient.cause, len(told)) == (None, 1)
    targets[0] = (target,)
    patient.look(1)
    assert patient.cause is None  # what was asked for before it could be done is not done later
    patient.ask()
    patient.look(1)
    assert patient.cause is HangCause.ASKED


def test_control_backslash_is_for_pipesim_alone(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    words = ["sh", "-c", f"until test -e {asked}; do kill -QUIT $$; kill -QUIT $PPID; done; exit 7"]
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a shell ignores it for what runs beside it
    try:
        with Watch():
            assert run_program(words, os.environ, ask=asked.touch) == ProgramEnd(7)
        assert signal.getsignal(signal.SIGQUIT) is signal.SIG_DFL
        assert run_program(["sh", "-c", "kill -QUIT $$"], os.environ).status == 128 + signal.SIGQUIT
    finally:
        signal.signal(signal.SIGQUIT, before)


@pytest.mark.slow
def test_another_terminal_asks_the_process_that_watches(tmp_path: Path) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGQUIT, lambda number, _: got.append(number))
    try:
        with hanging(tmp_path) as program:
            assert dump_now(program) is None
            assert is_alive(program)
        environment = {**dump_environment(tmp_path, tmp_path, memory=True), WATCHER: str(program)}  # which has ended
        with hanging(tmp_path, environment=environment) as program:
            assert [each.process for each in targets_of(tree_of(program))] == [program]
            assert [each.end for each in dump_now(program) or ()] == [COMPLETE]
        with pytest.raises(UsageError, match="there is no process"):
            dump_now(program)
        with hanging(tmp_path, "deaf", {}) as program, pytest.raises(UsageError, match="cannot be dumped"):
            dump_now(program)
    finally:
        signal.signal(signal.SIGQUIT, before)
    assert got == [signal.SIGQUIT]


def test_a_program_of_another_container(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="cannot be dumped"):
        dump_now(os.getpid())
    monkeypatch.setattr(dumps, "sees_other_files", lambda _: True)
    with pytest.raises(UsageError, match="is in another container"):
        dump_now(os.getpid())


def _unshared(words: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """A command in namespaces of its own, as in a container; the test is skipped where that is not permitted."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", *options, "true"], check=False).returncode:
        pytest.skip("no namespaces can be made here")
    return subprocess.run(["unshare", *options, *words], capture_output=True, text=True, timeout=60, check=False)


IN_NAMESPACE = ("--pid", "--fork", "--mount-proc")  #: processes have other numbers inside
BY_HAND = """
import os, subprocess, sys, time
program = subprocess.Popen([*sys.argv[1:]], stdout=subprocess.PIPE)
program.stdout.readline()
os.write(1, b"hangs\\n")
time.sleep(60)
"""


def _started_inside(words: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    _unshared(["true"], *IN_NAMESPACE)
    words = ["unshare", *IN_NAMESPACE, "--kill-child", *words]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.slow
def test_a_container_is_asked_from_outside(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pipesim", "hang", "--keep", str(tmp_path), "--", *FAKE]
    with _started_inside(words) as outer:
        assert outer.stdout is not None
        said = [outer.stdout.readline()]
        while said[-1] not in (b"hangs\n", b""):
            said.append(outer.stdout.readline())
        program = tree_of(outer.pid)[-1]
        assert inner_number(program) != program
        assert any(b"docker kill -s QUIT" in line for line in said)  # it is the container's first process
        assert dump_now(program) is None
        rest = outer.stdout.read().decode()
    assert "1 of 1 core dump" in rest
    assert [each.name for each in tmp_path.iterdir()] == [f"core.{os.uname().nodename}.{inner_number_in(rest)}"]


def inner_number_in(report: str) -> str:
    """The number of the process that a report names."""
    return report.partition("process ")[2].partition(":")[0]


@pytest.mark.slow
def test_a_program_with_another_number_inside_is_dumped_from_outside(tmp_path: Path) -> None:
    environment = {**dump_environment(tmp_path, tmp_path, memory=False), WATCHER: ""}
    with _started_inside([sys.executable, "-c", BY_HAND, *FAKE], environment) as outer:
        assert present(outer.stdout).readline() == b"hangs\n"
        (dump,) = dump_now(outer.pid) or ()
    assert dump.end is COMPLETE
    assert dump.file != f"{tmp_path}/core.{os.uname().nodename}.{dump.process}"


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    ("options", "before", "said"),
    [
        (("--pid", "--fork"), "true", "/proc is that of other processes"),
        (("--mount",), "ulimit -f 100", "a file may have 51,200 bytes at most here"),
        (("--mount",), "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp", ""),
    ],
)
def test_what_a_container_lacks_is_said_before_the_program_starts(
    options: Sequence[str], before: str, said: str
) -> None:
    with TemporaryDirectory(dir="/var/tmp") as keep:  # /tmp is read-only in one of them
        words = f"export TMPDIR=/tmp; {before}; {sys.executable} -m pipesim hang --keep {keep} -- echo started"
        ended = _unshared(["sh", "-c", words], *options)
    if said:
        assert (ended.returncode, ended.stdout) == (2, "")
        assert said in " ".join(ended.stderr.split())
    else:
        assert (ended.returncode, ended.stdout) == (0, "started\n")  # the pipes are beside the dumps then


def test_a_driver_without_its_debugger() -> None:
    def load(_: str) -> object:
        raise OSError

    ((fact, correction),) = missing_of_driver(load)
    assert fact.startswith("libcudadebugger.so.1 is not here")
    assert "NVIDIA_DRIVER_CAPABILITIES" in correction
    assert not list(missing_of_driver(str))


def test_a_file_system_without_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "mkfifo", refuse)
    with pytest.raises(UsageError, match="no pipe can be made"):
        pipe_folder(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "LEAST_BYTES", 1 << 62)
    with pytest.raises(UsageError, match="the disk has"):
        require_dump_folder(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


def test_the_report_of_two_ranks() -> None:
    dumps = (ProcessDump(7, "0", "hang/core.h.7", 400_000, COMPLETE), ProcessDump(8, "1", "hang/core.h.8", 0, MISSING))
    assert hang_lines(HangReport(("x",), None, HangCause.STOOD_STILL, 60.0, dumps), 80) == [
        "✗ the program hung, and was ended (nothing was read or written by it for 60 s):",
        "  1 of 2 core dumps",
        "  process 7, rank 0: 0.4 MB, complete: hang/core.h.7",
        "  process 8, rank 1: 0.0 MB, missing: the driver wrote nothing: hang/core.h.8",
    ]


@pytest.mark.slow
def test_ranks_that_use_a_device_each_stand_alike(tmp_path: Path) -> None:
    ring = lzma.decompress(RING.read_bytes())
    (tmp_path / "0").write_bytes(ring)
    (tmp_path / "1").write_bytes(joined(without_kernels(ring), ring))
    assert [each.device for each in autopsy(tmp_path / "1").launches] == [1]
    dumps = tuple(ProcessDump(70, rank, str(tmp_path / rank), 1, COMPLETE) for rank in "01")
    (alike,) = compare.compare_dumps(dumps)
    assert [each.rank for each in alike.dumps] == ["0", "1"]


def test_ranks_that_stand_alike_are_told_from_the_one_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {"0": "at 0x7f0673f00000", "1": "at 0x7f0673f00000 and 0xc08", "3": "at 0x7fdf89e80000"}  # and of 2 none

    def read(file: Path) -> AutopsyReport:
        return AutopsyReport(file.name, (), (notes[file.name],)) if file.name in notes else autopsy(file)

    monkeypatch.setattr(compare, "autopsy", read)
    (tmp_path / "2").write_bytes(b"\x7fELF")
    dumps = tuple(ProcessDump(70, rank, str(tmp_path / rank), 1, COMPLETE) for rank in "0123")
    alike = compare.compare_dumps(dumps)
    assert [[each.rank for each in group.dumps] for group in alike] == [["0", "3"], ["1"], ["2"]]
    lines = hang_lines(HangReport(("x",), None, HangCause.ASKED, None, dumps, alike), 80)
    for said in ("ranks 0 and 3 are in the same state", "rank 1 is in this state", "rank 2 is in this state"):
        assert said in lines
    assert any("cannot be read: " in line for line in lines)
