"""What `pipesim export` draws: finds the scene or the counterexample that its arguments name, and writes the file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import build_target, params_of, require_output, strictness_of, target_of
from pipesim.cli.output import emit, progress, write_text
from pipesim.errors import EvidenceError, ParameterError, UnknownProtocolError, UsageError
from pipesim.formats.pictures import TIMELINE, require_drawn

if TYPE_CHECKING:
    from pipesim.model.program import Program
    from pipesim.ptx.extract import Extraction
    from pipesim.scene.parts import Scene
    from pipesim.targets import Target
    from pipesim.timed.profile import Profile
    from pipesim.trace.schema import Trace

_NAMED = 8  #: CTAs of which an error gives the numbers
MOST_COMPARED = 20_000  #: events of a trace that is compared with its protocol for the report of a page
SUFFIXES = {"perfetto": ".pftrace", "html": ".html", "svg": ".svg"}
_VIEWER = "https://ui.perfetto.dev"
_HOW = {
    "perfetto": f"open it at {_VIEWER}",
    "html": "open it in a browser",
    "svg": "open it in a browser",
}


def draw(options: argparse.Namespace) -> int:
    """Carry out an export of a picture."""
    picture = options.picture or TIMELINE
    require_drawn(picture, options.to)
    for name in ("cta", "between"):
        if getattr(options, name) is not None and (options.to, picture) != ("svg", TIMELINE):
            raise ParameterError(
                f"--{name} chooses a part of an SVG timeline",
                cause=f"--to {options.to} has all of it" if picture == TIMELINE else f"a {picture} has no such part",
                correction=f"leave --{name} out, or use --to svg without --picture",
            )
    shown = "" if picture == TIMELINE else f"-{picture}"  # each picture of a kernel under a name of its own
    path = options.output or Path(f"{_stem(options)}{shown}{SUFFIXES[options.to]}")
    require_output(path, force=options.force)
    parts = _timeline(options) if picture == TIMELINE else _counterexample(options, picture)

    from pipesim.formats.documents import document
    from pipesim.process.files import write_whole
    from pipesim.report.text.words import printable

    with progress(f"writing {path}"):
        write_whole(path, parts, force=options.force)
    if options.open:
        open_in_browser(path, options.to)
    said = f"wrote {printable(str(path))}: {_HOW[options.to]}\n"
    made = document("export", format=options.to, file=str(path), text="")
    emit(options, made, lambda _: write_text(said))
    return 0


def open_in_browser(path: Path, form: str) -> None:
    """Start the browser on a page or a picture; on Perfetto's own page for what that opens."""
    import webbrowser

    webbrowser.open(path.resolve().as_uri() if form in ("html", "svg") else _VIEWER)


def is_trace(name: str) -> bool:
    """True for the name of a trace's file."""
    return name.endswith(".parquet")


def _stem(options: argparse.Namespace) -> str:
    """What a file is called that was given no name: after the protocol or the trace, in the current folder."""
    return options.protocol.partition(".py:")[2] or Path(options.protocol).stem


# timelines


def _timeline(options: argparse.Namespace) -> Iterator[bytes]:
    from pipesim.api.timelines import timeline_parts

    scene, report = _scene(options)
    between = (options.between[0] * 1000, options.between[1] * 1000) if options.between else None
    _require_drawn(scene, options.cta, options.between)
    return timeline_parts(scene, options.to, report, options.cta, between)


def _require_drawn(scene: Scene, cta: int | None, between: tuple[int, int] | None) -> None:
    """UsageError for a CTA that no run has, and for a time after the end of all: the picture would be of another part.

    ``between``: in nanoseconds.
    """
    ctas = sorted({track.cta for run in scene.runs for track in run.tracks})
    if cta is not None and cta not in ctas:
        named = ", ".join(map(str, ctas[:_NAMED])) + (f" and {len(ctas) - _NAMED} more" if len(ctas) > _NAMED else "")
        raise UsageError(f"--cta {cta}: there is no CTA {cta}", correction=f"choose one of these: {named or 'none'}")
    end = max((run.end for run in scene.runs), default=0)
    if between is not None and between[0] * 1000 > end:
        raise UsageError(
            f"--between {between[0]}..{between[1]}: nothing is left to draw",
            cause=f"the last event is at {end // 1000:,} ns",
            correction="choose an earlier time",
        )


def _scene(options: argparse.Namespace) -> tuple[Scene, list[str]]:
    """What the one or two arguments name, and the lines of the report for a page."""
    names = [options.protocol, *([options.other] if options.other is not None else [])]
    traces = [name for name in names if is_trace(name)]
    protocols = [name for name in names if not is_trace(name)]
    if len(protocols) == 2:
        raise UsageError(
            "two protocols cannot be drawn beside each other", correction="give a protocol and a trace, or two traces"
        )
    if protocols and options.against:
        raise UsageError(
            f"{protocols[0]} and --protocol {options.against} are both given", correction="leave one of them out"
        )
    if not traces:
        return _simulation(options, protocols[0])
    if len(traces) == 2:
        return _two(options, traces)
    return _recorded_scene(options, traces[0], protocols[0] if protocols else None)


def _simulation(options: argparse.Namespace, name: str) -> tuple[Scene, list[str]]:
    from pipesim.answers.run import run
    from pipesim.api.timelines import WIDTH, lines_of
    from pipesim.report.pages.protocols.run import run_lines
    from pipesim.report.text.words import printable
    from pipesim.scene.parts import Scene
    from pipesim.scene.runs import simulated_scene
    from pipesim.timed.profile import load_profile

    profile = load_profile(options.profile or "h100")
    _, program = build_target(options, name, timed=True)
    with progress(f"simulating {program.name} on {profile.name}"):
        drawn, _ = simulated_scene(program, profile)
        report = lines_of(run_lines(run(program, profile), WIDTH)) if options.to == "html" else []
    return Scene(printable(f"{program.name}: {drawn.label}"), (drawn,)), report


def _recorded_scene(options: argparse.Namespace, path: str, name: str | None) -> tuple[Scene, list[str]]:
    """A trace, with the simulation above it if a protocol is beside it."""
    from pipesim.api.timelines import comparison_report, comparison_scene
    from pipesim.report.text.words import printable
    from pipesim.scene.parts import Scene
    from pipesim.scene.runs import trace_scene
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import read_trace

    profile: Profile | None = load_profile(options.profile) if options.profile else None
    recorded = read_trace(Path(path))
    program, trace, kernel = _with_program(options, recorded, path, name or options.against)
    with progress(f"drawing {path}"):
        label = _label(trace, path)
        if name is not None and program is not None:
            scene = comparison_scene(program, trace, profile, label)
        else:
            title = printable(f"{trace.meta.protocol}: {label}")
            scene = Scene(title, (trace_scene(trace, program, label),))
        report: list[str] = []
        if options.to == "html" and program is not None:
            report = [f"more than {MOST_COMPARED:,} events: `pipesim diff` compares them"]
            if len(trace.events) <= MOST_COMPARED:
                report = comparison_report(kernel or program, recorded, path, profile)
    return scene, report


def _with_program(
    options: argparse.Namespace, trace: Trace, path: str, name: str | None
) -> tuple[Program | None, Trace, Extraction | None]:
    """The program of a trace, as :func:`_program_of`, and the trace in its naming; of a kernel's PTX what was read."""
    target = _target(options, name) if name is not None and name.endswith(".ptx") else None
    if target is None or target.kernel is None:
        return _program_of(options, trace, path, name), trace, None

    from pipesim.conform.recorded_kernel import recorded_kernel

    kernel = target.kernel
    try:
        both = recorded_kernel(kernel.timed, kernel.places, trace, kernel.by_line)
    except EvidenceError as error:
        error.place = error.place or path
        raise
    return both.program, both.trace, kernel


def _two(options: argparse.Namespace, paths: list[str]) -> tuple[Scene, list[str]]:
    from pipesim.report.text.words import printable
    from pipesim.scene.parts import Scene
    from pipesim.scene.runs import trace_scene
    from pipesim.trace.files import read_trace

    runs = []
    for path, mark in zip(paths, "AB", strict=True):
        program, trace, _ = _with_program(options, read_trace(Path(path)), path, options.against)
        with progress(f"drawing {path}"):
            runs.append(trace_scene(trace, program, f"{mark}: {_label(trace, path)}"))
    return Scene(printable(f"{Path(paths[0]).name} and {Path(paths[1]).name}"), tuple(runs)), []


def _label(trace: Trace, path: str) -> str:
    """What a run of a trace is called."""
    from pipesim.report.text.words import printable

    return printable(f"{trace.meta.source}, {trace.meta.device.name or 'unknown device'} ({Path(path).name})")


def _program_of(options: argparse.Namespace, trace: Trace, path: str, name: str | None) -> Program | None:
    """The program of a trace: of the protocol that is named, else of the one it names; None if that is not built in."""
    from pipesim.answers.recorded_program import named_program, recorded_program

    given, records = params_of(options), len(trace.events)
    if name is not None:
        return named_program(trace.meta, _target(options, name), given, place=path, records=records)
    try:
        return recorded_program(trace.meta, given=given, place=path, records=records)
    except UnknownProtocolError:
        return None


def _target(options: argparse.Namespace, name: str) -> Target:
    with progress(f"reading {name}"):
        return target_of(options, name)


# counterexamples


def _counterexample(options: argparse.Namespace, picture: str) -> Iterator[bytes]:
    from pipesim.api.export import counterexample_parts

    if options.other is not None or is_trace(options.protocol):
        raise UsageError("a counterexample is of one protocol", correction="name the protocol alone, without traces")
    target = _target(options, options.protocol).with_strictness(strictness_of(options))
    with progress(f"checking {options.protocol}"):
        return counterexample_parts(target, params_of(options), options.ctas, picture, options.to)
