"""What ends a process before its work does: each signal and limit is raised once, in the main thread, and not lost."""

import mmap
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pipesim.errors import LimitError
from pipesim.process import watch as module
from pipesim.process.limits import Limit, LimitReachedError, in_bytes, limit_error
from pipesim.process.system import ENDING
from pipesim.process.watch import SignalError, Watch, current, exit_code_of, signals_held

MUCH = 1 << 50
resource = pytest.importorskip("resource")  # what is tested here is of POSIX
NORESERVE = 0x4000  # MAP_NORESERVE of mmap(2), which the module has from Python 3.12 on


@pytest.fixture
def watch() -> Iterator[Watch]:
    with Watch(MUCH) as watching:
        yield watching


def until_something_is_raised() -> None:
    while True:
        pass


class TestSignals:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
    def test_each_is_raised_with_its_number(self, watch: Watch, number: signal.Signals, code: int) -> None:
        with pytest.raises(SignalError) as raised:
            signal.raise_signal(number)
        assert (raised.value.number, exit_code_of(raised.value), watch.raised) == (number, code, raised.value)

    def test_no_other_is_raised_until_the_first_was_dealt_with(self, watch: Watch) -> None:
        with pytest.raises(SignalError):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        watch.start(None)
        signal.raise_signal(signal.SIGALRM)
        watch.resume()
        with pytest.raises(SignalError):
            signal.raise_signal(signal.SIGTERM)

    def test_those_of_a_child_that_is_waited_for_are_its_own(self, watch: Watch) -> None:
        got: list[int] = []
        with watch.given_to(got.append):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGINT, signal.SIGHUP):
                signal.raise_signal(number)
        assert got == [2, 15, 2, 2, 1]
        assert watch.raised is None
        with pytest.raises(SignalError):
            signal.raise_signal(signal.SIGTERM)

    def test_what_is_ignored_stays_so(self) -> None:
        """As under nohup."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Watch():
                signal.raise_signal(signal.SIGHUP)
                assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_what_is_done_whole_is_not_interrupted(self, watch: Watch) -> None:
        done = False
        with pytest.raises(SignalError), signals_held():  # noqa: PT012  # it is raised at the end of the block
            signal.raise_signal(signal.SIGTERM)
            done = True
        assert done
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {*ENDING, signal.SIGALRM}

    def test_also_where_another_thread_gets_it(self, watch: Watch) -> None:
        """The handler runs in the main thread, whatever that has blocked."""
        watch.hold()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(SignalError):
            watch.let_go()

    def test_what_is_lost_in_a_destructor_is_raised_again(self, watch: Watch) -> None:
        class Signals:
            def __del__(self) -> None:
                signal.raise_signal(signal.SIGTERM)

        there = [Signals()]
        there.clear()
        with pytest.raises(SignalError):
            until_something_is_raised()

    def test_everything_is_as_before_at_the_end(self) -> None:
        numbers = (*ENDING, signal.SIGALRM)
        before = [signal.getsignal(number) for number in numbers]
        hook, limit, mask = sys.unraisablehook, resource.getrlimit(resource.RLIMIT_DATA), signal.pthread_sigmask(0, ())
        with Watch(MUCH) as watching:
            watching.start(1000)
            assert current() is watching
            assert resource.getrlimit(resource.RLIMIT_DATA)[0] == MUCH + (2 << 30)
        assert [signal.getsignal(number) for number in numbers] == before
        assert (sys.unraisablehook, resource.getrlimit(resource.RLIMIT_DATA)) == (hook, limit)
        assert signal.pthread_sigmask(0, ()) == mask
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.set_wakeup_fd(-1) == -1
        assert current() is not watching


class TestLimits:
    def test_of_time(self, watch: Watch) -> None:
        with pytest.raises(LimitReachedError) as raised:  # noqa: PT012  # it may be raised before the loop
            watch.start(1e-9)  # less than the resolution of the timer
            until_something_is_raised()
        assert (raised.value.limit, exit_code_of(raised.value)) == (Limit.TIME, 3)

    def test_of_memory(self) -> None:
        with Watch(1) as watching:
            watching.start(None)
            with pytest.raises(LimitReachedError) as raised:
                until_something_is_raised()
        assert (raised.value.limit, raised.value.most) == (Limit.MEMORY, 1)

    @pytest.mark.long
    def test_of_memory_in_a_process_that_has_more_than_that_already(self) -> None:
        """As where a test runner watches itself: without memory, the thread that looks could not even start."""
        script = """
from pipesim.process.limits import LimitReachedError
from pipesim.process.watch import Watch
much = bytearray(3 << 30)  # never touched
with Watch(1) as watching:
    watching.start(None)
    try:
        while True:
            bytearray(1 << 20)
    except LimitReachedError as reached:
        print(reached.in_words())
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "the memory limit of 1 bytes was reached\n"

    def test_of_the_memory_of_a_child(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        monkeypatch.setattr(module, "resident_bytes", lambda process="self": MUCH + 1 if process == child.pid else 0)
        watch.follow(child.pid)
        watch.start(None)
        with pytest.raises(LimitReachedError):
            until_something_is_raised()
        assert child.wait(60) == -signal.SIGKILL

    def test_the_kernel_refuses_nothing_where_addresses_are_reserved(self) -> None:
        """As CUDA does, which then touches few of them."""

        def reserve() -> None:
            mmap.mmap(-1, 1 << 34, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE).close()

        with Watch(1 << 33) as watching:
            with pytest.raises(OSError, match="Cannot allocate memory"):
                reserve()
            watching.allow_reserving()
            reserve()

    def test_a_limit_that_was_dealt_with_ends_the_work(self, watch: Watch) -> None:
        with pytest.raises(LimitReachedError):  # noqa: PT012
            watch.start(1e-9)
            until_something_is_raised()
        watch.resume()
        signal.raise_signal(signal.SIGALRM)
        assert watch.raised is None

    def test_in_words(self) -> None:
        error = limit_error(LimitReachedError(Limit.MEMORY, 500 << 20))
        assert (error.fact, type(error), error.exit_code) == (
            "unknown: the memory limit of 500 MiB was reached", LimitError, 3,
        )  # fmt: skip
        assert LimitReachedError(Limit.TIME, 1200.0).in_words() == "the time limit of 1,200 s was reached"
        assert [in_bytes(n) for n in (7, 1536, 5 << 29)] == ["7 bytes", "1.5 KiB", "2.5 GiB"]


class TestAtOnce:
    """Where the main thread does not react, or cannot, the process ends all the same; its temporary files are gone."""

    HEAD = """
import ctypes, os, signal, sys, threading
from pathlib import Path
from pipesim.process import watch
from pipesim.process.files import temporary_beside
watch._GRACE_S = 0.0
def last_words(reason):
    os.write(2, str(watch.signal_of(reason)).encode())
with watch.Watch(1 << 40, last_words=last_words), temporary_beside(Path(sys.argv[1]) / "out") as (name, file):
    assert name.exists()
"""

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            pytest.param("os.kill(os.getpid(), signal.SIGTERM)", 143, id="signal"),
            pytest.param("watch.current().start(1e-9)", 3, id="limit"),
        ],
    )
    def test_a_call_that_does_not_return(self, tmp_path, body: str, code: int) -> None:
        """A mutex that is locked twice: no signal ends the wait, which proc(5) shows with the address."""
        stuck = f"""
    mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    def when_it_waits():
        while hex(ctypes.addressof(mutex)) not in Path(f"/proc/self/task/{{os.getpid()}}/syscall").read_text():
            pass
        {body}
    threading.Thread(target=when_it_waits, daemon=True).start()
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""
        self.ends(stuck, tmp_path, code)

    def test_the_fourth_signal(self, tmp_path) -> None:
        """It ends the process at once, long before the main thread has taken too long to react."""
        again = """
    watch._GRACE_S = 60.0
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        for n in range(3):
            os.write(2, b".")
            signal.raise_signal(signal.SIGINT)
"""
        self.ends(again, tmp_path, 130, "...2")

    def ends(self, body: str, folder, code: int, said: str | None = None) -> None:
        program = self.HEAD + body + "    os.write(2, b'still there')\n"
        ended = subprocess.run(
            [sys.executable, "-c", program, folder], check=False, capture_output=True, text=True, timeout=60
        )
        expected = str(int(signal.SIGALRM if code == 3 else code - 128)) if said is None else said
        assert (ended.returncode, ended.stderr) == (code, expected)
        assert list(folder.iterdir()) == []
