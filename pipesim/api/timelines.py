"""What an exported timeline shows: the scene of a trace beside its simulation, and the report on it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipesim.answers.recorded_program import recorded_program
from pipesim.api.result import html_of
from pipesim.errors import PipesimError
from pipesim.model.program import Program
from pipesim.report.pictures.scene_svg import scene_svg
from pipesim.report.text.words import count, number, parameters, printable
from pipesim.scene.parts import RunScene, Scene
from pipesim.scene.runs import simulated_scene, trace_scene
from pipesim.timed.profile import Profile, profile_for
from pipesim.trace.schema import Trace
from pipesim.trace.sites import optional_of

if TYPE_CHECKING:
    from pipesim.ptx.extract import Extraction


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


WIDTH = 110  #: cells of the report on a page


def comparison_scene(program: Program, trace: Trace, profile: Profile | None, label: str) -> Scene:
    """A trace, and above it what the simulation of its program does, with what recording costs on the GPU.

    ``profile``: that of the trace's device if None.
    """
    chosen = profile or profile_for(trace.meta.device.name)
    simulated, _ = simulated_scene(program, chosen, traced=True, also=optional_of(trace.meta))
    title = printable(f"{program.name}: simulation and {trace.meta.device.name or trace.meta.source}")
    return Scene(title, (simulated, trace_scene(trace, program, label)))


def comparison_report(program: "Program | Extraction", trace: Trace, source: str, profile: Profile | None) -> list[str]:
    """The lines of the report on a trace beside its program, or beside what was read from its kernel's PTX."""
    from pipesim.answers.compare import compare_kernel, compare_trace
    from pipesim.report.pages.protocols.verify import compare_lines

    if isinstance(program, Program):
        return lines_of(compare_lines(compare_trace(program, trace, source, profile), WIDTH))
    return lines_of(compare_lines(compare_kernel(program, trace, source, profile), WIDTH))


def timeline_parts(
    scene: Scene, to: str, report: Sequence[str], cta: int | None = None, between: tuple[int, int] | None = None
) -> Iterator[bytes]:
    """The file of a timeline: for Perfetto, as an HTML page with the lines of a report, or as an SVG.

    ``cta`` and ``between`` (picoseconds) choose a part of an SVG.
    """
    match to:  # each imports much that the others do not need
        case "perfetto":
            from pipesim.formats.perfetto import perfetto_parts

            return perfetto_parts(scene)
        case "html":
            from pipesim.formats.html.page import Page, page_parts

            return page_parts(Page(scene.title, scene.runs, report=list(report)))
        case _:
            from pipesim.report.pictures.scene_svg import scene_svg

            return iter([scene_svg(scene, cta, between).encode()])


def lines_of(lines: Sequence[str]) -> list[str]:
    """The lines of a report as a page shows them."""
    from pipesim.report.text.console import text_of  # with rich, which only a page with a report needs

    return text_of(lines).split("\n")
