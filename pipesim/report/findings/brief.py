"""The verdict of a check and its first finding, in one line and in at most 2 kB."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

from pipesim.answers.views.check import Brief, CheckReport, Counterexample
from pipesim.model.finding import Deadlock, Finding
from pipesim.report.findings.finding import claim_of, who_waits
from pipesim.report.sentences.check import check_sentence
from pipesim.report.text.layout import middle
from pipesim.report.text.words import number, parameters, place

MOST_BYTES = 1_800  #: of a brief as JSON in one line; indented in a document it is below 2 kB
_MOST_CELLS = (
    300,
    150,
    75,
    30,
)  #: of a sentence, which is cut in the middle, twice as many of the verdict's; fewer where each is many bytes of JSON


def brief_of(report: CheckReport) -> Brief:
    """The answer in short; of the findings the first that fails."""
    first = next(iter(report.failing or report.refutations), None)
    shown = sorted(report.refutations, key=lambda each: each is not first)
    return brief_of_findings(
        report.verdict.value, check_sentence(report, shown=False), [each.finding for each in shown], first
    )


def brief_of_findings(
    verdict: str, said: str, findings: Sequence[Finding], first: Counterexample | None = None
) -> Brief:
    """An answer in short: its verdict, its sentence, and the first finding, with its counterexample if there is one."""
    made = shortened(lambda most: _brief(verdict, said, findings, first, most))
    if first is not None and first.command and first.replay:
        whole = replace(made, replay=f"pipesim check {first.command} --replay '{first.replay}'")
        return whole if _fits(whole) else made
    return made


def shortened(make: Callable[[int], Brief]) -> Brief:
    """The longest brief that is not too large; ``make``: one with sentences of at most this number of cells."""
    return next((each for most in _MOST_CELLS if _fits(each := make(most))), make(_MOST_CELLS[-1]))


def _fits(made: Brief) -> bool:
    return len(json.dumps(asdict(made))) <= MOST_BYTES


def _brief(verdict: str, said: str, findings: Sequence[Finding], first: Counterexample | None, most: int) -> Brief:
    if not findings:
        return Brief(verdict, middle(said, 2 * most))
    found = findings[0]
    kind = found.kind if isinstance(found, Deadlock) else found.kind.name.lower()
    lines = [each.line for each in found.blocked] if isinstance(found, Deadlock) else [found.line, found.other_line]
    places = dict.fromkeys(place(line) for line in (lines if first is None else _places(first)) if line)
    corrections = [*(each.said for each in first.corrections)] if first is not None else []
    return Brief(
        verdict,
        middle(said, 2 * most),
        len(findings),
        kind=kind,
        basis=first.basis.value if first is not None else "",
        claim=middle(claim_of(found), most),
        places=tuple(middle(each, most // 2) for each in list(places)[:2]),
        correction=middle([*corrections, found.correction][0], most),
    )


def _places(shown: Counterexample) -> Iterator[str]:
    """The line of a finding, then those of the other access, the count or what did not come, and the correction's."""
    yield shown.place
    if isinstance(shown.finding, Deadlock):
        at = [each for each in shown.finding.blocked if each.line == shown.place]
        yield from (each.count_line for each in at if each.given >= 0)
        yield from (supplier.next_line or supplier.last_line for each in at for supplier in each.suppliers)
    else:
        yield shown.finding.other_line
    yield from (each.line for each in shown.corrections)


def in_short(finding: Finding) -> str:
    """A finding in a few words: ``deadlock: 2 of 2 agents wait indefinitely``, or the rule that is broken."""
    if isinstance(finding, Deadlock):
        return f"deadlock: {who_waits(finding)[0]}"
    return finding.kind.value


def in_one_line(report: CheckReport) -> str:
    """A verdict and what is wrong: ``refuted: ring: deadlock: 2 of 2 agents wait indefinitely (smallest: tiles 3)``."""
    verdict, name = report.verdict.value, report.heading.protocol
    shown = () if report.guessed else report.failing
    if not shown:
        return f"{verdict}: {name}: {check_sentence(report).removeprefix(verdict).lstrip(':, ')}"
    first, *others = shown
    sizes = f" (smallest: {', '.join(parameters(first.at, ()))})" if first.at else ""
    sizes = f" in CTA {number(first.kinds[0].cta)}" if first.kinds else sizes
    more = f"; and {number(len(others))} more" if others else ""
    return f"{verdict}: {name}: {in_short(first.finding)}{sizes}{more}"
