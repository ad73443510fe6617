"""The lanes, and who may use the GPU.

``pytest`` runs the fast lane, ``-m slow`` the slow one, ``-m "not long"`` both, ``-m long`` what repeats
at length what these sample. A test is in the slow lane if it, or a value of its parameters, is marked ``slow`` where it
stands; of one that is marked ``sampled(n)`` n values are in the fast lane, and of ``sampled(n, m)`` m in both.
What takes long was measured, and ``fast_lane.txt`` says of these tests which values the fast lane has (the others are
slow; ``-`` for none): what fits in 0.08 s of CPU time for each test, and more of those whose values each show a rule.
``--slow-part 2/5`` leaves the second fifth of the slow lane in it, by a hash of their names; the others count as long.

All tests marked ``gpu`` run in one process, however many there are: two would slow each other's kernels down, up to a
deadline. The scheduler of pytest-xdist sees names of tests, not marks, so they are in files ``test_gpu*.py``.
"""

import gc
import os
import signal
import sys
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

    from pipesim.trace.schema import TraceMeta


#: A small matrix is inverted in no time by one thread; several wait for one another in a loop, as long as others run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before anybody imports numpy


gc.disable()  # until tests are collected: next to nothing of what that makes is garbage
#: What some values of -m leave out; of others all tests are made, and pytest chooses.
LEFT_OUT = {"not slow and not long": {"slow", "long"}, "not long": {"long"}}


def needs_gpu(nodeid: str) -> bool:
    """Whether the test of this name belongs to the process that may use the GPU."""
    return Path(nodeid.partition("::")[0]).name.startswith("test_gpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-part", default="1/1", metavar="K/N", help="of the slow lane the K-th of N parts")


def pytest_configure() -> None:
    """Ctrl-C is not ignored, as it is in the background of a shell: processes that tests start would ignore it too.

    Nor is a hangup under nohup, which these processes get as any other: this one goes on.
    """
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """The lanes of one test's values. Those that ``-m`` leaves out are two thirds of all: they are not even made."""
    yield
    definition, calls = metafunc.definition, metafunc._calls
    if not calls:
        return
    inherited = {marker.name for marker in definition.iter_markers()}
    lanes = [inherited | {marker.name for marker in call.marks} for call in calls]
    if sample := definition.get_closest_marker("sampled"):
        take_sample(lanes, *sample.args[:2])
    for lane in left_to_the_slow_lane(definition.nodeid, lanes):
        lane.add("slow")
    for call, lane in zip(calls, lanes, strict=True):
        if "slow" in lane and not in_part(definition.config, f"{definition.nodeid}[{call.id}]"):
            lane.add("long")
        call.marks.extend(getattr(pytest.mark, name).mark for name in sorted(lane & {"slow", "long"} - inherited))
    named = any("[" in name for name in definition.config.args)  # a value that is asked for is said to be left out
    left_out = LEFT_OUT.get(definition.config.option.markexpr, set()) if not named else set()
    metafunc._calls = [call for call, lane in zip(calls, lanes, strict=True) if not lane & left_out] or calls[:1]


def take_sample(lanes: list[set[str]], fast: int, both: int | None = None) -> None:
    """Of one test's values, ``sampled(n, m)`` leaves n to the fast lane and m to both; those with a lane stay there."""
    kept = [lane for lane in lanes if "long" not in lane]
    in_fast = spread([lane for lane in kept if "slow" not in lane], fast)
    in_both = kept if both is None else spread(kept, both)
    for lane in kept:
        if not any(lane is other for other in in_fast):
            lane.add("slow" if any(lane is other for other in in_both) else "long")


def spread(lanes: list[set[str]], count: int) -> list[set[str]]:
    """So many of them, evenly spread."""
    return [lane for n, lane in enumerate(lanes) if n * count // len(lanes) != (n - 1) * count // len(lanes)]


@cache
def fast_values() -> dict[str, str]:
    """What ``fast_lane.txt`` has, its modules as files: the values of a test that stay in the fast lane."""
    file, found = Path(__file__).with_name("fast_lane.txt"), dict[str, str]()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if not line.startswith("#"):
            values, name = line.split(" ", 1)
            module, test = name.split("::", 1)
            found[f"tests/{module.replace('.', '/')}.py::{test}"] = values
    return found


def left_to_the_slow_lane(nodeid: str, lanes: list[set[str]]) -> list[set[str]]:
    """Those of one test's values that the file does not leave to the fast lane."""
    if nodeid not in fast_values():
        return []
    fast: set[int] = set()
    for part in filter(None, fast_values()[nodeid].strip("-").split(",")):
        first, _, last = part.partition("-")
        fast.update(range(int(first), int(last or first) + 1))
    return [lane for n, lane in enumerate(lanes) if n not in fast]


def in_part(config: pytest.Config, name: str) -> bool:
    """Whether a slow test of this name is in the part that ``--slow-part`` asks for."""
    part, parts = map(int, config.getoption("--slow-part").split("/"))
    return zlib.crc32(name.encode()) % parts == part % parts


@pytest.hookimpl(tryfirst=True)  # before the lanes are chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The lanes of tests without values. UsageError for a test of the GPU in a file whose name does not say so.

    Hypothesis draws no constants from the sources: its examples would depend on what else is imported, and to look for
    them takes each process more than a second.
    """
    if providers := sys.modules.get("hypothesis.internal.conjecture.providers"):
        providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]
    for item in items:
        if item.nodeid in fast_values():
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and not in_part(config, item.nodeid):
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("gpu") and not needs_gpu(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} is marked gpu: such a test belongs in a file test_gpu*.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> Any:
    """For every ``--dist`` but ``each`` the scheduler of ``--dist load``, with the tests of the GPU in one process."""
    if config.getvalue("dist") == "each":
        return None
    from xdist.scheduler import LoadScheduling

    class OneProcessOnTheGpu(LoadScheduling):  # type: ignore[misc]  # its base is untyped
        """The first process that asks for tests gets all that need the GPU, and others when few of these are left."""

        def _send_tests(self, node: Any, num: int) -> None:
            of_gpu = [index for index in self.pending if needs_gpu(self.collection[index])]
            if of_gpu:
                self.pending[:] = of_gpu + [index for index in self.pending if not needs_gpu(self.collection[index])]
                num = max(len(of_gpu), 2)  # a process begins a test when it has another or is told that there is none
            super()._send_tests(node, num)

    return OneProcessOnTheGpu(config, log)


class FewMessages:
    """A worker of pytest-xdist that tells of a test only what its caller shows: of six messages the two that matter.

    Each is written and read by Python code, in both processes: some tenth of the fast lane.
    """

    def __init__(self, worker: Any) -> None:
        self.send, worker.sendevent = worker.sendevent, self.sendevent

    def sendevent(self, name: str, **told: Any) -> None:
        if name not in ("logstart", "logfinish") and told.get("data", {}).get("when") != "passed":
            self.send(name, **told)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_to_serializable(self, report: pytest.TestReport) -> dict[str, str] | None:
        return {"when": "passed"} if report.passed and report.when in ("setup", "teardown") else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fewer messages, where neither durations nor a file of results are asked for."""
    manager, option = session.config.pluginmanager, session.config.option
    for worker in [each for each in manager.get_plugins() if type(each).__name__ == "WorkerInteractor"]:
        if hasattr(worker, "sendevent") and option.durations is None and option.xmlpath is None:
            manager.register(FewMessages(worker))


@pytest.fixture(autouse=True, scope="session")
def recordings_described_once() -> Iterator[None]:
    """A process reads the metadata of the checkout's recordings once, not for each command that looks for one."""
    from pipesim.trace import library
    from pipesim.trace.files import read_meta

    once, recordings = cache(read_meta), f"{Path(__file__).resolve().parents[1] / 'traces'}{os.sep}"

    def read(path: Path) -> "TraceMeta":
        return once(path) if str(path).startswith(recordings) else read_meta(path)

    with mock.patch.object(library, "read_meta", read):
        yield


def pytest_collection_finish() -> None:
    """What collection made lives to the end: without it each full garbage collection walks fifteen thousand tests.

    Collections are rare: with Python's own thresholds they take a twentieth of the time, and find next to nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)
    gc.enable()
