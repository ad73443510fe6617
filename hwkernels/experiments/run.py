"""``python -m hwkernels.experiments.run --json FILE [--only NAME]``: ask the GPU all questions and store its answers.

Cases run in child processes, one after the other on the GPU: those that may trap each in processes of its own, several
times; the others of an experiment together. A child that hangs or dies costs only its cases, which are then stored
with that outcome: nothing is left out silently.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hwkernels.experiments.catalogue import EXPERIMENTS, Case, Experiment, experiment
from hwkernels.experiments.results import FAILED, TRAP, VERSION, dump
from pipesim.errors import EvidenceError, OutputExistsError, PipesimError
from pipesim.process.parent import end_with_parent, environment
from pipesim.trace.whole import write_whole

CHILD_SECONDS = 60  #: how long a child may take
_AHEAD = 8  # children that start up while another one has the GPU

Result = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="python -m hwkernels.experiments.run", description="experiments on the GPU")
    parser.add_argument("--json", type=Path, help="output file")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="only this experiment (may be repeated); with --force the file keeps its others",
    )
    parser.add_argument("--repeat", type=int, default=2, help="processes for each case that may trap (default 2)")
    parser.add_argument("--force", action="store_true", help="overwrite the file")
    parser.add_argument("--list", action="store_true", help="list the experiments and run nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        if options.child:
            return _child()
        if options.list:
            for each in EXPERIMENTS:
                sys.stdout.write(f"{each.name:16} {len(each.cases):3} cases  {each.question}\n")
            return 0
        if options.json is None:
            parser.error("--json FILE is missing")
        if options.json.exists() and not options.force:
            raise OutputExistsError("the file exists", place=str(options.json), correction="add --force")
        chosen = tuple(experiment(name) for name in options.only) if options.only else EXPERIMENTS
        document = run(chosen, max(1, options.repeat))
        if options.only and options.json.exists():
            document = with_others(document, options.json)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_whole(options.json, dump(document).encode(), force=True)
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def run(chosen: Sequence[Experiment], repeat: int = 2) -> Result:
    """The answers to these experiments, as a document. Raises HardwareError without a usable GPU."""
    from hwkernels.device.compile import compile_cubin
    from hwkernels.device.launch import require_gpu

    info = require_gpu()
    found: Result = {}
    nvrtc = ""
    for each in chosen:
        began = time.monotonic()
        compiled = compile_cubin(each.source, each.defines)  # so that no child has to
        nvrtc = compiled.nvrtc
        cases = _together(each, [case for case in each.cases if not case.may_trap])
        cases |= _apart(each, [case for case in each.cases if case.may_trap], repeat)
        found[each.name] = {"kernel": compiled.kernel_hash, "cases": {c.name: cases[c.name] for c in each.cases}}
        _say(each, cases, time.monotonic() - began)
    device = {"name": info.name, "sms": info.sms, "driver": info.driver, "nvrtc": nvrtc}
    return {"version": VERSION, "device": device, "experiments": found}


def with_others(document: Result, path: Path) -> Result:
    """The document and the answers to other questions that the file has. Raises EvidenceError if they are of another
    device, driver or compiler.
    """
    stored = json.loads(path.read_text(encoding="utf-8"))
    if (stored["version"], stored["device"]) != (document["version"], document["device"]):
        raise EvidenceError(
            f"the answers there are of {stored['device']}, the new ones of {document['device']}",
            place=str(path),
            correction="give another file, or ask all questions again",
        )
    return document | {"experiments": stored["experiments"] | document["experiments"]}


def _say(each: Experiment, cases: dict[str, Result], seconds: float) -> None:
    """A short account for the person who watches."""
    sys.stderr.write(f"{each.name}: {len(cases)} cases, {seconds:.1f} s\n")
    for name, result in cases.items():
        counts = ", ".join(f"{what} {count:,}" for what, count in result["outcomes"].items())
        sys.stderr.write(f"  {name}: {counts}\n")
    sys.stderr.flush()


def _together(each: Experiment, cases: Sequence[Case]) -> dict[str, Result]:
    """Cases that do not trap, in one process; after one that does, or a hang, a new process goes on behind it."""
    found: dict[str, Result] = {}
    left = list(cases)
    while left:
        results, end = _finish(_start(), each, left)
        for case, result in zip(left, results, strict=False):
            found[case.name] = result
        left = left[len(results) :]
        if left and (end or not results):
            found[left[0].name] = _failed(end or "the process printed nothing")
            left = left[1:]
    return found


def _apart(each: Experiment, cases: Sequence[Case], repeat: int) -> dict[str, Result]:
    """Cases that may trap, each in ``repeat`` processes; the next ones start up while one has the GPU."""
    found: dict[str, list[Result]] = {case.name: [] for case in cases}
    jobs = [case for case in cases for _ in range(repeat)]
    children: list[subprocess.Popen[str]] = []
    try:
        for number, case in enumerate(jobs):
            while len(children) < min(len(jobs), number + _AHEAD):
                children.append(_start())
            results, end = _finish(children[number], each, [case])
            found[case.name].append(results[0] if results else _failed(end or "the process printed nothing"))
    finally:
        for child in children:
            if child.poll() is None:  # only after an error
                child.kill()
                child.communicate()
    return {name: _merged(results) for name, results in found.items()}


def _merged(results: Sequence[Result]) -> Result:
    """Outcomes added; the data of the first, and the number of repetitions whose data differ from it."""
    outcomes: Counter[str] = Counter()
    for result in results:
        outcomes.update(result["outcomes"])
    differ = sum(1 for result in results if result["data"] != results[0]["data"])
    data = dict(results[0]["data"]) | ({"repetitions_that_differ": [differ]} if differ else {})
    return {"outcomes": dict(sorted(outcomes.items())), "data": data}


def _failed(how: str) -> Result:
    return {"outcomes": {f"{FAILED}: {how}": 1}, "data": {}}


def _start() -> subprocess.Popen[str]:
    """A child that gets ready and then waits for its job on standard input, away from the GPU."""
    return subprocess.Popen(  # our own interpreter and module
        [sys.executable, "-m", "hwkernels.experiments.run", "--child"],
        env={**os.environ, **environment()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _finish(child: subprocess.Popen[str], each: Experiment, cases: Sequence[Case]) -> tuple[list[Result], str]:
    """Give a child its job: the results of the cases it came through, and what went wrong with the next one, if any."""
    job = json.dumps({"experiment": each.name, "cases": [case.name for case in cases]})
    end = ""
    try:
        out, complaint = child.communicate(job, timeout=CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        out, complaint = child.communicate()
        end = f"no end within {CHILD_SECONDS} s"
    results = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    if not end and child.returncode != 0 and not (results and _trapped(results[-1])):
        lines = complaint.strip().splitlines()
        end = lines[-1] if lines else f"exit code {child.returncode}"
        sys.stderr.write(complaint)
    return results, end


def _child() -> int:
    """Read a job, run its cases, write a line for each; stop behind a trap, which takes the context."""
    end_with_parent()

    from hwkernels.device.launch import require_gpu
    from hwkernels.experiments.bench import run_case

    info = require_gpu()
    job = json.loads(sys.stdin.read())
    each = experiment(job["experiment"])
    for name in job["cases"]:
        result = run_case(info, each, each.case(name))
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
        if _trapped(result):
            os._exit(0)  # what is left of the context is not worth an orderly end, which may not come
    return 0


def _trapped(result: Result) -> bool:
    return any(outcome.startswith(TRAP) for outcome in result["outcomes"])


if __name__ == "__main__":
    sys.exit(main())
