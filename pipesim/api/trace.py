"""A trace as a notebook shows it."""

from __future__ import annotations

from pipesim.answers.recorded_program import recorded_program
from pipesim.api.result import html_of
from pipesim.errors import PipesimError
from pipesim.model.program import Program
from pipesim.report.pictures.scene_svg import scene_svg
from pipesim.report.text.words import count, number, parameters, printable
from pipesim.scene.parts import RunScene, Scene
from pipesim.scene.runs import trace_scene
from pipesim.trace.schema import Trace

MOST_DRAWN = 20_000  #: events of a trace whose protocol is replayed for its arrows


def trace_html(trace: Trace) -> str:
    """What the trace is of, in lines of text, and the timeline of its lowest CTA, as ``pipesim export`` draws it."""
    meta = trace.meta
    said = [
        f"{meta.protocol}   {' · '.join(parameters(meta.params, ()))}",
        f"  {meta.source}, {meta.device.name or 'unknown device'} · {meta.status.value}",
        f"  {count(len(trace.events), 'event')} · {count(len(meta.agents), 'agent')} a CTA · grid {number(meta.grid)}",
    ]
    picture = timeline_picture(trace, _program(trace), f"{meta.source}, {meta.device.name}")
    return html_of("\n".join(map(printable, said)), [picture])


def timeline_picture(trace: Trace, program: Program | None, label: str) -> tuple[str, str]:
    """The timeline of the lowest CTA, as a caption and an SVG; without arrows if ``program`` is None."""
    return scene_picture(trace.meta.protocol, trace_scene(trace, program, printable(label)))


def scene_picture(name: str, run: RunScene) -> tuple[str, str]:
    """The timeline of one run of this name, as a caption and an SVG."""
    return f"the timeline of {name}", scene_svg(Scene(printable(name), (run,)))


def _program(trace: Trace) -> Program | None:
    """The built-in protocol that the trace names; None for another, and for a trace that would take long."""
    if len(trace.events) > MOST_DRAWN:
        return None
    try:
        return recorded_program(trace.meta, records=len(trace.events))
    except PipesimError:  # a picture without arrows says so itself
        return None
