"""In the first process of a tree: what was compiled is checked by one other process, and what it says is passed on."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

JOB, ANSWER = ".job", ".answer"  #: endings of a kernel that was compiled, and of the verdict on it
LONGEST = 60  #: seconds of the check of one kernel
WAIT = "PIPESIM_WAIT"  #: seconds that the end of the process waits for kernels that are not checked yet
_SECONDS = float(os.environ.get(WAIT) or 60)
_LOOK = 0.05  #: seconds between two looks at the folder
_ROOT = Path(__file__).resolve().parents[3]


class CompiledKernelWarning(UserWarning):
    """A kernel that was compiled is refuted; at the line of its source."""


class Checker:
    """Gives each kernel of a new folder to the process that checks, which is started for the first, until the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pipesim-compiled-"))
        self._owner = os.getpid()
        self._counts: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()  #: what is not known of kernels without a verdict
        self._seen: set[Path] = set()
        self._worker: subprocess.Popen[str] | None = None
        self._ending = threading.Event()
        self._over = threading.Event()
        atexit.register(self.end)
        threading.Thread(target=self.run, name="pipesim checks", daemon=True).start()

    def run(self) -> None:
        """Until the end, and then until the folder has nothing that was not checked."""
        try:
            while not self._over.is_set():
                ending = self._ending.wait(_LOOK)
                left = {*self.folder.glob(f"*{JOB}")} - self._seen
                for job in sorted(left, key=lambda each: each.stat().st_mtime_ns):
                    self._check(job)
                if ending and not left:
                    return
        except (OSError, ValueError, KeyError) as error:  # the folder or the process is gone
            if not self._over.is_set():
                _say(f"kernels are checked no more: {error}")
        finally:
            self._over.set()

    def _check(self, job: Path) -> None:
        if self._over.is_set():
            return
        self._seen.add(job)
        if self._worker is None or self._worker.poll() is not None:
            self._worker = _start_worker()
        asked, told = self._worker.stdin, self._worker.stdout
        assert asked is not None
        assert told is not None
        asked.write(f"{job}\n")
        asked.flush()
        line = told.readline()
        said = json.loads(line) if line else {"verdict": "unknown", "said": "the process that checks has ended"}
        if self._over.is_set():
            return
        made = job.with_suffix(".made")
        made.write_text(json.dumps(said), encoding="utf-8")
        made.replace(job.with_suffix(ANSWER))
        self._counts[said["verdict"]] += 1
        self._counts[f"{said['verdict']}, guessed"] += bool(said.get("guessed"))
        if said["verdict"] == "refuted":
            _warn(said)
        elif said["verdict"] == "unknown":
            self._missing[said["said"]] += 1

    def end(self) -> None:
        """Wait for what is left as long as may be waited, and say on standard error what is known."""
        if os.getpid() != self._owner:  # a child that was forked
            return
        self._ending.set()
        with suppress(KeyboardInterrupt):
            self._over.wait(_SECONDS)
        finished = self._over.is_set()
        self._over.set()
        if self._worker is not None:
            self._worker.kill()
            with suppress(OSError, ValueError):  # the thread may read
                self._worker.communicate()
        jobs = len(list(self.folder.glob(f"*{JOB}")))
        if jobs:
            _say(self._summary(jobs, finished=finished))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _summary(self, jobs: int, *, finished: bool) -> str:
        parts = []
        for verdict in ("proved", "refuted", "unknown"):
            number, guessed = self._counts[verdict], self._counts[f"{verdict}, guessed"]
            extra = [f"{guessed} for guessed arguments"] if guessed and verdict != "unknown" else []
            extra += ["see warnings"] if verdict == "refuted" else []
            if number:
                parts.append(f"{number} {verdict}" + f" ({', '.join(extra)})" * bool(extra))
        left = jobs - sum(self._counts[each] for each in ("proved", "refuted", "unknown"))
        if left:
            parts.append(f"{left} not finished" + f" in {_SECONDS:g} s ({WAIT}=SECONDS)" * (not finished))
        lines = [f"{jobs} kernel{'s' * (jobs != 1)} compiled, {', '.join(parts)}"]
        lines += [f"  {number} unknown: {what}" for what, number in self._missing.most_common(5)]
        return "\n".join(lines)


def _start_worker() -> subprocess.Popen[str]:
    """A process with the packages of this one, and none of its hooks."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("PIPESIM", "CUDA_INJECTION"))}
    mine["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    command = [sys.executable, "-P", "-m", "pipesim.launches.hooks.worker"]  # not from the current folder
    quiet = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603
        command, env=mine, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True, encoding="utf-8",
        start_new_session=True,
    )  # fmt: skip


def _warn(said: dict[str, Any]) -> None:
    """A warning at the line of the finding; where warnings are errors, this thread has none to stop."""
    file, colon, line = said["place"].rpartition(":")
    text = said["said"] + f"; {said['correction']}" * bool(said["correction"])
    try:
        warnings.warn_explicit(text, CompiledKernelWarning, file if colon else line, int(line) if line.isdigit() else 1)
    except CompiledKernelWarning as error:
        _say(f"{said['place']}: {error}")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"pipesim: {text}\n")
        sys.stderr.flush()
