"""Command lines with an answer: ``answered_lines.txt`` has each with its exit code, and below it its last paragraph."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.cli.main import main
from pipesim.trace.activity import cut
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import EventKind, Trace, TraceMeta
from tests.cli.conftest import RING, USUAL, wait_row
from tests.cli.lines import CommandLine, command_lines
from tests.support.fixture_types import Call
from tests.support.lossy import lose

#: Recordings that a line names, and what they are called here.
STORED = {
    "good": f"h100/{USUAL}",
    "h200": f"h200/{USUAL}",
    "device": f"h100/{USUAL}".replace(".parquet", "-device.parquet"),
    "nothing": f"h100/{USUAL}".replace("-t64-", "-t0-"),
    "multicast": "h200/cluster_multicast-c2-cw2-ob8192-sb8192-s4-t24-w600-g2-both.parquet",
    "hung": "h100/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet",
    "fault": "h100/producer_consumer-al1-cw2-s2-tb4096-t24-w2000-g1-no_acquire-at-9.parquet",
    "trapped": "h100/producer_consumer-al1-cw1-s1-tb16384-t24-w0-g1-no_acquire-at-9.parquet",
    **{
        name: f"h100/producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-{name}-at-7.parquet"
        for name in ("expect_more", "missing_arrive", "extra_arrive")
    },
}
#: Simulated traces that a line names, each with the words that make it.
SIMULATED = {
    "simulated": "producer_consumer -p tiles=16",
    "window": "producer_consumer -p tiles=16 --window 4..10",
    "last": "producer_consumer -p tiles=16 --window 15..1000",
    "budget": "producer_consumer --max-steps 300",
    "ring1": "ring.py -p stages=1",
    "ring2": "ring.py -p stages=2",
    "two_tiles": "ring.py -p tiles=2",
    "ring_hangs": "ring.py -p arrivals=2",
}


def edited(good: Trace) -> dict[str, Trace]:
    """The usual recording with one thing changed, by the names of the files."""
    e, meta = good.events, good.meta
    works = np.array([s.kind in (EventKind.WORK_END, EventKind.ARRIVE) for s in meta.sites])[e.site]
    parity = e.parity.copy()
    row = wait_row(good, "consumer", iteration=10)
    parity[row] = 1 - parity[row]
    agents = np.flatnonzero(e.agent == 1)
    early = e.cycle.copy()
    early[agents] = early[agents[0]] + np.arange(len(agents))
    kept = e.select(np.flatnonzero((e.agent < 2) | (e.iteration < 50)))
    header = replace(meta.ctas[0], written=(256, 320, 250), dropped=(0, 0, 70))
    twice = tuple(replace(r, period_millicycles=tuple(2 * p for p in r.period_millicycles)) for r in meta.runs)

    def other(**changes: Any) -> TraceMeta:
        return replace(meta, **changes)

    return {
        "bare": Trace(other(runs=()), e),
        "slow": Trace(other(runs=()), replace(e, cycle=e.cycle + 36 * (e.iteration + works))),
        "memory": Trace(other(runs=(), memory="device"), e),
        "wrong": Trace(meta, replace(e, parity=parity)),
        "early": Trace(meta, replace(e, cycle=early)),
        "lost": Trace(other(ctas=(header,)), kept),
        "tiles": Trace(other(wrong_tiles=3), e),
        "double": Trace(other(runs=twice), e),
        "part": cut(good, 10, 42),
        "lossy": Trace(other(ctas=tuple(replace(cta, dropped=(0, 0, 1)) for cta in meta.ctas)), e),
        "elsewhere": Trace(other(device=replace(meta.device, name="NVIDIA GH900")), e),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that a line names: made once, and only read."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "ring.py").write_text(RING, encoding="utf-8")
    (folder / "empty").mkdir()
    for name, stored in STORED.items():
        shutil.copy(trace_folder() / stored, folder / f"{name}.parquet")
    for name, trace in edited(read_trace(folder / "good.parquet")).items():
        write_trace(trace, folder / f"{name}.parquet")
        write_trace(trace, folder / f"{name}_traces" / "trace.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, words in SIMULATED.items():
            main(["run", *words.split(), "--save-trace", f"{name}.parquet"])
    fault, window = (read_trace(folder / f"{name}.parquet") for name in ("fault", "window"))
    write_trace(Trace(replace(fault.meta, fault=""), fault.events), folder / "unnamed.parquet")
    write_trace(lose(window, {0: 1, 2: 2}), folder / "window_lost.parquet")
    ends = tuple(replace(header, passes=()) for header in window.meta.ctas)
    write_trace(Trace(replace(window.meta, ctas=ends), window.events), folder / "window_open.parquet")
    return folder


def marked(line: CommandLine) -> Any:
    return pytest.param(line, marks=pytest.mark.slow if line.note == "slow" else (), id=line.words)


@pytest.mark.sampled(12, 20)
@pytest.mark.parametrize("line", [marked(line) for line in command_lines("answered_lines.txt")])
def test_the_line_has_this_answer(call: Call, line: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    answer = call(*shlex.split(line.words))
    assert (answer.code, answer.verdict) == (line.code, " ".join(line.said))
    assert line.code or not answer.err
