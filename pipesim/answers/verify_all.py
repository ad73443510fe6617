"""Several protocols: each checked, simulated, and compared with every recording of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipesim.answers.budget import protocol_seconds
from pipesim.answers.evidence import left_out_files
from pipesim.answers.progress import SILENT, Progress, Stage
from pipesim.answers.spread import spread
from pipesim.answers.verify import (
    Part,
    ProofPart,
    Result,
    SimulatedPart,
    SimulationPart,
    Subject,
    TracesPart,
    carry_out,
    failure,
    same_values,
)
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.summary import Failure, Hardware, ProtocolReport, SummaryReport
from pipesim.errors import EvidenceError, ParameterError, PipesimError
from pipesim.model.program import Program
from pipesim.process.limits import LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.profile import DEFAULT, load_profile
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder


@dataclass(frozen=True)
class _Shelf:
    """The recordings of a chip by the protocol in them: of ``folder``, the library's if None."""

    folder: Path | None
    recordings: Mapping[str, Sequence[StoredTrace]]
    missing: EvidenceError | None = None


@dataclass(frozen=True)
class _Case:
    """One protocol and what is to be done with it. Without a program the failure says why there is none."""

    subject: Subject
    program: Program | None
    parts: tuple[Part, ...] = ()
    hardware: Hardware = Hardware.LEFT_OUT
    failures: tuple[Failure, ...] = ()


def verify_several(
    subjects: Sequence[Subject],
    *,
    profile: str | None = None,
    traces: Path | None = None,
    hardware: bool = True,
    jobs: int = 1,
    excepted: Sequence[str] = (),
    unknown: Sequence[str] = (),
    time_limit: float | None = None,
    progress: Progress = SILENT,
) -> SummaryReport:
    """Verify these protocols, whose names must be those that :func:`pipesim.targets.find` takes.

    ``profile``: its name or file (default: the usual one). ``traces``: a folder of recorded traces to use (default: the
    library). ``hardware`` False leaves it out. ``jobs``: processes. ``excepted`` and ``unknown`` (names that
    no protocol has) are only repeated in the answer.
    ``time_limit``: seconds of each step of a check after its verdict (default: the usual one), of which follows how
    long each part of the work may take. What fails is part of the answer; raises ParameterError for a parameter that a
    protocol does not have, and UnknownProtocolError.
    """
    profile = profile or DEFAULT
    name = load_profile(profile).name
    _check_parameters(subjects)
    shelf = _shelf(traces, progress) if hardware else None
    if shelf is not None and shelf.missing is not None:
        progress.report_missing(shelf.missing)
    cases = [_case(subject, profile, shelf, time_limit) for subject in subjects]
    results = _carried_out(cases, jobs, protocol_seconds(time_limit), progress)
    return SummaryReport(
        name, tuple(_report(case, results) for case in cases), tuple(dict.fromkeys(excepted)), tuple(unknown)
    )


def _check_parameters(subjects: Sequence[Subject]) -> None:
    """ParameterError for a parameter that one of them does not have."""
    for name in dict.fromkeys(name for each in subjects for name, _ in each.params):
        have = [each.name for each in subjects if name in each.target().defaults]
        lacking = [each.name for each in subjects if each.name not in have]
        if lacking:
            raise ParameterError(
                f"{lacking[0]} has no parameter {name!r}",
                cause="a parameter applies to every protocol that is verified",
                correction=f"name those that have it: {' '.join(have)}" if have else f"leave -p {name} out",
            )
    for each in subjects:
        each.target()  # a name that does not exist is reported before anything is done


# what there is to do


def _shelf(folder: Path | None, progress: Progress) -> _Shelf:
    found: dict[str, list[StoredTrace]] = {}
    try:
        if folder is not None:
            left_out_files(folder, progress)
        for stored in stored_traces(folder or trace_folder()):
            if stored.meta.source == "hardware":
                found.setdefault(stored.meta.protocol, []).append(stored)
    except EvidenceError as error:
        return _Shelf(folder, {}, error)
    return _Shelf(folder, found)


def _case(subject: Subject, profile: str, shelf: _Shelf | None, time_limit: float | None) -> _Case:
    """What is to be done for one protocol: its proof first, which takes longest. ``shelf`` None: no hardware."""
    from hwkernels.twins import kernel_names

    watch = current()
    watch.start(protocol_seconds(time_limit))
    try:
        program = subject.program()
    except ParameterError:
        raise
    except (PipesimError, LimitReachedError) as error:
        watch.resume()
        return _Case(subject, None, failures=(failure(Stage.FLATTEN, "", error),))
    parts: list[Part] = [ProofPart(subject, time_limit), SimulationPart(subject, profile)]
    if shelf is None:
        return _Case(subject, program, tuple(parts))
    stored = [
        trace
        for trace in shelf.recordings.get(program.name, [])
        if same_values(trace.meta.params, subject.params) and subject.ctas in (None, trace.meta.grid)
    ]
    parts += _recordings(subject, shelf.folder or (trace_folder() if stored else Path()), stored)
    hardware = Hardware.RECORDED
    if shelf.missing is not None:
        hardware = Hardware.UNUSABLE
    elif not stored:
        hardware = Hardware.NOT_RECORDED if program.name in kernel_names() else Hardware.NO_KERNEL
    return _Case(subject, program, tuple(parts), hardware)


def _recordings(subject: Subject, folder: Path, stored: Iterable[StoredTrace]) -> list[TracesPart]:
    """Recordings of one configuration together, so that its program is made once."""
    alike: dict[tuple[tuple[tuple[str, int], ...], int], list[Path]] = {}
    for trace in stored:
        alike.setdefault((tuple(sorted(trace.meta.params.items())), trace.meta.grid), []).append(trace.path)
    return [TracesPart(subject, folder, tuple(paths)) for paths in alike.values()]


def _carried_out(cases: Sequence[_Case], jobs: int, seconds: float, progress: Progress) -> dict[Part, Result]:
    """Every part of every case, each in this many seconds; the proofs begin, so that none is left alone at the end."""
    parts = sorted((part for case in cases for part in case.parts), key=lambda part: not isinstance(part, ProofPart))
    left = {case.subject: len(case.parts) for case in cases}
    current().start(None)  # of this process, which waits for the parts
    with progress.steps(len(cases), len(parts)) as step:

        def on_done(n: int) -> None:
            left[parts[n].subject] -= 1
            ended = sum(not open_ for open_ in left.values())
            step(ended, parts[n].subject.name, *parts[n].stage)

        do = partial(carry_out, seconds=seconds)
        found = spread(parts, do, lambda part, error: failure(*part.stage, error), on_done, jobs)
    return dict(zip(parts, found, strict=True))


# the conclusion


def _report(case: _Case, results: dict[Part, Result]) -> ProtocolReport:
    mine = [results[part] for part in case.parts]
    failures = case.failures + tuple(result for result in mine if isinstance(result, Failure))
    proof = next((result for result in mine if isinstance(result, CheckReport)), None)
    ran = next((result for result in mine if isinstance(result, SimulatedPart)), None)
    traces = sorted(
        (line for result in mine if isinstance(result, tuple) for line in result),
        key=lambda line: (line.device, line.source),
    )
    proved_wrong = proof.findings if proof is not None else ()
    return ProtocolReport(
        name=case.subject.name,
        arguments=case.subject.arguments(),
        summary=case.subject.target().summary,
        heading=heading(case.program) if case.program is not None else None,
        proof=proof,
        simulation=ran.line if ran is not None else None,
        cycles=ran.cycles if ran is not None else 0,
        findings=tuple(dict.fromkeys([*proved_wrong, *(ran.findings if ran is not None else ())])),
        advisories=ran.advisories if ran is not None else (),
        hardware=case.hardware,
        traces=tuple(traces),
        failures=failures,
    )
