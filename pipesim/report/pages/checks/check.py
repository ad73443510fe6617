"""``pipesim check``: the verdict for every schedule, what it rests on, and a schedule for what is wrong."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from rich.cells import cell_len

from pipesim.answers.views.check import CheckReport, CheckStep, Counterexample
from pipesim.answers.views.conclusion import Conclusion, VerdictScope
from pipesim.errors import PipesimError
from pipesim.model.coverage import Assumption
from pipesim.model.finding import BlockedAgent, Deadlock, Verdict
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.counterexample.words import DoubtLine
from pipesim.report.findings.brief import in_short
from pipesim.report.findings.finding import advisory_lines, claim_of, finding_lines, index_of, names_of, role_of
from pipesim.report.findings.schedule import again_lines, schedule_block
from pipesim.report.sentences.check import (
    MOST_CELLS,
    assumed_line,
    check_sentence,
    how_words,
    kind_words,
    kinds_words,
    left_out_words,
    nearby_words,
    scope_lines,
    sizes_words,
    together_words,
    values_of_word,
    verdict_words,
    why_not_every,
)
from pipesim.report.sentences.sureness import basis_words, sureness_words, unused_words
from pipesim.report.text.console import SPARED, mark
from pipesim.report.text.layout import field, heading_lines, wrap, wrap_parts
from pipesim.report.text.source import source_lines, text_of, with_hint, with_source
from pipesim.report.text.words import count, listed, number, parameters, place, with_lines_together

MOST_DOUBTS = 4
MOST_IN_VIEW = 22  #: lines: those of the smallest usual terminal, less the prompt below and the headline above
MOST_KINDS = 6  #: of CTAs
MOST_PLACES = 3  #: at which an assumption is made, that are listed


def verdict_list(reports: Mapping[str, CheckReport], failed: Mapping[str, PipesimError]) -> list[str]:
    """The verdicts on several protocols in a line each, and how many of them are proved.

    ``failed``: those that could not be built, each with its error.
    """
    lines = [f"  {mark_of(report)} {name}" for name, report in reports.items()]
    lines += [f"  {mark(None)} {name} could not be built" for name in failed]
    proved = sum(report.verdict is Verdict.PROVED for report in reports.values())
    spared = sum(report.conclusion is Conclusion.AGREES for report in reports.values()) - proved
    refuted = any(report.conclusion is Conclusion.WRONG for report in reports.values())
    several = len(reports) + len(failed)
    ok = False if refuted else True if proved + spared == several else None
    more = f", {spared} more without a finding that fails" if spared else ""
    sign = SPARED if ok and spared else mark(ok)
    return [*lines, "", f"{sign} {proved} of {count(several, 'protocol')} proved{more}"]


def mark_of(report: CheckReport) -> str:
    """The mark of its conclusion; ! where it is refuted, by findings that do not fail the check."""
    spared = report.verdict is Verdict.REFUTED and report.conclusion is Conclusion.AGREES
    return SPARED if spared else mark(report.conclusion.ok)


def check_lines(report: CheckReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    return [*verdict_lines(report, width), *detail_lines(report, width)]


def verdict_lines(report: CheckReport, width: int) -> list[str]:
    """The protocol, the verdict and what it rests on: the same before the steps that follow the verdict, and after."""
    parts = [report.verdict.value] if report.replayed is None else []
    parts += [count(report.operations, "operation"), *([count(report.phases, "phase")] if report.phases else [])]
    parts.append(how_words(report))
    parts += [f"{count(report.states, 'state')} searched"] if report.states else []
    return [*heading_lines(report.heading, width), "", *field("check", parts, width)]


def detail_lines(report: CheckReport, width: int) -> list[str]:
    """What follows the verdict: for which sizes it holds, what is wrong, what was left out, and all in one sentence."""
    lines: list[str] = []
    if report.kinds:
        said = f"{count(report.scope.grid, 'CTA')} of {count(len(report.kinds), 'kind')}"
        lines += field("ctas", [said, *_kinds(report)], width)
    for each in report.ranges:
        lines += field("sizes", [_range(each)], width)
    if report.together is not None:
        together = report.together
        lines += field("sizes", [f"{' and '.join(together.parameters)} together: {together_words(together)}"], width)
    if report.nearby:
        lines += field("sizes", [nearby_words(report)], width)
    lines += advisory_lines(report.advisories, width)
    lines += assumed_lines(report.scope, width)
    lines += waived_lines(report, width)
    lines += beside_lines(report, width)
    first = f"{mark_of(report)} "
    if report.replayed is not None:
        verdict = wrap(check_sentence(report), width, first)
    else:
        verdict = scope_lines(verdict_words(report), ", ", report, width, first)
    return with_hint([*lines, *wrong_lines(report, width, verdict)], width)


def _kinds(report: CheckReport) -> list[str]:
    """The first kinds of CTAs, those that are not proved before others."""
    proved = [each.verdict is Verdict.PROVED for each in report.kinds]
    shown = sorted(sorted(range(len(proved)), key=proved.__getitem__)[:MOST_KINDS])
    rest = [each.verdict for n, each in enumerate(report.kinds) if n not in shown]
    more = [f"{count(n, 'more kind')} {verdict.value}" for verdict in Verdict if (n := rest.count(verdict))]
    return [kinds_words(report)[n] for n in shown] + more


def assumed_lines(scope: VerdictScope, width: int) -> list[str]:
    """What is assumed at which places, a few of each assumption."""
    lines: list[str] = []
    for kind, places in scope.counted().items():
        if kind is Assumption.PATTERN:  # the lines on sizes say it
            continue
        said = [assumed_line(each) for each in scope.assuming if each.kind is kind][:MOST_PLACES]
        more = [f"and at {count(places - len(said), 'more place')}"] if places > len(said) else []
        for each in (*with_lines_together(said), *more):
            lines += field("assumed", [each], width)
    return lines


def waived_lines(report: CheckReport, width: int) -> list[str]:
    """The findings that are waived, a line each, and the waivers that match none."""
    lines: list[str] = []
    for shown in report.waived:
        assert shown.waived is not None
        reason = f" · {shown.waived.reason}" if shown.waived.reason else ""
        said = f"{in_short(shown.finding)} ({place(shown.place)}) · {place(shown.waived.said)}{reason}"
        lines += field("waived", [said], width)
    for waiver in report.unused:
        lines += field("unused", [unused_words(waiver)], width)
    return ["", *lines] if lines else []


def left_out_lines(report: CheckReport, width: int) -> list[str]:
    """The steps that did not finish, and why."""
    said = left_out_words(report)
    return ["", *field("left out", said, width)] if said else []


def proof_lines(report: CheckReport, width: int) -> list[str]:
    """The verdict as one line of another report."""
    said = {Verdict.PROVED: "proved for every schedule", Verdict.REFUTED: "refuted", Verdict.UNKNOWN: "unknown"}
    how = [] if report.verdict is Verdict.PROVED else [how_words(report)]
    free = sizes_words(report.ranges, report.together)
    sizes = [f"{free} (assumed to continue)"] if free else []
    parts = [f"{mark_of(report)} {said[report.verdict]}", *sizes, *how]
    parts.append(count(report.operations, "operation"))
    return field("proof", parts, width)


def _range(each: ProvedRange) -> str:
    """For which values of a trip count the verdict holds, and what is assumed for those that were not checked."""
    if each.checked < 0:
        return f"{each.parameter}: as given, not any number: {why_not_every(each)}"
    run = f"{number(each.least)} to {number(each.checked)} checked individually"
    if each.least == each.checked:
        run = f"only {number(each.least)} checked"
    if each.is_every and not each.lap:
        return f"{values_of_word(each)}: every value is one of those that do the same as one that was checked"
    if not each.lap:
        return f"{each.parameter}: {run}, no further value: {why_not_every(each)}"
    if each.step:
        beyond = f"from {number(each.first)} on what happens repeats every {number(each.lap)}"
        end = "" if each.is_every else f", no further value: {why_not_every(each)}"
        return f"{values_of_word(each)}: {run}; {beyond} (shown by the code){end}"
    lap = f"{number(each.lap)} iterations repeat" if each.lap > 1 else "iteration repeats"
    beyond = f"from {number(each.first)} on, every further {lap} one lap"
    far = f", as compared at {listed([number(value) for value in each.far])}" if each.far else ""
    return f"{each.parameter}: any value: {run}; {beyond}{far} (assumed to continue)"


def beside_lines(report: CheckReport, width: int) -> list[str]:
    """What else is known: accesses in no order, how other schedules end, the steps that are left out."""
    lines: list[str] = []
    if report.doubts and report.verdict is not Verdict.PROVED:
        lines += ["", *_doubts(report.doubts, width)]
    if report.also:
        lines += ["", "  other schedules of this size end differently"]
        for kind in report.also:
            lines += wrap(kind.value, width, "    ", "      ")
    return lines + left_out_lines(report, width)


def wrong_lines(report: CheckReport, width: int, verdict: Sequence[str]) -> list[str]:
    """What is wrong, each block after an empty line, and the lines of the verdict.

    Each finding follows the schedule that leads to it, and the first, of which the others may be effects, is the last:
    its cause and correction stand directly above the verdict.
    """
    lines: list[str] = []
    told = [shown for shown in report.refutations if shown.waived is None]
    numbers = [number for number, shown in enumerate(report.refutations) if shown.waived is None]
    for n, shown in reversed(list(enumerate(told))):
        below_it = told[:n]
        again = bool(shown.corrections) and any(each.corrections == shown.corrections for each in below_it)
        found, corrections = _finding(shown, width), correction_lines(shown, width, again=again)
        below = len(corrections) + len(verdict) + (2 if corrections else 1)
        out_of_view = not n and len(found) - 2 + below > MOST_IN_VIEW
        whole = (*_program(shown, width), *_schedule(shown, width, numbers[n])) if not report.quick else ()
        schedule = whole or [_in_ctas(shown, width)]
        for block in (*schedule, found, _cause(shown, width) if out_of_view else [], corrections):
            lines += ["", *block] if block else []
    return [*lines, "", *verdict]


def shown_lines(shown: Counterexample, width: int) -> list[str]:
    """One way in which it fails, for other tools, which show the beginning: the sizes, the finding, its schedule."""
    schedule, again = _schedule(shown, width)
    lines: list[str] = []
    for block in (*_program(shown, width), _finding(shown, width), schedule, correction_lines(shown, width), again):
        lines += ["", *block] if block else []
    return lines


def _program(shown: Counterexample, width: int) -> tuple[list[str], list[str]]:
    """In which program it fails: of which sizes, and with which change."""
    return [*_smallest(shown, width), *_in_ctas(shown, width)], _after(shown, width)


def _in_ctas(shown: Counterexample, width: int) -> list[str]:
    """Where not all CTAs do the same, those in which the finding is, and the line where they differ."""
    kinds = shown.kinds[:MOST_PLACES]
    texts = {each.line: text for each in kinds if (text := text_of(each.line))}
    said = [kind_words(replace(each, line="") if each.line in texts else each) for each in kinds]
    more = len(shown.kinds) - len(kinds)
    said += [f"CTAs of {count(more, 'more kind')}"] if more else []
    named = any(each.contents for each in shown.kinds)  # then elements have their names, and not their places alone
    size = {name: value for name, value in shown.settings.items() if name != "cta" and not (named and ":" in name)}
    where = [f"in {listed(said)}"] if said else []
    where += [f"with {listed([f'{name} {number(value)}' for name, value in size.items()])}"] if size else []
    lines = wrap(" ".join(where), width, "  ", "    ") if where else []
    return lines + [each for line, text in texts.items() for each in source_lines(line, text, width, "    ")]


def _after(shown: Counterexample, width: int) -> list[str]:
    """The change without which the finding does not show."""
    if (change := shown.after) is None:
        return []
    said = f"another finding hides this one, which shows with a change: {change.said}"
    return with_source(said, change.line, width, "  ", "    ")


def _sureness(shown: Counterexample, width: int) -> list[str]:
    lines = [line for each in sureness_words(shown) for line in wrap(each, width, "  ", "    ")]
    return ["", *lines] if lines else []


def _schedule(shown: Counterexample, width: int, nth: int = 0) -> tuple[list[str], list[str]]:
    """The schedule, and how to see the ``nth`` finding again."""
    has_own = shown.schedule and not shown.elsewhere
    return schedule_block(shown, width) if has_own else [], again_lines(shown, width, nth)


def _finding(shown: Counterexample, width: int) -> list[str]:
    """The finding without its correction, which has a block of its own."""
    found = finding_lines([replace(shown.finding, correction="")], width, basis_words(shown))
    return [*found, *_sureness(shown, width)]


#: What a cause of more than two lines does not say again: places, parities.
_SAID_ABOVE = re.compile(
    r" \((?:parity |[^()]*:\d)[^()]*\)|; (?:it|they) now waits? for phase [\d,]+|; (?:no further one|or) .*"
)
_MOST_LINES = 2  #: of a sentence


def _cause(shown: Counterexample, width: int) -> list[str]:
    """The cause again: of a deadlock a wait for what is corrected, nothing if none is. A branch that led a warp past
    what is missing is already at the end of the finding.
    """
    finding = shown.finding
    if isinstance(finding, Deadlock):
        repair = shown.corrections[0].repair if shown.corrections else None
        groups = [each.partition("[")[0] for each in repair.group.split(",")] if repair is not None else []
        waits = [b for b in finding.blocked if not any(groups) or _group_of(b) in groups]
        if finding.led_past or not waits:
            return []
        finding = replace(finding, blocked=tuple(waits))
    said = f"cause: {claim_of(finding)}"
    said = _SAID_ABOVE.sub("", said) if len(wrap(said, width, "  ", "    ")) > _MOST_LINES else said
    clauses = re.split(r"(?<=;) ", said) if cell_len(said) > MOST_CELLS else [said]
    return [line for n, each in enumerate(clauses) for line in wrap(each, width, "    " if n else "  ", "    ")]


def _group_of(blocked: BlockedAgent) -> str:
    """The group of barriers, or the number of the named barrier, that an agent waits for."""
    return blocked.barrier.removeprefix("named barrier ").partition("[")[0]


def correction_lines(shown: Counterexample, width: int, *, again: bool = False) -> list[str]:
    """``likely correction: initialise empty with a count of 1 instead of 2 (ring.py:12); proved with this change``.

    ``again``: those of a finding below.
    """
    if again:
        return wrap(f"likely correction: the same as of the finding below; {shown.proved_with}", width, "  ", "    ")
    if not shown.corrections and shown.finding.correction:
        either = f"likely correction: {shown.finding.correction}".replace("; or ", "\nor: ").splitlines()
        return [line for each in either for line in wrap(each, width, "  ", "    ")]
    lines: list[str] = []
    for n, found in enumerate(shown.corrections):
        label = "or: " if n else "likely correction: "
        lines += with_source(f"{label}{found.said}", found.line, width, "  ", "    ", f"; {shown.proved_with}")
    return lines


def _smallest(shown: Counterexample, width: int) -> list[str]:
    if not shown.at:
        return []
    label = "smaller, not all sizes were tried" if CheckStep.SMALLEST in shown.unfinished else "smallest"
    return wrap_parts([label, *parameters(shown.at, ())], width, "  ")


def _doubts(doubts: tuple[DoubtLine, ...], width: int) -> list[str]:
    """What may happen otherwise in another schedule, as the one run shows; once for agents that are alike."""
    lines = ["  not ordered with respect to other agents:"]
    alike = _alike(dict.fromkeys(doubts))  # the next lap's says the same
    for some in alike[:MOST_DOUBTS]:
        doubt = some[0]
        lines += with_source(_step_of_agents([each.what for each in some]), doubt.line, width, "    ", "      ")
        if doubt.other:
            other = f"and {_step_of_agents([each.other for each in some])}"
            lines += with_source(other, doubt.other_line, width, "    ", "      ")
        lines += wrap(doubt.why, width, "      ", "      ")
    rest = sum(map(len, alike[MOST_DOUBTS:]))
    return [*lines, f"    and {number(rest)} more"] if rest else lines


def _alike(doubts: Iterable[DoubtLine]) -> list[list[DoubtLine]]:
    """The doubts, together those of the same lines, or that differ in the number of an agent in its role only."""
    found: dict[Hashable, list[DoubtLine]] = {}
    for doubt in doubts:
        sides = [(role_of(agent), words) for agent, words in (_split(doubt.what), _split(doubt.other))]
        lines = (doubt.line, doubt.other_line)
        found.setdefault((doubt.why, *lines, *(() if doubt.line else sides)), []).append(doubt)
    return list(found.values())


def _step_of_agents(told: Sequence[str]) -> str:
    """``epilogue/0 to epilogue/3: arrive empty[0]`` of what each of them does, which is the same."""
    agents = sorted({_split(said)[0] for said in told}, key=lambda agent: (role_of(agent), index_of(agent)))
    words = list(dict.fromkeys(_split(said)[1] for said in told))
    others = f" and {number(len(words) - 1)} more of this line" if len(words) > 1 else ""
    return f"{names_of(agents)}: {words[0]}{others}" if agents[0] else f"{words[0]}{others}"


def _split(said: str) -> tuple[str, str]:
    """The agent and what it does; no agent where a doubt is about a barrier alone."""
    agent, colon, words = said.partition(": ")
    return (agent, words) if colon else ("", said)
