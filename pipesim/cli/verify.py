"""``pipesim verify``: the main job. Prove, simulate, hold against the hardware, report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_ctas, add_output, add_params, add_tolerance, params_of
from pipesim.cli.output import complain, progress, remark, show
from pipesim.errors import EvidenceError, HardwareError, MissingExtraError, NoTraceError, UsageError

if TYPE_CHECKING:
    from pipesim.answers.assemble import Held, Simulated
    from pipesim.model.finding import Verdict
    from pipesim.model.program import Program
    from pipesim.targets import Target
    from pipesim.timed.profile import Profile
    from pipesim.trace.schema import Trace

_NAMED = 3  #: Parquet files of other programs that a note names


@dataclass(frozen=True)
class Evidence:
    """What the hardware did: traces with where they are from, and why there is none (or no more of it)."""

    traces: tuple[tuple[str, Trace], ...] = ()
    missing: EvidenceError | None = None


@dataclass
class Hearing:
    """All that speaks for and against a program: simulations, traces compared with it, and evidence that is missing."""

    simulations: list[Simulated] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    missing: EvidenceError | None = None


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "protocol", nargs="*",
        help="a built-in name (see `pipesim list`), file.py:function, or a program's .json; several give a table",
    )  # fmt: skip
    parser.add_argument(
        "--all", action="store_true", help="every built-in protocol, each compared with every recorded trace of it"
    )
    parser.add_argument(
        "--except", dest="excepted", metavar="NAME", action="append", default=[],
        help="leave this one out of --all; may be repeated",
    )  # fmt: skip
    add_params(parser, "a parameter of every protocol named; may be repeated")
    add_ctas(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-hardware", action="store_true", help="do not compare with hardware")
    which.add_argument("--recorded", action="store_true", help="use the recorded traces even if this machine has a GPU")
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="FOLDER",
        help="use the recorded traces in this folder (default: those that came with pipesim)",
    )
    parser.add_argument("--profile", help="latency profile (default: the one of each device)")
    add_tolerance(parser)
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes for several protocols (default: one a processor)"
    )
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.verify_all import chosen, verify_several

    names = chosen(options)
    _check(options)
    if options.all or len(names) > 1:
        return verify_several(options, names)
    return _verify(options, names[0])


def _verify(options: argparse.Namespace, name: str) -> int:
    """The whole report on one protocol."""
    from pipesim.answers.assemble import mark_of
    from pipesim.answers.check import judge
    from pipesim.answers.heading import heading
    from pipesim.answers.verify_parts import MOST_STATES
    from pipesim.answers.view import VerifyReport
    from pipesim.targets import find
    from pipesim.timed.profile import load_profile

    chosen = load_profile(options.profile) if options.profile else None
    with progress(f"flattening {name}"):
        target = find(name)
        program = target.build(params_of(options), grid=options.ctas)
    evidence = Evidence() if options.no_hardware else _evidence(target, program, options)
    if evidence.missing is not None:
        complain(evidence.missing)  # now: the simulation may take long, and its report is shown all the same
    with progress(f"proving {program.name}"):
        proof = judge(target, params_of(options), program, MOST_STATES, options.ctas, most_ranges=1)
    hearing = _hear(program, evidence, chosen, options.tolerance)
    code, verdict = _judge(proof.verdict, hearing, hardware=not options.no_hardware)
    report = VerifyReport(
        heading(program),
        tuple(ran.line for ran in hearing.simulations),
        tuple(held.block for held in hearing.held),
        verdict,
        mark_of(code),
        tuple(dict.fromkeys(note for ran in hearing.simulations for note in ran.notes)),
        proof,
    )
    found = [shown.finding for shown in proof.refutations]
    findings = dict.fromkeys([*found, *(finding for ran in hearing.simulations for finding in ran.findings)])
    show(options, report, code, tuple(findings), hearing.missing)
    if hearing.missing is not None and hearing.missing is not evidence.missing:
        complain(hearing.missing)
    return code


def _check(options: argparse.Namespace) -> None:
    """What argparse cannot say: arguments that contradict each other, and a folder that is not there."""
    if options.no_hardware and (options.traces is not None or options.tolerance is not None):
        given = "--traces" if options.traces is not None else "--tolerance"
        raise UsageError(
            f"{given} asks for a comparison with hardware, and --no-hardware excludes it", correction="give only one"
        )
    if options.traces is not None and not options.traces.is_dir():
        raise UsageError(f"there is no folder {options.traces}", correction="check the path of --traces")


# choosing evidence


def _evidence(target: Target, program: Program, options: argparse.Namespace) -> Evidence:
    """A fresh trace if this machine has a GPU and the protocol a kernel, else the recorded ones, one a device."""
    from pipesim.cli.capture import has_kernel

    try:
        if has_kernel(target) and not options.recorded and options.traces is None and _has_gpu():
            return Evidence((("captured now", _captured(program)),))
        return Evidence(_recorded(program, options.traces))
    except NoTraceError as error:
        return Evidence(missing=error if _recordable(program) else _unrecordable(error, program))
    except EvidenceError as error:
        return Evidence(missing=error)


def _has_gpu() -> bool:
    from hwkernels.device.launch import require_gpu

    try:
        require_gpu()
    except (HardwareError, MissingExtraError):
        return False
    return True


def _captured(program: Program) -> Trace:
    from pipesim.cli.capture import captured, plain_request

    with progress(f"capturing {program.name}"):
        return captured(plain_request(program))


def _recorded(program: Program, folder: Path | None) -> tuple[tuple[str, Trace], ...]:
    """The recorded traces of this name, parameters and grid: one a device, the cheapest kind there is."""
    from pipesim.trace.files import read_meta, read_trace
    from pipesim.trace.library import find_traces

    if folder is not None:
        name_foreign(folder)
    chosen: dict[str, Path] = {}
    paths = [
        (path, read_meta(path))
        for path in find_traces(program.name, program.params, program.grid * program.ctas, folder)
    ]
    for path, meta in sorted(paths, key=lambda entry: (entry[1].clock != "clock", entry[1].memory == "device")):
        chosen.setdefault(meta.device.name, path)
    with progress("reading recorded traces"):
        return tuple((f"{chosen[d].parent.name}/{chosen[d].name}", read_trace(chosen[d])) for d in sorted(chosen))


def name_foreign(folder: Path) -> None:
    """Say which Parquet files of a user's folder are left out because they are no traces."""
    from pipesim.trace.library import foreign_files

    foreign = foreign_files(folder)
    if foreign:
        more = f" and {len(foreign) - _NAMED:,} more" if len(foreign) > _NAMED else ""
        what = "a Parquet file that is not a trace" if len(foreign) == 1 else "Parquet files that are not traces"
        remark(f"note: left out, {what}: {', '.join(map(str, foreign[:_NAMED]))}{more}")


def _recordable(program: Program) -> bool:
    from hwkernels.twins import kernel_names

    return program.name in kernel_names()


def _unrecordable(error: NoTraceError, program: Program) -> NoTraceError:
    """The same error without the advice to record one: there is no kernel to do it with."""
    return NoTraceError(
        error.fact,
        place=error.place,
        cause=f"{error.cause}; there is no CUDA kernel of {program.name}",
        correction="name a folder with its traces (--traces FOLDER), or do not compare with hardware (--no-hardware)",
    )


# simulating


def _hear(program: Program, evidence: Evidence, chosen: Profile | None, tolerance: float | None) -> Hearing:
    """Simulate on every profile that matters, and hold every trace against the program."""
    from pipesim.answers.assemble import hold, run_simulation
    from pipesim.timed.choice import DEFAULT, profile_for
    from pipesim.timed.profile import load_profile

    hearing = Hearing(missing=evidence.missing)
    near = [chosen] if chosen else [profile_for(trace.meta.device.name) for _, trace in evidence.traces]
    for profile in {p.name: p for p in near or [load_profile(DEFAULT)]}.values():
        with progress(f"simulating {program.name} on {profile.name}"):
            hearing.simulations.append(run_simulation(program, profile))
    for source, trace in evidence.traces:
        with progress(f"comparing with {source}"):
            try:
                hearing.held.append(hold(program, trace, source, chosen, tolerance))
            except EvidenceError as error:
                hearing.missing = hearing.missing or error
    return hearing


# the verdict


def _judge(proof: Verdict, hearing: Hearing, *, hardware: bool) -> tuple[int, str]:
    """The exit code and its sentence: a finding beats the unknown, the unknown beats the tolerance."""
    from pipesim.answers.assemble import AGREES, FINDINGS, TOLERANCE, UNKNOWN
    from pipesim.model.finding import Verdict

    found: list[tuple[int, str]] = [(ran.code, ran.why) for ran in hearing.simulations]
    simulated = _worst(found) or "the simulation finishes without a finding"
    if proof is Verdict.REFUTED:
        found.append((FINDINGS, "the protocol fails in the schedule above"))
    elif proof is Verdict.UNKNOWN:
        found.append((UNKNOWN, "neither proved nor refuted: the search reached its limit"))
    else:
        simulated = f"proved for every schedule; {simulated}"
    found += [(held.code, f"{held.block.device}: {held.why}") for held in hearing.held]
    if hearing.missing is not None:
        found.append((UNKNOWN, f"{simulated}, but {_lack(hearing.missing)}"))
    for code in (FINDINGS, UNKNOWN, TOLERANCE):
        reason = next((why for its, why in found if its == code), None)
        if reason is not None:
            return code, reason
    if not hardware:
        return AGREES, f"{simulated} (hardware left out)"
    devices = ", ".join(_named(held) for held in hearing.held)
    return AGREES, f"{simulated}, and the hardware agrees ({devices})"


def _named(held: Held) -> str:
    """The device, with the iterations where only some were kept."""
    from pipesim.report.text.words import iterations

    found = held.block.conformance
    return held.block.device + (f", {iterations(found.window)}" if found.hides else "")


def _lack(missing: EvidenceError) -> str:
    if isinstance(missing, NoTraceError):
        return "there is nothing to compare it with"
    return "the GPU gave no trace" if isinstance(missing, HardwareError) else "the recorded evidence cannot be used"


def _worst(found: Sequence[tuple[int, str]]) -> str:
    """The first reason there is, "" if nothing is wrong."""
    return next((why for code, why in found if code), "")


COMMAND = Command(
    "verify",
    "check, simulate and compare with hardware: the main job",
    "Check a protocol for every schedule, simulate it, and compare it with hardware (a GPU if there is one, else "
    "recorded traces). Several are compared with every recorded trace of each, and reported in one table.",
    _arguments,
    _carry_out,
)
