"""The parts of verifying several protocols, each for a process of its own: proof, simulation, recorded traces.

A part is described by names and numbers only, and gives plain data; what it raises becomes data too.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import assert_never

from pipesim.answers.assemble import AGREES, UNKNOWN, behaviour, run_simulation, wrong_data
from pipesim.answers.check import judge
from pipesim.answers.summary_view import Failure, TraceLine
from pipesim.answers.view import CheckReport, SimulationLine
from pipesim.conform.diagnose.agreement import Agreement, agreement
from pipesim.conform.diagnose.examine import examine
from pipesim.conform.replay.conformance import conform
from pipesim.errors import EvidenceError, PipesimError
from pipesim.model.finding import Advisory, Finding
from pipesim.model.program import Program
from pipesim.targets import Target, find
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.library import device_slug
from pipesim.trace.schema import Trace

MOST_STATES = 50_000  #: searched where one run does not decide; `pipesim check --max-states` searches more


@dataclass(frozen=True)
class Subject:
    """A protocol as a command line names it, with what it was given there."""

    name: str
    params: tuple[tuple[str, int], ...] = ()
    ctas: int | None = None

    def target(self) -> Target:
        """The protocol of this name. Raises as :func:`find` does."""
        return _target(self.name)

    def program(self) -> Program:
        """Its program with what was given. Raises as ``Target.build`` does."""
        return _program(self.name, self.params, self.ctas)

    def arguments(self) -> tuple[str, ...]:
        """How a command line says it."""
        words = [word for name, value in self.params for word in ("-p", f"{name}={value}")]
        return (self.name, *words, *(("--ctas", str(self.ctas)) if self.ctas is not None else ()))


@dataclass(frozen=True)
class Proof:
    """To be checked for every schedule."""

    subject: Subject


@dataclass(frozen=True)
class Simulation:
    """To be simulated on this profile (its name, or a file)."""

    subject: Subject
    profile: str


@dataclass(frozen=True)
class Recordings:
    """Traces of one configuration, files below ``folder``, to be compared with the program of that configuration."""

    subject: Subject
    folder: Path
    paths: tuple[Path, ...]
    params: tuple[tuple[str, int], ...]
    grid: int


Part = Proof | Simulation | Recordings


@dataclass(frozen=True)
class Simulated:
    """What one simulation comes to; ``code`` as an exit code, ``cycles`` from its first operation to its last."""

    line: SimulationLine
    cycles: int
    findings: tuple[Finding, ...]
    notes: tuple[Advisory, ...]
    code: int


Result = CheckReport | Simulated | tuple[TraceLine, ...] | Failure


def carry_out(part: Part) -> Result:
    """Do one part. What is raised becomes a Failure, so that nothing is lost of the other parts.

    What a protocol prints goes to standard error, in another process, too.
    """
    try:
        with redirect_stdout(sys.stderr):
            return _done(part)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told with the protocol, and the others go on
        return failure(what(part), error)


def _done(part: Part) -> Result:
    match part:
        case Proof(subject):
            given = dict(subject.params)
            return judge(subject.target(), given, subject.program(), MOST_STATES, subject.ctas)
        case Simulation(subject, profile):
            return _simulated(subject.program(), profile)
        case Recordings():
            return tuple(_held(part, path) for path in part.paths)
        case _:
            assert_never(part)


def what(part: Part) -> str:
    """A part in words."""
    match part:
        case Proof():
            return "the proof"
        case Simulation():
            return "the simulation"
        case Recordings(paths=paths):
            return f"the comparison with {paths[0].name}"
        case _:
            assert_never(part)


def failure(tried: str, error: BaseException) -> Failure:
    """An exception as data: a PipesimError by its fact and place, any other by its kind and the line that raised it."""
    if isinstance(error, PipesimError):
        return Failure(tried, error.fact, error.place)
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return Failure(tried, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, place)


@lru_cache(maxsize=64)
def _target(name: str) -> Target:
    with redirect_stdout(sys.stderr):
        return find(name)  # a user's file is run once in a process


@lru_cache(maxsize=4)
def _program(name: str, params: tuple[tuple[str, int], ...], grid: int | None) -> Program:
    with redirect_stdout(sys.stderr):
        return _target(name).build(dict(params), grid=grid)


def _simulated(program: Program, profile: str) -> Simulated:
    ran = run_simulation(program, load_profile(profile))
    return Simulated(ran.line, ran.result.cycles, ran.findings, ran.notes, ran.code)


def _held(part: Recordings, path: Path) -> TraceLine:
    """One trace against the program of its parameters; of evidence that cannot be used the line says why."""
    source = path.relative_to(part.folder).as_posix()
    device = device_slug(path.parent.name)
    try:
        trace = read_trace(path)
        device = device_slug(trace.meta.device.name)
        stands, why = follow(_recorded_program(part), trace)
    except EvidenceError as error:
        return TraceLine(source, str(path), device, Agreement.UNKNOWN, 0, error.fact)
    return TraceLine(source, str(path), device, stands, len(trace.events), why)


def _recorded_program(part: Recordings) -> Program:
    """The program of the recorded parameters, which must be those that the protocol has. EvidenceError if not."""
    target = part.subject.target()
    recorded, has = dict(part.params), target.defaults
    other = sorted(recorded.keys() ^ has.keys())
    if other:
        who = "the trace" if other[0] in recorded else "the protocol"
        raise EvidenceError(f"it was recorded with other parameters: only {who} has {other[0]}")
    try:
        return _program(part.subject.name, () if target.program is not None else part.params, part.grid)
    except PipesimError as error:
        raise EvidenceError(f"the protocol rejects its parameters: {error.fact}") from error


def follow(program: Program, trace: Trace) -> tuple[Agreement, str]:
    """How a recorded run compares with its program, and why it does not agree. Raises as :func:`conform` does."""
    found = conform(program, trace)
    seen = examine(program, trace, found)
    stands = agreement(trace.meta, found, seen)
    if stands in (Agreement.HANGS_TOO, Agreement.FAULT_NAMED):
        return stands, ""  # that its launch failed, or that its data are wrong, is what it was recorded for
    code, why = behaviour(trace, found)
    if code == AGREES:
        return stands, ""
    if code == UNKNOWN:
        return Agreement.UNKNOWN, why
    return Agreement.DIFFERS, found.divergence.claim if found.divergence is not None else wrong_data(trace.meta)


def same_values(recorded: Mapping[str, int], asked: tuple[tuple[str, int], ...]) -> bool:
    """True if a recording has every value that was asked for, whatever its other parameters are."""
    return all(recorded.get(name) == value for name, value in asked)
