"""``pipesim verify`` on several protocols: each proved, simulated, compared with every recording of it; one table."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipesim.answers.assemble import AGREES, FINDINGS, UNKNOWN, mark_of
from pipesim.answers.heading import heading
from pipesim.answers.summary_view import Failure, Hardware, ProtocolReport, SummaryReport
from pipesim.answers.verify_parts import (
    Part,
    Proof,
    Recordings,
    Result,
    Simulated,
    Simulation,
    Subject,
    carry_out,
    failure,
    same_values,
    what,
)
from pipesim.answers.view import CheckReport
from pipesim.cli.arguments import params_of
from pipesim.cli.output import complain, counted, emit
from pipesim.cli.spread import processors, spread
from pipesim.conform.diagnose.agreement import Agreement
from pipesim.errors import EvidenceError, ParameterError, PipesimError, UnknownProtocolError, UsageError
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.report.pages.summary import paint_summary
from pipesim.timed.choice import DEFAULT
from pipesim.timed.profile import load_profile
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder

_CODES: dict[bool | None, int] = {True: AGREES, False: FINDINGS, None: UNKNOWN}
_PROVES: dict[Verdict, bool | None] = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}


@dataclass(frozen=True)
class _Case:
    """One protocol and what is to be done with it. Without a program the failure says why there is none."""

    subject: Subject
    program: Program | None
    parts: tuple[Part, ...] = ()
    hardware: Hardware = Hardware.LEFT_OUT
    failures: tuple[Failure, ...] = ()


def verify_several(options: argparse.Namespace, names: Sequence[str]) -> int:
    """Verify these protocols and print the summary. Raises UsageError for options that mean nothing for several."""
    _refuse(options)
    profile = load_profile(options.profile or DEFAULT)
    subjects = _subjects(options, names)
    shelf, missing = _shelf(options)
    if missing is not None:
        complain(missing)
    cases = [_case(subject, options, shelf, unusable=missing is not None) for subject in subjects]
    results = _carried_out(cases, options.jobs or processors())
    reports = tuple(_report(case, results) for case in cases)
    summary = SummaryReport(
        profile.name, reports, _worst({report.ok for report in reports}), tuple(dict.fromkeys(options.excepted))
    )
    code = _CODES[summary.ok]
    emit(options, _document(summary, code), lambda console: paint_summary(console, summary))
    return code


def chosen(options: argparse.Namespace) -> list[str]:
    """The protocols that a command line names, each once, in its order; with ``--all`` those built in after them.

    UsageError if there is none, or if something is to be left out that is not there.
    """
    if options.excepted and not options.all:
        raise UsageError("--except removes protocols from --all, which was not given", correction="give both")
    names = list(dict.fromkeys([*options.protocol, *(sorted(BUILT_IN) if options.all else [])]))
    for name in options.excepted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
            raise UnknownProtocolError(
                f"there is no protocol {name!r} to leave out",
                correction=f"did you mean {' or '.join(near)}?" if near else "see `pipesim list`",
            )
    left = [name for name in names if name not in options.excepted]
    if not left:
        nothing = "nothing is left to verify" if names else "no protocol is named"
        raise UsageError(nothing, correction="give one or several, or --all for the built-in ones")
    return left


def _refuse(options: argparse.Namespace) -> None:
    if options.tolerance is not None:
        raise UsageError(
            "--tolerance applies to the period of one configuration",
            cause="with several protocols every recorded trace is compared, and many have too few tiles for a period",
            correction="name one protocol, or leave --tolerance out",
        )
    if options.jobs is not None and options.jobs < 1:
        raise ParameterError(f"--jobs {options.jobs}", correction="give 1 or more")


def _subjects(options: argparse.Namespace, names: Sequence[str]) -> list[Subject]:
    """What is to be verified. ParameterError for a parameter that one of them does not have."""
    params = params_of(options)
    subjects = [Subject(name, tuple(params.items()), options.ctas) for name in names]
    for name in params:
        have = [each.name for each in subjects if name in each.target().defaults]
        lacking = [each.name for each in subjects if each.name not in have]
        if lacking:
            raise ParameterError(
                f"{lacking[0]} has no parameter {name!r}",
                cause="a parameter applies to every protocol that is verified",
                correction=f"name those that have it: {' '.join(have)}" if have else f"leave -p {name} out",
            )
    for each in subjects:
        each.target()  # a name that does not exist is said before anything is done
    return subjects


# what there is to do


def _shelf(options: argparse.Namespace) -> tuple[dict[str, list[StoredTrace]], EvidenceError | None]:
    """The recordings of a chip by the protocol in them, and why they cannot be used."""
    from pipesim.cli.verify import name_foreign

    if options.no_hardware:
        return {}, None
    found: dict[str, list[StoredTrace]] = {}
    try:
        if options.traces is not None:
            name_foreign(options.traces)
        for stored in stored_traces(options.traces or trace_folder()):
            if stored.meta.source == "hardware":
                found.setdefault(stored.meta.protocol, []).append(stored)
    except EvidenceError as error:
        return {}, error
    return found, None


def _case(
    subject: Subject, options: argparse.Namespace, shelf: dict[str, list[StoredTrace]], *, unusable: bool
) -> _Case:
    """What is to be done for one protocol: its proof first, which takes longest."""
    from hwkernels.twins import kernel_names

    try:
        program = subject.program()
    except ParameterError:
        raise
    except PipesimError as error:
        return _Case(subject, None, failures=(failure("flattening", error),))
    parts: list[Part] = [Proof(subject), Simulation(subject, options.profile or DEFAULT)]
    if options.no_hardware:
        return _Case(subject, program, tuple(parts))
    stored = [
        trace
        for trace in shelf.get(program.name, [])
        if same_values(trace.meta.params, subject.params) and options.ctas in (None, trace.meta.grid)
    ]
    parts += _recordings(subject, options.traces or (trace_folder() if stored else Path()), stored)
    hardware = Hardware.RECORDED
    if unusable:
        hardware = Hardware.UNUSABLE
    elif not stored:
        hardware = Hardware.NOT_RECORDED if program.name in kernel_names() else Hardware.NO_KERNEL
    return _Case(subject, program, tuple(parts), hardware)


def _recordings(subject: Subject, folder: Path, stored: Iterable[StoredTrace]) -> list[Recordings]:
    """Recordings of one configuration together, so that its program is made once."""
    alike: dict[tuple[tuple[tuple[str, int], ...], int], list[Path]] = {}
    for trace in stored:
        alike.setdefault((tuple(sorted(trace.meta.params.items())), trace.meta.grid), []).append(trace.path)
    return [Recordings(subject, folder, tuple(paths), params, grid) for (params, grid), paths in alike.items()]


def _carried_out(cases: Sequence[_Case], jobs: int) -> dict[Part, Result]:
    """Every part of every case; the proofs begin, so that none is left alone at the end."""
    parts = sorted((part for case in cases for part in case.parts), key=lambda part: not isinstance(part, Proof))
    left = {case.subject: len(case.parts) for case in cases}
    with counted(f"verifying {len(cases)} protocols", len(parts)) as tell:

        def done(n: int) -> None:
            left[parts[n].subject] -= 1
            ended = sum(not open_ for open_ in left.values())
            tell(f"{ended} of {len(cases)} done; last {parts[n].subject.name}, {what(parts[n])}")

        found = spread(parts, carry_out, lambda part, error: failure(what(part), error), done, jobs)
    return dict(zip(parts, found, strict=True))


# what it comes to


def _report(case: _Case, results: dict[Part, Result]) -> ProtocolReport:
    mine = [results[part] for part in case.parts]
    failures = case.failures + tuple(result for result in mine if isinstance(result, Failure))
    proof = next((result for result in mine if isinstance(result, CheckReport)), None)
    ran = next((result for result in mine if isinstance(result, Simulated)), None)
    traces = sorted(
        (line for result in mine if isinstance(result, tuple) for line in result),
        key=lambda line: (line.device, line.source),
    )
    oks = {_PROVES[proof.verdict] if proof is not None else None, mark_of(ran.code) if ran is not None else None}
    oks |= {None if line.agreement is Agreement.UNKNOWN else line.agreement.agrees for line in traces}
    lacking = failures or case.hardware in (Hardware.NOT_RECORDED, Hardware.UNUSABLE)
    oks |= {None} if lacking else set()
    shown = [each.finding for each in proof.refutations] if proof is not None else []
    return ProtocolReport(
        name=case.subject.name,
        arguments=case.subject.arguments(),
        summary=case.subject.target().summary,
        heading=heading(case.program) if case.program is not None else None,
        proof=proof,
        simulation=ran.line if ran is not None else None,
        cycles=ran.cycles if ran is not None else 0,
        findings=tuple(dict.fromkeys([*shown, *(ran.findings if ran is not None else ())])),
        advisories=ran.notes if ran is not None else (),
        hardware=case.hardware,
        traces=tuple(traces),
        failures=failures,
        ok=_worst(oks),
    )


def _worst(oks: set[bool | None]) -> bool | None:
    """What is wrong beats what is unknown."""
    return False if False in oks else None if None in oks else True


def _document(summary: SummaryReport, code: int) -> dict[str, object]:
    """The JSON: of every protocol its findings and its report, under its name."""
    each = {
        report.name: {"exit_code": _CODES[report.ok], "findings": report.findings, "report": report}
        for report in summary.protocols
    }
    return {"exit_code": code, "profile": summary.profile, "excepted": summary.excepted, "protocols": each}
