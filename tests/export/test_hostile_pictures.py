"""A name that means harm is text in every picture that is exported: one function of each exporter quotes them."""

import json
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.api.export import counterexample_page
from pipesim.formats.html.page import Page, page_parts
from pipesim.formats.perfetto import perfetto_parts
from pipesim.model.finding import Deadlock
from pipesim.model.program import Program
from pipesim.report.pictures.hang_svg import hang_svg
from pipesim.report.pictures.scene_svg import scene_svg
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene
from pipesim.targets import target_of
from pipesim.timed.profile import load_profile
from tests.export.test_hostile_names import LANES, wrong_ring
from tests.support.hostile_names import HOSTILE, hostile

pytestmark = pytest.mark.parametrize("name", LANES, ids=list(HOSTILE))


def scene(name: str) -> Scene:
    run, _ = simulated_scene(hostile(name), load_profile("h100"))
    return Scene(name, (run,))


class Elements(HTMLParser):
    """What a browser would make elements of, with their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(attribute for attribute, _ in attrs)))


def page(name: str) -> str:
    return b"".join(page_parts(Page(name, scene(name).runs, claim=name, report=[name]))).decode()


def test_a_page_has_the_same_elements_whatever_the_names_are(name: str) -> None:
    text = page(name)
    assert Elements(text).found == Elements(page("tame")).found
    inside = text.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&") & set(inside)
    assert json.loads(inside)["title"] == name


def test_a_counterexample_has_the_same_elements_too(name: str) -> None:
    program, report = refuted(name)
    _, tame = refuted("tame")
    text, other = (
        b"".join(page_parts(counterexample_page(program, r, r.refutations[0]))).decode() for r in (report, tame)
    )
    assert Elements(text).found == Elements(other).found


def refuted(name: str) -> tuple[Program, CheckReport]:
    program = hostile(name, wrong_ring())
    return program, check(target_of(program), {}, quick=True)


def test_perfettos_texts_are_printable(name: str) -> None:
    trace = protos.Trace.FromString(b"".join(perfetto_parts(scene(name))))
    names = [p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")]
    names += [entry.name for p in trace.packet for entry in p.interned_data.event_names]
    assert names
    assert all(text.isprintable() for text in names)


def test_a_timeline_and_a_hang_are_pictures_with_the_same_elements(name: str) -> None:
    for draw in (lambda each: scene_svg(scene(each)), hang):
        one, other = (
            [(e.tag, tuple(e.attrib)) for e in ET.fromstring(draw(each)).iter() if not e.tag.endswith("text")]
            for each in (name, "tame")
        )
        assert one == other


def hang(name: str) -> str:
    _, report = refuted(name)
    (finding,) = (each.finding for each in report.refutations if isinstance(each.finding, Deadlock))
    return hang_svg(finding)
