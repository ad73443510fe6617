"""The end of every verdict: for what it holds, what it assumes and what it does not judge."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

import pipesim
from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.coverage import (
    RULES,
    STRICTEST,
    Assumed,
    Assumption,
    Coverage,
    NotJudged,
    NotJudgedKind,
    coverage_from,
)
from pipesim.model.finding import Verdict
from pipesim.report.sentences.check import ctas_words, not_judged_words, scope_lines, scope_words

KERNEL = str(Path(__file__).resolve().parents[2] / "docs" / "examples" / "row_max.ptx")
SAID = (
    "for every CTA, at these parameters; global memory: disjoint across 2 CTAs; assuming that reads complete before "
    "the arrive that follows them (--strict-proxies, 1) and that pointers and tensor maps of the launch lead to "
    "different memory (--strict-buffers, 1); not judged: nothing"
)


def report(strict: tuple[str, ...] | bool = ()) -> CheckReport:
    return pipesim.check(KERNEL, strict=strict, set={"n": 2048}, quick=True).report


def test_the_verdict_of_a_kernel_has_three_parts() -> None:
    made = report()
    assert (made.verdict, scope_words(made)) == (Verdict.PROVED, SAID)
    assert made.scope.counted() == {Assumption.PROXIES: 1, Assumption.BUFFERS: 1}


@pytest.mark.slow
def test_an_assumption_that_is_ruled_out_is_a_finding_or_leaves_nothing_proved() -> None:
    assert report(("proxies",)).verdict is Verdict.REFUTED
    for needless in ("lanes", "time-outs"):
        assert report((needless,)).verdict is Verdict.PROVED, "the kernel needs no such assumption"
    assert report(strict=True).verdict is Verdict.REFUTED
    with pytest.raises(pipesim.UsageError, match="no assumption is called 'lane'"):
        report(("lane",))


def test_places_that_have_one_reason_are_named_together() -> None:
    names = [f"k.cu:{line}: one CTA writes them" for line in range(9, 14)]
    made = NotJudged(NotJudgedKind.GLOBAL_LOADS, 6, (*names, "k.cu:3: no size"))
    why = "k.cu:9, 10, 11 and 2 more: one CTA writes them; k.cu:3: no size"
    assert not_judged_words(made) == f"6 loads of global memory ({why})"


@pytest.mark.slow
def test_the_pattern_of_sizes_may_be_ruled_out() -> None:
    free, bound = (pipesim.check("producer_consumer", strict=strict).report for strict in ((), ("pattern",)))
    assert (free.verdict, bound.verdict) == (Verdict.PROVED, Verdict.PROVED)
    assert "for any number of tiles" in scope_words(free)
    assert "at these parameters" in scope_words(bound)
    assert Assumption.PATTERN in free.scope.kinds
    assert Assumption.PATTERN not in bound.scope.kinds


@pytest.mark.slow
def test_the_same_parts_in_json_sarif_and_junit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "found.sarif"
    assert main(["check", KERNEL, "--set", "n=2048", "--quick", "--json", "--sarif", str(written)]) == 0
    scope = json.loads(capsys.readouterr().out)["report"]["scope"]
    assert (scope["ctas"], scope["grid"]) == ([], 2)
    assert [(each["name"], each["switch"], each["count"]) for each in scope["assumptions"]] == [
        ("proxies", "--strict-proxies", 1),
        ("buffers", "--strict-buffers", 1),
    ]
    assert (scope["on_global"], scope["not_judged"]) == (["disjoint across 2 CTAs"], [])
    (verdict,) = json.loads(written.read_text("ascii"))["runs"][0]["properties"]["verdicts"].values()
    assert (verdict["verdict"], verdict["ctas"], verdict["grid"]) == ("proved", [], 2)
    assert [each["name"] for each in verdict["assuming"]] == ["proxies", "buffers"]
    assert main(["check", KERNEL, "--set", "n=2048", "--quick", "--format", "junit"]) == 0
    found = fromstring(capsys.readouterr().out).iter("property")
    assert [each.get("name") for each in found] == ["for", "global memory", "assuming", "not judged"]


@pytest.mark.slow
def test_which_ctas_were_followed() -> None:
    assert ctas_words(report().scope) == "every CTA"
    assert ctas_words(pipesim.check(KERNEL, set={"n": 2048, "cta": 1}, quick=True).report.scope) == "CTA 1 of 2"
    assert "for every CTA" in scope_words(pipesim.check("producer_consumer", quick=True, ctas=4).report)


def test_no_sentence_is_longer_than_two_lines_and_names_are_few() -> None:
    made = report()
    names = (*(f"full[{n}]" for n in range(16)), "row.cu:3[0]", "row.cu:3[2]", "order.group0", "last", "late")
    ring = NotJudged(NotJudgedKind.NEVER_WRAPPED, len(names), names)
    every = tuple(Assumed(kind, "here") for kind in Assumption)
    made = replace(
        made, scope=replace(made.scope, assuming=every, not_judged=(NotJudged(NotJudgedKind.LEFT_OUT, 2), ring))
    )
    lines = scope_lines(f"unknown: {', '.join(names)}; give {' '.join(names)}", ", ", made, 100, "x ")
    assert max(map(len, lines)) <= 100
    deep = [len(line) - len(line.lstrip()) for line in lines]
    assert [deep.count(n) for n in (0, 4)] == [1, 1 + len(Assumption) + 1], "a line for each clause"
    assert lines[-2].endswith("21 barriers that complete too few")
    assert lines[-1] == "    phases to use a stage again (full[0..15], row.cu:3[0, 2], order.group0 and 2 more)"


def test_every_assumption_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(ASSUMPTIONS) == tuple(Assumption)
    for kind in Assumption:
        assert main(["explain", kind.value]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert kind.switch in out
        assert ("what needs it is a finding" in out) == (kind in RULES)
    assert STRICTEST > RULES


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"assumed": [["no such", "x", []]]}, "an entry of 'assumed'"),
        ({"not_judged": [["GLOBAL_LOADS", "x", []]]}, "an entry of 'not_judged'"),
        ({"ctas": ["0"]}, "an entry of 'ctas'"),
        ({"stopped": [1]}, "an entry of 'stopped' of 'coverage' is a text"),
        ({"stopped": "x"}, "is a list"),
        ({"other": []}, "'coverage' is an object"),
    ],
)
def test_a_file_with_another_coverage_is_refused(data: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        coverage_from(data)
    assert coverage_from({}) == Coverage()
