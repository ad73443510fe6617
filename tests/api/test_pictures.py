"""The pictures of a counterexample and of a timeline: valid SVG, the same every time, nothing outside the picture."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import pipesim
from pipesim.api.timelines import comparison_scene
from pipesim.cli.main import main
from pipesim.report.pictures.scene_svg import scene_svg
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder
from tests.support.lanes import slow_but
from tests.support.mistakes import BROKEN

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
NS = "{http://www.w3.org/2000/svg}"
CELL = 7.3
RECORDED = trace_folder() / "h100" / "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


def texts(root: ET.Element) -> list[str]:
    return [t.text or "" for t in root.iter(f"{NS}text")]


def inside(root: ET.Element) -> None:
    """Every text and every box lies in the picture."""
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{NS}text"):
        half = 2 if text.get("text-anchor") == "middle" else 1
        assert 0 <= float(text.attrib["x"]) <= width
        assert float(text.attrib["x"]) + CELL * len(text.text or "") / half <= width + 1, text.text
        assert 0 < float(text.attrib["y"]) <= height
    for rect in root.iter(f"{NS}rect"):
        if rect.get("class") != "background":
            assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
            assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height


def counterexamples(x: object, **params: int) -> list[pipesim.CounterexampleDiagram]:
    result = pipesim.check(x, **params)  # type: ignore[arg-type]
    found = [finding.counterexample for finding in result.findings]
    assert bool(found) == (result.verdict is pipesim.Verdict.REFUTED)
    return [each for each in found if each is not None]


@pytest.mark.sampled(4, 10)
@pytest.mark.parametrize("name", slow_but(sorted(BROKEN)[::10], sorted(BROKEN)))
def test_every_wrong_twin_has_a_picture(name: str) -> None:
    """But for those whose search at their default sizes reaches its limit."""
    for found in counterexamples(BROKEN[name]):
        svg = found.svg()
        root = ET.fromstring(svg)
        inside(root)
        assert svg == found.svg()
        last = [r for r in root.iter(f"{NS}rect") if r.get("class") == "bad"]
        assert last, "what goes wrong is marked"


def test_a_simulation_is_exported_as_the_command_writes_it(tmp_path: Path) -> None:
    run = pipesim.simulate("producer_consumer", tiles=3)
    for to in ("html", "svg", "perfetto"):
        file = tmp_path / f"run.{to}"
        assert main(["export", "producer_consumer", "-p", "tiles=3", "--to", to, "-o", str(file)]) == 0
        assert run.export(to) == file.read_bytes()
    with pytest.raises(pipesim.UsageError, match="use perfetto or html or svg"):
        run.export("png")


def test_a_run_without_events_has_no_timeline() -> None:
    p = pipesim.Protocol("idle")
    p.role("idle")(lambda w: None)
    result = pipesim.simulate(p)
    assert result.svg() == ""
    assert "<img" not in result._repr_html_()


@pytest.mark.parametrize("traced", [False, True])
def test_a_simulation_in_a_notebook_is_the_picture_that_export_draws(traced: bool) -> None:
    result = pipesim.simulate("producer_consumer", tiles=6, traced=traced)
    drawn, trace = simulated_scene(result.program, result.profile, traced=traced)
    assert trace.events.cycle.tolist() == result.trace.events.cycle.tolist()
    ((caption, svg),) = result.pictures()
    assert caption == "the timeline of producer_consumer"
    assert svg == scene_svg(Scene("producer_consumer", (drawn,)))
    assert "copies in flight" in svg
    assert "a recording does not show" not in svg, "a simulation knows when a transfer landed"


@pytest.mark.slow
def test_a_comparison_in_a_notebook_has_the_simulation_above_the_hardware_as_export_draws_them() -> None:
    result = pipesim.compare(RECORDED, profile="h200")
    trace = read_trace(RECORDED)
    ((caption, svg),) = result.pictures()
    assert caption == "simulation and recording of producer_consumer"
    label = f"hardware, {trace.meta.device.name}"
    assert svg == scene_svg(comparison_scene(result.program, trace, load_profile("h200"), label))
    said = texts(ET.fromstring(svg))
    assert said.index("simulation (h200)") < said.index(label)
    assert "copies in flight" in said[: said.index(label)]
    assert "copies in flight" in said[said.index(label) :]
    assert result.svg() == svg


@pytest.mark.slow
def test_a_refuted_protocol_shows_its_counterexample_and_no_run() -> None:
    result = pipesim.verify(f"{EXAMPLES}/ring_forgets.py:ring", hardware=False)
    (finding,) = pipesim.check(f"{EXAMPLES}/ring_forgets.py:ring").findings
    assert list(result.pictures()) == list(finding.pictures())
