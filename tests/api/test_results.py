"""A result shows itself: one line, the report, HTML with its pictures, and the JSON of the command."""

import re
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import pipesim
from pipesim.api.result import Result, VerdictResult
from pipesim.cli.main import main
from pipesim.errors import UsageError
from pipesim.trace.library import trace_folder
from tests.support.mistakes.small import two_of_three

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
RECORDED = trace_folder() / "h100" / "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
HANGS = f"{EXAMPLES}/ring_forgets.py:ring"


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """One of each kind, by the command that says the same."""
    refuted = pipesim.check(HANGS)
    (finding,) = refuted.findings
    return {
        "check producer_consumer": pipesim.check("producer_consumer"),
        f"check {HANGS}": refuted,
        "a search that reaches its limit": pipesim.check(two_of_three, max_states=10),
        "run producer_consumer": pipesim.simulate("producer_consumer"),
        f"run {HANGS}": pipesim.simulate(HANGS),
        f"diff {RECORDED}": pipesim.compare(RECORDED),
        "verify producer_consumer --recorded": pipesim.verify("producer_consumer", hardware="recorded"),
        f"verify {HANGS} --no-hardware": pipesim.verify(HANGS, hardware=False),
        "verify producer_consumer -p tiles=3 --recorded": pipesim.verify(
            "producer_consumer", hardware="recorded", tiles=3
        ),
        "show cluster_multicast --rank 1": pipesim.show("cluster_multicast", rank=1),
        "finding": finding,
        "counterexample": finding.counterexample,
    }


COMMANDS = [
    "check producer_consumer", f"check {HANGS}", "run producer_consumer", f"run {HANGS}", f"diff {RECORDED}",
    "show cluster_multicast --rank 1", "verify producer_consumer --recorded", f"verify {HANGS} --no-hardware",
    "verify producer_consumer -p tiles=3 --recorded",
]  # fmt: skip


@pytest.mark.sampled(0, 3)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_text_is_the_report_of_the_command(
    results: dict[str, Result], command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    main(command.split())
    assert str(results[command]) == capsys.readouterr().out.rstrip("\n")


@pytest.mark.sampled(0, 3)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_json_is_the_document_of_the_command(
    results: dict[str, Result], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command.split(), "--json"])
    assert results[command].to_json() == capsys.readouterr().out.rstrip("\n")


@pytest.mark.slow
def test_the_verdict_and_what_a_condition_makes_of_it(results: dict[str, Result]) -> None:
    answers = {name: result for name, result in results.items() if isinstance(result, VerdictResult)}
    assert {name: answer.ok for name, answer in answers.items()} == {
        "check producer_consumer": True,
        f"check {HANGS}": False,
        "a search that reaches its limit": None,
        "run producer_consumer": True,
        f"run {HANGS}": False,
        f"diff {RECORDED}": True,
        "verify producer_consumer --recorded": True,
        f"verify {HANGS} --no-hardware": False,
        "verify producer_consumer -p tiles=3 --recorded": None,
    }
    assert [bool(each) for each in answers.values()] == [each.ok is True for each in answers.values()]


@pytest.mark.slow
def test_html_is_the_report_escaped_and_pictures_that_are_well_formed(results: dict[str, Result]) -> None:
    for name, result in results.items():
        html = result._repr_html_()
        root = ET.fromstring(html.replace('"></p>', '"/></p>'))  # an img has no end tag in HTML
        (pre,) = root.iter("pre")
        assert pre.text == str(result), name
        pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
        assert len(pictures) == 1, name
        for picture in pictures:
            assert ET.fromstring(b64decode(picture)).tag.endswith("svg")
        assert not re.search(r"<(script|style|link)\b", html), "nothing may touch the page around it"
        assert "color:inherit" in html
        assert "background:none" in html


def test_a_finding_of_a_small_size_says_at_which() -> None:
    result = pipesim.check(f"{EXAMPLES}/ring_two.py:ring")
    (finding,) = result.findings
    assert finding.counterexample.at == {"tiles": 3}
    assert finding.corrections
    assert finding.corrections[0] in str(result)


def test_what_a_simulation_finds_has_no_counterexample() -> None:
    result = pipesim.simulate(HANGS)
    (finding,) = result.findings
    assert finding.counterexample is None
    assert finding.data is result.deadlock
    assert finding.line.endswith("ring_forgets.py:20")
    assert "<img" not in finding._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"hardware": "gpu"}, 'give True, False or "recorded"'),
        ({"traces": "no_such_folder"}, "there is no folder no_such_folder"),
        ({"traces": 3}, "give the path of a folder"),
        ({"hardware": False, "tolerance": 5}, "tolerance asks for a comparison with the hardware"),
        ({"max_states": 0}, "max_states is 0"),
    ],
)
def test_what_verify_cannot_do(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(pipesim.UsageError, match=re.escape(said)):
        pipesim.verify("producer_consumer", **arguments)


@pytest.mark.slow
def test_what_the_command_exports_is_a_result(tmp_path: Path) -> None:
    """In every format and of every picture, each as the command writes it; a picture that is not there is an error."""
    ways = (["promela"], ["svg", "hang"], ["html", "counterexample"], ["html"])
    for to, *picture in ways:
        made = pipesim.export(HANGS, to, **({"picture": picture[0]} if picture else {}))  # type: ignore[arg-type]
        file = tmp_path / "-".join((to, *picture))
        options = [each for name in picture for each in ("--picture", name)]
        assert main(["export", HANGS, "--to", to, *options, "-o", str(file)]) == 0
        made.write(file, force=True) if made.data == file.read_bytes() else pytest.fail(f"{to} {picture}")
    assert repr(made) == "ExportResult(protocol='ring', to='html')"
    with pytest.raises(UsageError, match="there is no counterexample to draw"):
        pipesim.export("producer_consumer", "svg", picture="hang")
    for bad in ({"to": "pdf"}, {"to": "perfetto", "picture": "hang"}, {"to": "html", "picture": "hang"}):
        with pytest.raises(UsageError):
            pipesim.export(HANGS, **bad)  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_verdict_has_a_brief() -> None:
    wrong, right = pipesim.check(HANGS), pipesim.check("producer_consumer")
    assert (pipesim.simulate(HANGS).brief.kind, pipesim.simulate("producer_consumer").brief.kind) == ("deadlock", "")
    new = wrong.against(right).brief
    assert (new.basis, new.places, new.replay) == ("certain", wrong.brief.places, wrong.brief.replay)
    assert right.against(wrong).brief.findings == 0
