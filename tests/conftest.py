"""The lanes, and who may use the GPU.

``pytest`` runs the fast lane, ``-m slow`` the slow one, ``-m "not long"`` both, ``-m long`` what repeats
at length what these sample. A test is in the slow lane if it, or a value of its parameters, is marked ``slow`` where it
stands; of one that is marked ``sampled(n)`` n values are in the fast lane, and of ``sampled(n, m)`` m in both.
``--slow-part 2/5`` leaves the second fifth of the slow lane in it, by a hash of their names; the others count as long.

All tests marked ``gpu`` run in one process, however many there are: two would slow each other's kernels down, up to a
deadline. The scheduler of pytest-xdist sees names of tests, not marks, so they are in files ``test_gpu*.py``.
"""

from __future__ import annotations

import gc
import os
import signal
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


@pytest.hookimpl(tryfirst=True)  # before the lanes are chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``sampled`` becomes lanes. UsageError if a test that needs the GPU is in a file whose name does not say so."""
    samples: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            samples.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if item.get_closest_marker("gpu") and not needs_gpu(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} is marked gpu: such a test belongs in a file test_gpu*.py")
    for sample in samples.values():
        take_sample(sample)
    part, parts = map(int, config.getoption("--slow-part").split("/"))
    for item in items:
        if item.get_closest_marker("slow") and zlib.crc32(item.nodeid.encode()) % parts != part % parts:
            item.add_marker(pytest.mark.long)


def take_sample(items: list[pytest.Item]) -> None:
    """Of one test's values, ``sampled(n, m)`` leaves n to the fast lane and m to both; those with a lane stay there."""
    marker = items[0].get_closest_marker("sampled")
    assert marker is not None
    kept = [item for item in items if not item.get_closest_marker("long")]
    fast = spread([item for item in kept if not item.get_closest_marker("slow")], marker.args[0])
    both = spread(kept, marker.args[1]) if marker.args[1:] else kept
    for item in kept:
        if item not in fast:
            item.add_marker(pytest.mark.slow if item in both else pytest.mark.long)


def spread(items: list[pytest.Item], count: int) -> list[pytest.Item]:
    """So many of them, evenly spread."""
    return [item for n, item in enumerate(items) if n * count // len(items) != (n - 1) * count // len(items)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
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


@pytest.fixture(autouse=True, scope="session")
def recordings_described_once() -> Iterator[None]:
    """A process reads the metadata of the checkout's recordings once, not for each command that looks for one."""
    from pipesim.trace import library
    from pipesim.trace.files import read_meta

    once, recordings = cache(read_meta), f"{Path(__file__).resolve().parents[1] / 'traces'}{os.sep}"

    def read(path: Path) -> TraceMeta:
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
