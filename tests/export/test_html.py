"""The page holds exactly the picture: every column and every step read back; nothing is fetched."""

import json
from functools import cache
from typing import Any

import pytest

from pipesim.answers.check import check
from pipesim.answers.recorded_program import recorded_program
from pipesim.api.export import counterexample_page
from pipesim.api.timelines import comparison_scene
from pipesim.formats.html.page import Page, page_parts, script_json
from pipesim.scene.parts import RunScene
from pipesim.scene.story import story
from pipesim.targets import find
from pipesim.trace.activity import SliceKind
from pipesim.trace.files import read_trace
from tests.support.paths import EXAMPLES, TRACES

H200 = TRACES / "h200" / "cluster_multicast-c2-cw2-ob8192-sb8192-s4-t3-w600-g2.parquet"
RING = str(EXAMPLES / "ring_forgets.py") + ":ring"


def text(page: Page) -> str:
    return b"".join(page_parts(page)).decode()


def data(page: Page) -> Any:
    return json.loads(text(page).partition('id="data">')[2].partition("</script>")[0])


@cache
def runs() -> tuple[RunScene, ...]:
    trace = read_trace(H200)
    return comparison_scene(recorded_program(trace.meta), trace, None, "hardware").runs


@cache
def counterexample() -> Page:
    target = find(RING)
    report = check(target, {"stages": 2})
    (shown,) = report.refutations
    return counterexample_page(target.build({"stages": 2} | dict(shown.at)), report, shown)


def test_a_page_has_the_slices_arrows_and_counters_of_its_runs() -> None:
    read = data(Page("two", runs()))
    kinds = list(SliceKind)
    assert [kind["text"] for kind in read["kinds"]] == [kind.value for kind in kinds]
    assert len(read["runs"]) == 2
    for drawn, run in zip(read["runs"], runs(), strict=True):
        columns = drawn["slices"]
        assert list(zip(
            columns["track"], columns["kind"], [drawn["texts"][n] for n in columns["name"]], columns["begin"],
            columns["end"], columns["phase"], columns["iteration"], columns["value"], columns["late"], strict=True,
        )) == [
            (s.track, kinds.index(s.kind), s.name, s.begin, s.end, -2 if s.phase is None else s.phase, s.iteration,
             s.value, s.at_most)
            for s in run.slices
        ]  # fmt: skip
        pairs = zip(drawn["arrows"]["source"], drawn["arrows"]["target"], strict=True)
        assert list(pairs) == [(arrow.source, arrow.target) for arrow in run.arrows]
        assert [(t["cta"], t["place"], t["name"]) for t in drawn["tracks"]] == [
            (t.cta, t.place, t.title) for t in run.tracks
        ]
        assert [list(zip(c["at"], c["value"], strict=True)) for c in drawn["counters"]] == [
            list(counter.points) for counter in run.counters
        ]


@pytest.mark.slow
def test_a_story_unfolds_to_every_state() -> None:
    """A step lists what it changes; here it is put together again, as the script does."""
    target = find(RING)
    (shown,) = check(target, {"stages": 2}).refutations
    told = story(target.build({"stages": 2} | dict(shown.at)), shown)
    read = data(counterexample())["story"]
    assert (read["agents"], read["barriers"]) == (list(told.agents), list(told.barriers))
    texts, agents, barriers = read["texts"], list(read["start"]), [None] * len(told.barriers)
    for step, expected in zip(read["steps"], told.steps, strict=True):
        for n, *now in step["agents"]:
            agents[n] = now
        for n, now in step["barriers"]:
            barriers[n] = now
        assert [(texts[a], texts[b]) for a, b, _ in agents] == [(a.standing.value, a.next) for a in expected.agents]
        assert barriers == [None if b is None else list(b) for b in expected.barriers]
        assert [texts[n] for n in step["flights"]] == list(expected.flights)
        assert (read["agents"][step["agent"]], step["what"]) == (expected.line.agent, expected.line.what)


def test_source_lines_are_beside_every_step() -> None:
    read = data(counterexample())
    assert {step["line"] for step in read["story"]["steps"]} <= read["sources"].keys()
    for place, lines in read["sources"].items():
        file, _, number = place.rpartition(":")
        source = (EXAMPLES / "ring_forgets.py").read_text(encoding="utf-8").split("\n")
        assert file.endswith("ring_forgets.py")
        assert int(number) in {n for n, _ in lines}
        assert all(shown == source[n - 1] for n, shown in lines)


def test_no_text_ends_the_element_that_it_is_in() -> None:
    assert script_json("</script><!--&\u2028") == '"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028"'
    assert json.loads(script_json("</script><!--&\u2028")) == "</script><!--&\u2028"
