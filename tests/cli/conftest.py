"""A command line in this process, in a folder of its own, on a machine that has no GPU; and a user's protocol file."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import hwkernels.capture
from hwkernels.capture import CaptureRequest
from hwkernels.device import launch
from pipesim.cli.main import main
from pipesim.errors import HardwareError
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import EventKind, Trace
from tests.support.documents import require_valid
from tests.support.made_once import made_once

USUAL = "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"  # the default parameters

RING = '''
from pipesim import Protocol
from pipesim.pipelines import ProducerConsumerPipeline


def ring(stages: int = 2, tiles: int = 6, nbytes: int = 1024, warps: int = 1, arrivals: int = 6):
    """A ring whose consumer hands back the first ``arrivals`` tiles only."""
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=nbytes)
    storage = p.mbarriers("pipe", 2 * stages)

    @p.init
    def init():
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=warps)

    @p.role("load")
    def load(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(nbytes)
                    w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("mma", warps=warps)
    def mma(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume_explicit() as stage:
                    w.read(tile[stage.index()], i)
                    if i < arrivals:
                        stage.arrive()

    return p
'''


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def verdict(self) -> str:
        """The last paragraph of a report, in one line, without its end: for what it holds and what it assumes."""
        said = " ".join(self.out.rstrip().rpartition("\n\n")[2].split())
        return re.split(r"[;,]? for (?:every CTA|CTAs? )", said)[0]

    @property
    def error(self) -> list[str]:
        """The lines of standard error, a cause that was wrapped in one."""
        return self.err.replace("\n    ", " ").splitlines()


Call = Callable[..., Answer]


@pytest.fixture(autouse=True)
def ready_made_protocols_recorded_once() -> Iterator[None]:
    """A process makes the program of a ready-made protocol once for each of its sizes, not for each command."""
    with made_once():
        yield


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, 80 columns, one processor, no GPU: whatever this machine has.

    What several processes do is asked for with ``--jobs``: each is a new Python, which imports all anew.
    """

    def no_gpu(ordinal: int = 0) -> launch.DeviceInfo:
        raise HardwareError("no usable GPU was found", cause="no NVIDIA driver")

    monkeypatch.setattr(launch, "require_gpu", no_gpu)
    monkeypatch.setattr("pipesim.answers.spread.processors", lambda: 1)
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run one command; its exit code and what it printed. A line that argparse refuses is an answer too."""

    def call(*argv: str | Path) -> Answer:
        capsys.readouterr()
        try:
            code = main([str(word) for word in argv])
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0
        captured = capsys.readouterr()
        if "--json" in argv and captured.out:
            require_valid(json.loads(captured.out))
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def ring(tmp_path: Path) -> str:
    """A user's file: its ring as ``file.py:function``, relative to the folder in which the commands run."""
    (tmp_path / "ring.py").write_text(RING, encoding="utf-8")
    return "ring.py:ring"


@pytest.fixture
def user(tmp_path: Path) -> Callable[[str], None]:
    """Write the user's file ``mine.py``."""

    def user(source: str) -> None:
        (tmp_path / "mine.py").write_text(source, encoding="utf-8")

    return user


@pytest.fixture
def recorded() -> Path:
    """The recording of the default parameters on an H100."""
    return trace_folder() / "h100" / USUAL


@pytest.fixture
def good(recorded: Path) -> Trace:
    return read_trace(recorded)


@pytest.fixture
def gpu(good: Trace, monkeypatch: pytest.MonkeyPatch) -> list[CaptureRequest]:
    """What is asked of a GPU that gives back a recording."""
    asked: list[CaptureRequest] = []

    def capture(request: CaptureRequest) -> Trace:
        asked.append(request)
        return good

    monkeypatch.setattr(launch, "require_gpu", lambda ordinal=0: None)
    monkeypatch.setattr(hwkernels.capture, "capture", capture)
    return asked


@pytest.fixture
def refuted(good: Trace, tmp_path: Path) -> Path:
    """A folder with the good recording, in which one wait of consumer/0 waits for the other parity."""
    row = wait_row(good, "consumer", iteration=10)
    parity = good.events.parity.copy()
    parity[row] = 1 - parity[row]
    folder = tmp_path / "edited"
    write_trace(Trace(good.meta, replace(good.events, parity=parity)), folder / "h100" / USUAL)
    return folder


def wait_row(trace: Trace, role: str, iteration: int) -> int:
    """The row at which the first agent of a role begins its wait of this iteration."""
    sites = [n for n, s in enumerate(trace.meta.sites) if (s.role, s.kind) == (role, EventKind.WAIT_ENTER)]
    agent = next(n for n, a in enumerate(trace.meta.agents) if a.role == role)
    events = trace.events
    (row,) = (
        row
        for row in range(len(events))
        if events.site[row] in sites and events.agent[row] == agent and events.iteration[row] == iteration
    )
    return row
