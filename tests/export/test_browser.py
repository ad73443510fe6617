"""The page in a browser: clicks, keys, colours and 100,000 events. Only where Chromium is installed; not in .ci/run."""

from functools import cache
from pathlib import Path

import pytest

from pipesim.formats.html.page import Page, page_parts
from tests.export.test_html import counterexample, runs
from tests.support.browser import PROGRAM, said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed, or PIPESIM_NO_BROWSER is set"),
]

KEY = "const key = (where, name) => where.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));"
LINES = "const t = pipesim.timeline; t.draw();"


def bytes_of(page: Page) -> bytes:
    return b"".join(page_parts(page))


@cache
def timeline() -> bytes:
    return bytes_of(Page("two", runs()))


def test_a_click_on_a_wait_says_what_released_it_and_how_late(tmp_path: Path) -> None:
    number, run = 1, runs()[1]
    arrow = next(a for a in run.arrows if a.last and run.tracks[run.slices[a.target].track].cta == 0)
    script = f"""{LINES}
      const run = t.runs[{number}], slice = {arrow.target};
      t.show(run.slices.begin[slice] - 500000, run.slices.end[slice] + 500000); t.draw();
      const line = t.lineOf(run, slice); t.top = line.y - 100; t.draw();
      const x = (t.x(run.slices.begin[slice]) + t.x(run.slices.end[slice])) / 2;
      t.click(x, line.y - t.top + 24 + 10);
      return [t.picked && t.picked.slice, t.detail.textContent, t.detail.querySelectorAll('button').length];"""
    slice_, text, buttons = said(timeline(), script, tmp_path)
    assert slice_ == arrow.target
    assert run.slices[arrow.target].name in text
    assert "released by" in text
    late = (arrow.to - arrow.at) / 1000
    assert f"returned {late:,.1f} ns after it" in text or f"returned {late:,.0f} ns after it" in text
    assert buttons == sum(1 for each in run.arrows if each.target == arrow.target)


def test_a_wait_whose_phase_was_complete_says_that_it_did_not_wait(tmp_path: Path) -> None:
    run = runs()[0]
    last = {a.target: a.at for a in run.arrows if a.last}
    early, at = next((target, at) for target, at in last.items() if at < run.slices[target].begin)
    script = f"""{LINES} t.pick(t.runs[0], {early}, true); return t.detail.textContent;"""
    text = said(timeline(), script, tmp_path)
    before = (run.slices[early].begin - at) / 1000
    assert f"had come {before:,.1f} ns before it began" in text or f"had come {before:,.0f} ns before it began" in text
    assert "it did not have to wait" in text


def test_by_keyboard_alone(tmp_path: Path) -> None:
    script = f"""{LINES}{KEY}
      const c = t.canvas, found = [];
      c.focus(); found.push(document.activeElement === c);
      key(c, 'ArrowRight'); found.push(t.picked.slice);
      for (let n = 0; n < 3; n++) key(c, 'ArrowRight');
      found.push(t.picked.slice);
      key(c, 'ArrowDown'); found.push(t.picked.run.slices.track[t.picked.slice]);
      const before = t.to - t.from; key(c, 'w'); found.push(t.to - t.from < before);
      const from = t.from; key(c, 'd'); found.push(t.from > from);
      key(c, '0'); found.push(t.to - t.from >= t.end);
      key(c, 'c'); found.push(t.lines.some((line) => line.counter));
      const wait = [...t.picked.run.intoWait.keys()][0]; t.pick(t.picked.run, wait, true);
      key(c, 'Enter'); found.push(t.picked.run.intoWait.get(wait).includes(t.picked.slice));
      return found;"""
    focus, first, fourth, track, *rest = said(timeline(), script, tmp_path)
    assert focus is True
    assert (first, fourth, track) == (0, 3, 1)
    assert rest == [True] * 5


def test_a_schedule_can_be_stepped_through(tmp_path: Path) -> None:
    script = f"""{KEY}
      const s = pipesim.story, found = [], state = () => s.state.textContent;
      found.push([s.count.textContent, s.source.textContent, state(), scrollY]);
      key(s.steps, 'Home'); found.push([s.count.textContent, s.back.disabled, state()]);
      key(s.steps, 'ArrowRight'); found.push([s.count.textContent, s.back.disabled, s.source.textContent]);
      key(s.steps, 'ArrowLeft'); found.push(s.count.textContent);
      key(s.steps, 'End'); found.push([s.count.textContent, s.next.disabled]);
      const few = s.items.size, box = document.querySelector('input[type=checkbox]');
      box.click(); found.push(s.items.size > few);
      return found;"""
    end, start, one, back, last, more = said(bytes_of(counterexample()), script, tmp_path)
    steps = end[0].rpartition(" ")[2]
    assert end[0] == f"step {steps} of {steps}"
    assert "with pipe.produce() as stage:" in end[1], "the source of what waits at the end"
    assert end[2].count("waits") == 2
    assert end[3] == 0, "the list shows its end, and the page its beginning"
    assert (start[0], start[1], start[2].count("waits")) == ("before the first", True, 0)
    assert one[:2] == [f"step 1 of {steps}", False]
    assert "ring_forgets.py:13" in one[2]
    assert back == "before the first"
    assert last == [f"step {steps} of {steps}", True]
    assert more is True


def test_light_and_dark(tmp_path: Path) -> None:
    """By the system's setting, and by the button whatever that is."""
    script = """const seen = [], colour = () => getComputedStyle(document.body).backgroundColor;
      seen.push(colour());
      for (let n = 0; n < 2; n++) { document.getElementById('theme').click(); seen.push(colour()); }
      return seen;"""
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 29)"
    assert said(timeline(), script, tmp_path / "light") == [light, light, dark]
    assert said(timeline(), script, tmp_path / "dark", "--blink-settings=preferredColorScheme=0") == [dark, light, dark]


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    script = "return document.documentElement.scrollWidth <= innerWidth;"
    for n, page in enumerate((timeline(), bytes_of(counterexample()))):
        assert said(page, script, tmp_path / str(n), f"--window-size={width},800") is True
