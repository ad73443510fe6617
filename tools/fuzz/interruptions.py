"""Signals at random moments of commands: ``python tools/fuzz/interruptions.py [COUNT] [SEED] [--only NAME]
[--workers N]``.

Each case is a command, a signal, and a moment of its run, all of them by the seed. The command runs in a session of its
own, so that nothing that it starts can hide. After its end are counted: tracebacks on standard error, processes of the
session that are left, files that are left (a temporary after SIGKILL is allowed) or half written under their own name,
and commands that did not end within a minute. Exit code 1 if any of these is not 0, but for tracebacks of the
interpreter's own start, before the first line of pipesim, which have a column of their own.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # works from a checkout that is not installed

from tests.support.paths import EXAMPLES, ROOT, with_root

NINE_WARPS = f"{ROOT}/tests/support/nine_warps.py:nine_warps"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
HANG_S = 60.0  #: after the signal
ENDS_S = 5.0  #: for the children of a command that has ended, which the kernel ends
MARKS = ("Traceback (most recent call last)", "Exception ignored in", "Fatal Python error")
OWN = ("pipesim", "hwkernels", "multiprocessing", "concurrent", "numpy", "pyarrow", "rich", "simpy")
HEAD = ("command", "cases", "ended", "known", "over", "traceback", "start", "process", "temporary", "half", "hang")

#: What writes without pause: files of 4 MiB, each a repetition of one byte, over each other and beside each other.
WRITER = """
import sys
try:
    import itertools
    from pathlib import Path
    from pipesim.process.watch import Watch
    from pipesim.trace.whole import write_whole
    with Watch():
        for n in itertools.count():
            write_whole(Path(f"written-{n % 7}.bin"), bytes([n % 251]) * (4 << 20), force=True)
except KeyboardInterrupt as error:
    sys.exit(128 + getattr(error, "number", 2))
"""


@dataclass(frozen=True)
class Scenario:
    """A command, and the files that it may leave, which are whole if ``whole`` says so. ``seconds``: 0, as measured."""

    name: str
    command: tuple[str, ...]
    whole: dict[str, Callable[[bytes], bool]] = field(default_factory=dict)
    seconds: float = 0.0


def pipesim(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pipesim", *words)


def is_parquet(data: bytes) -> bool:
    return data[:4] == data[-4:] == b"PAR1"


def is_program(data: bytes) -> bool:
    return data.startswith(b"{") and data.endswith(b"]\n}\n")


def is_promela(data: bytes) -> bool:
    return data.startswith(b"/*") and data.rstrip().endswith(b"}")


def is_of_one_byte(data: bytes) -> bool:
    return len(data) == 4 << 20 and len(set(data)) == 1


KERNEL = (
    "capture", "--kernel", f"{EXAMPLES}/rowsum.cu", "--protocol", f"{EXAMPLES}/rowsum.py:rowsum", "--grid", "2",
    "--block", "288", "--smem", "65664", "--arg", "npy:matrix.npy", "--arg", "out:16384:sums", "--arg", "i32:64",
    "--bytes", "tile_bytes",
)  # fmt: skip
CAPTURED = "rowsum-mw8-s4-tb16384-t32-w470-g2.parquet"

SCENARIOS = (
    Scenario("check a file", pipesim("check", NINE_WARPS, "-p", "empty_count=9")),
    Scenario("check several", pipesim("check", "producer_consumer", "cluster_multicast", "conv_epilogue", "--json")),
    Scenario("verify one", pipesim("verify", "producer_consumer", "--recorded", "--time-limit", "1")),
    Scenario("verify --all", pipesim("verify", "--all", "--no-hardware", "--jobs", "2", "--time-limit", "1")),
    Scenario("verify of files", pipesim("verify", NINE_WARPS, "gemm_sm90", "--no-hardware", "--time-limit", "1")),
    Scenario(
        "export", pipesim("export", "gemm_sm100", "--to", "promela", "-o", "out.pml"), {"out.pml": is_promela}
    ),
    Scenario(
        "run, two outputs",
        pipesim(
            "run", "producer_consumer", "-p", "tiles=2000", "--save-trace", "t.parquet", "--save-program", "p.json"
        ),
        {"t.parquet": is_parquet, "p.json": is_program},
    ),
    Scenario("capture --kernel", pipesim(*KERNEL), {CAPTURED: is_parquet}),
    Scenario("files written", (sys.executable, "-c", WRITER), {f"written-{n}.bin": is_of_one_byte for n in range(7)},
             seconds=2.0),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One interruption. ``part``: when, in parts of the scenario's time. ``to_all``: as a terminal, to its group."""

    scenario: Scenario
    number: signal.Signals
    part: float
    to_all: bool


def cases(seed: int, count: int, scenarios: Sequence[Scenario]) -> Iterator[Case]:
    """The cases of a seed; a larger count adds some at the end."""
    chance = random.Random(seed)
    for n in range(count):
        number = chance.choice(SIGNALS)
        part, to_all = chance.random() * 1.05, chance.random() < 0.5 and number != signal.SIGKILL
        part *= chance.choice((1.0, 1.0, 0.1))  # while modules are imported, and processes started, more often
        yield Case(scenarios[n % len(scenarios)], number, part, to_all)


@dataclass
class Found:
    """What one case left."""

    code: int | None  #: None: it hung
    over: bool  #: it had ended before the signal
    said: str
    processes: int
    temporary: list[str]
    half: list[str]

    def columns(self, case: Case) -> Counter[str]:
        """The columns of the table that it counts in."""
        found: Counter[str] = Counter(cases=1, over=self.over, process=self.processes, half=len(self.half))
        marked = any(mark in self.said for mark in MARKS)
        own = any(f"/{name}/" in self.said or f"/{name}." in self.said for name in OWN)
        found["traceback"], found["start"] = int(marked and own), int(marked and not own)
        found["hang"] = int(self.code is None)
        found["temporary"] = len(self.temporary) if case.number != signal.SIGKILL else 0
        signalled = self.code in (128 + case.number, -case.number)
        found["ended"] = int(not self.over and signalled)
        found["known"] = int(not self.over and not signalled and self.code is not None)
        return found


def run(case: Case, seconds: float) -> Found:
    """Carry out a case in a folder of its own; ``seconds``: what its scenario takes."""
    with tempfile.TemporaryDirectory(prefix="interruptions") as name:
        folder = Path(name)
        child, said = _start(case.scenario, folder)
        with suppress(subprocess.TimeoutExpired):
            child.wait(case.part * seconds)
        over = child.poll() is not None
        if not over:
            with suppress(ProcessLookupError):
                (os.killpg if case.to_all else os.kill)(child.pid, case.number)
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(HANG_S)
        left = _left(child.pid)
        temporary, half = _files(case.scenario, folder)
        return Found(code, over, said.read_text(errors="replace"), left, temporary, half)


def duration(scenario: Scenario) -> float:
    """Seconds of an undisturbed run."""
    if scenario.seconds:
        return scenario.seconds
    with tempfile.TemporaryDirectory(prefix="interruptions") as name:
        begun = time.monotonic()
        child, said = _start(scenario, Path(name))
        child.wait()
        if any(mark in said.read_text() for mark in MARKS):
            raise SystemExit(f"{scenario.name} fails by itself:\n{said.read_text()}")
        return time.monotonic() - begun


def _start(scenario: Scenario, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """The command in a session of its own; its standard error."""
    work, own = folder / "work", folder / "own"
    for each in (work, own / "tmp"):
        each.mkdir(parents=True)
    np.save(work / "matrix.npy", np.zeros((4096, 64), dtype=np.float32))
    said = folder / "stderr"
    kept = {**with_root(os.environ), "TMPDIR": str(own / "tmp"), "XDG_CACHE_HOME": str(own / "cache")}
    with said.open("wb") as errors, (folder / "stdout").open("wb") as out:
        child = subprocess.Popen(
            scenario.command, cwd=work, env=kept, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
    return child, said


def _left(session: int) -> int:
    """Processes of the session that the kernel did not end either; they are ended."""
    until = time.monotonic() + ENDS_S
    while (alive := _alive(session)) and time.monotonic() < until:
        time.sleep(0.02)
    for process in alive:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return len(alive)


def _alive(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError):
                state, _, _, its = entry.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
                if int(its) == session and state != "Z":
                    found.append(int(entry.name))
    return found


def _files(scenario: Scenario, folder: Path) -> tuple[list[str], list[str]]:
    """Files that no command should leave, and files that are there and not whole."""
    there = {path.name: path for part in ("work", "own") for path in (folder / part).rglob("*") if path.is_file()}
    usual = {"matrix.npy", *scenario.whole}
    temporary = [name for name in there if name not in usual and not name.endswith(".cubin")]
    half = [name for name, whole in scenario.whole.items() if name in there and not whole(there[name].read_bytes())]
    return temporary, half


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=300, help="interruptions (default 300)")
    parser.add_argument("seed", nargs="?", type=int, default=1, help="(default 1)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="cases at a time (default 1)")
    parser.add_argument("--only", metavar="NAME", help="scenarios whose names begin so")
    options = parser.parse_args(arguments)
    chosen = [each for each in SCENARIOS if each.name.startswith(options.only or "")]
    table: dict[str, Counter[str]] = {each.name: Counter() for each in chosen}
    began = time.monotonic()
    with ThreadPoolExecutor(options.workers) as pool:
        took = dict(zip(table, pool.map(duration, chosen), strict=True))
        tried = list(cases(options.seed, options.count, chosen))
        results = pool.map(lambda case: run(case, took[case.scenario.name]), tried)
        for n, (case, found) in enumerate(zip(tried, results, strict=True)):
            columns = found.columns(case)
            table[case.scenario.name] += columns
            if sum(columns[name] for name in HEAD[5:]):
                print(f"case {n}: {case.scenario.name}, {case.number.name} at {case.part:.3f} of "
                      f"{took[case.scenario.name]:.2f} s, to {'all' if case.to_all else 'one'}: exit code "
                      f"{found.code}, {dict(columns)}\n{found.temporary}{found.half}\n{found.said}",
                      flush=True)  # fmt: skip
    print(f"{len(tried):,} interruptions in {time.monotonic() - began:.0f} s, {options.workers} at a time")
    _print(table, options.seed)
    total = sum(table.values(), Counter())
    return 1 if any(total[name] for name in ("traceback", "process", "temporary", "half", "hang")) else 0


def _print(table: dict[str, Counter[str]], seed: int) -> None:
    rows = [*table.items(), ("all", sum(table.values(), Counter()))]
    print(f"seed {seed}; ended: by the signal, known: with an answer, over: before the signal", file=sys.stdout)
    print(f"{HEAD[0]:18}" + "".join(f"{name:>11}" for name in HEAD[1:]))
    for name, found in rows:
        print(f"{name:18}" + "".join(f"{found[column]:11}" for column in HEAD[1:]))


if __name__ == "__main__":
    sys.exit(main())
