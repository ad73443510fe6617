"""The verdict of ``check`` in a sentence: what it is, for what it holds, what it assumes, what is not judged."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from rich.cells import cell_len

from pipesim.answers.views.check import (
    CheckReport,
    CtaKindVerdict,
    CutBy,
    LeftOut,
    NearbyValues,
    ProvedTogether,
    WalkReport,
)
from pipesim.answers.views.conclusion import AssumptionCount, Conclusion, VerdictScope
from pipesim.answers.views.redundant import CutStep
from pipesim.explain.anatomy.parts import CtaKindParts
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.coverage import ON_GLOBAL, Assumed, Assumption, NotJudged
from pipesim.model.finding import Deadlock, Verdict
from pipesim.model.tables import number_runs
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.check import How
from pipesim.report.sentences.sureness import spared_words
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import count, listed, number, place, with_lines_together


def check_sentence(report: CheckReport, *, shown: bool = True) -> str:
    """The verdict in one line; it says for which sizes. ``shown``: a report with the schedule is printed above it."""
    name = report.heading.protocol
    if report.replayed is not None:
        wrong = report.verdict is Verdict.REFUTED
        return f"{name} fails in this schedule" if wrong else "no finding at the end of this schedule"
    return f"{verdict_words(report, shown=shown)}, {scope_words(report)}"


def verdict_words(report: CheckReport, *, shown: bool = True) -> str:
    """The verdict without its scope, and what the user did not wait for."""
    return _verdict_words(report, shown=shown) + _stopped_words(report)


def _stopped_words(report: CheckReport) -> str:
    steps = [each.step.value for each in report.left_out if each.why is CutBy.INTERRUPTED]
    return f"; stopped by the user: {', '.join(steps)} left out or incomplete" if steps else ""


_UNKNOWN = {
    How.STOPPED: "stopped by the user before there was a verdict on {}",
    How.CUT: "{} was not followed to its end",
    How.PERHAPS: "what fails in {} may not happen, as values decide that are not known",
    How.UNREAD: "{} has accesses that were not understood, and that may touch what others use",
    How.OPEN_WORDS: "whether CTAs of {} hang, which wait for each other by words of global memory",
    How.OPEN_DATA: "what orders the data by which CTAs of {} talk",
    How.UNDEFINED: "{} does what PTX leaves undefined",
    How.ASSUMES: "{} is proved only with an assumption that was ruled out",
    How.LANES: "whether {} hangs depends on which lanes of a warp are scheduled first",
    How.WEAKENED: "what is refuted may be right in {}, which has an order that was not read",
}


def _verdict_words(report: CheckReport, *, shown: bool) -> str:
    name = report.heading.protocol
    match report.verdict:
        case Verdict.PROVED:
            part = " for some of the sizes that were asked for" if report.undecided else ""
            return f"proved{part}: no schedule of {name} deadlocks or breaks a rule"
        case Verdict.REFUTED:
            spared = spared_words(report)
            if report.conclusion is Conclusion.AGREES:
                return f"refuted only by what does not fail the check: {spared}; {_rest_words(report)}"
            return f"refuted{f' with {spared}' if spared else ''}: {_fails_words(report, shown=shown)}"
        case Verdict.UNKNOWN if report.guessed:
            way = "--set NAME=VALUE, grid=CTAS, cluster=CTAS, block=THREADS and shared=BYTES give them"
            return f"unknown: what fails in {name} may not happen, as guesses decide it: {report.guessed} ({way})"
        case Verdict.UNKNOWN if report.how in _UNKNOWN:
            return f"unknown: {_UNKNOWN[report.how].format(name)}"
        case Verdict.UNKNOWN if report.how in (How.SOME_CTAS, How.SOME_CONTENTS):
            return f"unknown: {name} is proved for {_some_words(report)}"
        case Verdict.UNKNOWN if report.how is How.UNSIZED:
            maps = [each for each in report.heading.coverage.unsized if not each.startswith("give ")]
            boxes = f"boxes of {count(len(maps), 'tensor map')}" if maps[1:] else f"a box of {maps[0]}"
            return f"unknown: the bytes of copies in {name} are not known, without {boxes}"
        case Verdict.UNKNOWN:
            return f"unknown: neither proved nor refuted when {limit_words(report)}"
        case _:
            assert_never(report.verdict)


def _fails_words(report: CheckReport, *, shown: bool) -> str:
    name = report.heading.protocol
    fails = f"a schedule of {name} fails" if report.quick or not shown else f"{name} fails in the schedule above"
    if report.conclusion is Conclusion.UNKNOWN:
        fails = f"not all CTAs and sizes of {name} are proved or refuted"
    return f"{fails}{_not_read_words(report.heading.coverage.stopped)}"


def _rest_words(report: CheckReport) -> str:
    """What else than findings that do not fail the check was found, and looked for."""
    looked = "; --quick looks for the first of each kind" if report.quick else _corrected_words(report)
    stopped = _not_read_words(report.heading.coverage.stopped)
    return f"nothing else was found in {report.heading.protocol}{looked}{stopped}"


def _some_words(report: CheckReport) -> str:
    """What was looked at of all CTAs, or of all contents of free arrays."""
    done = sum(each.ctas for each in report.kinds)
    if report.how is How.SOME_CTAS and done:
        return f"{number(done)} CTAs, and the others are of more kinds than were looked at"
    more = f"whether there are others depends on {report.open_word} in too many ways"
    said = more if report.open_word else "there are more than were looked at"
    return f"{count(max(len(report.kinds), 1), 'kind')} of CTAs and contents, and {said}"


def _corrected_words(report: CheckReport) -> str:
    """A waived finding hides nothing where one change is known with which all is proved."""
    if sum(each.verdict is Verdict.REFUTED for each in report.kinds) > 1:
        return f"; what findings hide in other CTAs than {ctas_words(report.scope)} was not looked for"
    known = next((each for shown in report.refutations if shown.after is None for each in shown.corrections), None)
    return f"; it is proved with this change: {known.said}" if known is not None else ""


_MOST_NAMED = 3


def _not_read_words(stopped: tuple[str, ...]) -> str:
    """Which warps continue beyond what was read, without the reasons, which the coverage gives."""
    places = [": ".join(each.split(": ")[:2]).replace(": not followed beyond", " beyond") for each in stopped]
    more = f"; and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"; not read: {'; '.join(places[:_MOST_NAMED])}{more}" if places else ""


def limit_words(report: CheckReport) -> str:
    """What ended an unknown check: the limit of the search, or one of the process."""
    return "the search reached its limit" if report.cut is None else f"the {report.cut.value} was reached"


def kinds_words(report: CheckReport) -> list[str]:
    """``63 like CTA 0 proved``, ``CTA 63 refuted (blockIdx.x > 62 at kernel.cu:55)``: kinds of CTAs, if several."""
    return [kind_words(each, each.verdict.value) for each in report.kinds]


def kind_words(each: CtaKindVerdict | CtaKindParts, verdict: str = "") -> str:
    """``63 like CTA 0 proved``, ``CTA 63 refuted (blockIdx.x > 62 at kernel.cu:55)``."""
    who = f"CTA {number(each.cta)}" if each.ctas <= 1 else f"{number(each.ctas)} like CTA {number(each.cta)}"
    who += f" with {values_words(each.contents)}" if each.contents else ""
    why = " at ".join(filter(None, (each.differs, place(each.line))))
    return " ".join(filter(None, (who, verdict, f"({why})" if why else "")))


def how_words(report: CheckReport) -> str:
    """What the verdict rests on."""
    if report.how is not None:
        return report.how.value
    return f"one schedule of {count(report.replayed or 0, 'move')}"


def left_out_words(report: CheckReport) -> list[str]:
    """The steps that did not finish, or that none but the verdict was asked for."""
    if report.quick:
        return ["everything but the verdict: not asked for"]
    return [step_left_out(each) for each in report.left_out]


def step_left_out(cut: LeftOut | CutStep) -> str:
    """A step that did not finish, why, and after how much of it: ``other sizes: time limit after 12 tried``."""
    tried = f" after {cut.done:,} tried" if cut.done else ""
    return f"{cut.step.value}: {cut.why.value}" + (f" after {cut.done:,} of {cut.of:,}" if cut.of else tried)


def why_not_every(found: ProvedRange) -> str:
    """Why a trip count is not proved for every value, and at which it is not; "" if it is."""
    if found.refuted is not None:
        return f"it fails at {number(found.fails)} ({found.refuted.name.lower().replace('_', ' ')})"
    at = f"at {number(found.fails)} " if found.fails >= 0 else ""
    return f"{at}{found.why.value}" if found.why is not None else ""


def walk_sentence(report: WalkReport) -> str:
    """What is wrong where one schedule ends."""
    if not report.findings:
        ended = "every agent has finished" if report.ended else "not every agent has finished"
        return f"no finding at the end of this schedule: {ended}"
    kind = "a deadlock" if isinstance(report.findings[0], Deadlock) else "a fault"
    return f"the schedule ends in {kind}"


MOST_CELLS = 200  #: of a sentence, which are two lines
MOST_NAMED = 3  #: groups of barriers
_LONGEST_NAMES = 100  #: characters of several


def scope_words(report: CheckReport) -> str:
    """``for CTA 0 of 2, at these parameters; assuming that ... (--strict-lanes, 1); not judged: ...``."""
    return "; ".join(_part_words(name, said) for name, said in scope_parts(report).items())


def scope_parts(report: CheckReport) -> dict[str, str]:
    """The parts by their names: three, and what is said of global memory."""
    return {name: _joined(name, clauses) for name, clauses in _clauses(report).items()}


def is_short(sentence: str, first: str = "", rest: str | None = None) -> bool:
    """Whether a sentence fits two lines of 100 cells."""
    return len(wrap(sentence, MOST_CELLS // 2, first, rest)) <= 2


def scope_lines(sentence: str, glue: str, report: CheckReport, width: int, first: str) -> list[str]:
    """A sentence and the scope after it. What is too long for one sentence has a line for each part or clause."""
    if is_short(whole := f"{sentence}{glue}{scope_words(report)}", first):
        return wrap(whole, width, first)
    indent = " " * cell_len(first)
    lines: list[str] = []
    clauses = re.split(r"(?<=;) ", sentence) if cell_len(sentence) > MOST_CELLS else [sentence]
    for clause in clauses:
        lines += wrap(clause, width, indent if lines else first, f"{indent}  " if lines else None)
    for name, said in _clauses(report).items():
        together = _part_words(name, _joined(name, said))
        short = is_short(together, indent, f"{indent}  ") or not said[1:]
        lines += wrap(together if short else name, width, indent, f"{indent}  ")
        for clause in [] if short else said:
            lines += wrap(clause, width, f"{indent}  ", f"{indent}    ")
    return lines


def _clauses(report: CheckReport) -> dict[str, list[str]]:
    """The parts with what each says."""
    sizes = sizes_words(report.ranges, report.together)
    sizes = f"{sizes}{_not_both(report.together)}" if sizes else "at these parameters"
    return {
        "for": [
            ctas_words(report.scope),
            sizes,
            *_contents(report.scope),
            *_policies(report.scope, {each.parameter for each in report.ranges}),
            *_together(report.scope),
        ],
        **({"global memory": _on_global(report.scope)} if report.scope.on_global else {}),
        "assuming": _assuming(report.scope) or ["nothing"],
        "not judged": _not_judged(report.scope) or ["nothing"],
    }


def _not_judged(scope: VerdictScope) -> list[str]:
    """The reason of several kinds once: ``66 stores to global memory and 13 loads of global memory (the reason)``."""
    kinds: dict[str, list[NotJudged]] = {}
    for each in scope.not_judged:
        kinds.setdefault(_few(each.names) or each.kind.name, []).append(each)
    return [
        listed([*(not_judged_words(replace(each, names=())) for each in some[:-1]), not_judged_words(some[-1])])
        for some in kinds.values()
    ]


def _on_global(scope: VerdictScope) -> list[str]:
    """``disjoint across 4,096 CTAs or ordered by these words, but for what is not judged``."""
    ordered = " or ordered by these words" if scope.words else ""
    rest = ", but for what is not judged" if any(each.kind in ON_GLOBAL for each in scope.not_judged) else ""
    return [f"{each}{ordered}{rest}" for each in scope.on_global]


def _contents(scope: VerdictScope) -> list[str]:
    """``for all contents of lens (0 to 512 in steps of 64)``: what elements of free arrays may hold."""
    said = [
        f"{name} ({low:,} to {high:,}{f' in steps of {step:,}' if step > 1 else ''})"
        for name, (low, high, step) in scope.contents.items()
    ]
    return [f"for all contents of {listed(said)}"] if said else []


def _policies(scope: VerdictScope, free: Collection[str]) -> list[str]:
    """``with launch_control 0 to 4, whichever tiles these are``: what other CTAs decided, but what is said as free."""
    said = [_policy(name, values) for name, values in scope.policies.items() if name not in free]
    up_to = f" up to {scope.any_tiles}" if scope.any_tiles is not None and scope.any_tiles > 0 else ""
    tiles = [f"whichever tiles these are{up_to}"] if scope.any_tiles else []
    return [f"with {listed(said)}", *tiles] if said else tiles


def _together(scope: VerdictScope) -> list[str]:
    """``with 2, 3 and 4 CTAs that talk by flags[0], at which all 132 CTAs meet``, or ``, not all 132 of the grid``."""
    if not scope.together:
        return []
    many = listed(list(map(str, scope.together)))
    meet = f", not all {scope.grid:,} of the grid" if scope.together[-1] < scope.grid else ""
    meet = f", at which all {scope.grid:,} CTAs meet" if scope.meet else meet
    meet += f", and those of any gridDim.x up to {scope.any_ctas:,}" if scope.any_ctas else ""
    return [f"with {many} CTA{'s' if scope.together != (1,) else ''} that talk by {_few(scope.words)}{meet}"]


def _policy(name: str, values: Sequence[int]) -> str:
    """``launch_control 0 to 4``, ``2 CTAs together``, ``atomics by CTAs 1 and 0 first``."""
    if name == "together":
        return f"{values[0]} CTAs together"
    if name == "resident":
        return f"{values[0]} of them at a time"
    if name == "turns":
        return f"atomics first by CTAs {listed([str(int(digit) - 1) for digit in str(values[0])])}"
    return f"{name} {_values_of(values)}"


def _values_of(values: Sequence[int]) -> str:
    """``0, 1 and 4``, ``0 to 4``, ``8 to 72 in steps of 8``."""
    step = values[1] - values[0] if len(values) > _MOST_NAMED else 0
    if not step or tuple(values) != tuple(range(values[0], values[-1] + 1, step)):
        return listed(list(map(str, values)))
    return f"{values[0]} to {values[-1]}{f' in steps of {step}' if step > 1 else ''}"


def _joined(name: str, clauses: Sequence[str]) -> str:
    return listed(clauses) if name == "assuming" else ", ".join(clauses)


def _part_words(name: str, said: str) -> str:
    return f"{name}{'' if name in ('for', 'assuming') else ':'} {said}"


def _not_both(together: ProvedTogether | None) -> str:
    if together is None or not together.fails:
        return ""
    return f" but not of {'both' if len(together.parameters) == 2 else 'all'}: {together_words(together)}"


def together_words(together: ProvedTogether) -> str:
    """What became of small values of several trip counts together, or of all."""
    if together.every:
        return f"every combination of {listed([values_of_word(each) for each in together.every])}"
    if not together.fails:
        return f"{count(together.tried, 'combination')} of small values checked individually"
    return f"{'it fails' if together.refuted else 'not proved'} at {values_words(together.fails)}"


def values_words(values: Mapping[str, int]) -> str:
    """``tiles 2, k_iters 1``."""
    return ", ".join(f"{name} {value:,}" for name, value in values.items())


def ctas_words(scope: VerdictScope) -> str:
    """``every CTA``, ``CTA 0 of 2``, ``CTAs 0 to 1 of 8``: what was followed."""
    if not scope.ctas:
        return "every CTA"
    first, last = scope.ctas[0], scope.ctas[-1]
    if len(scope.ctas) == 1:
        return f"CTA {number(first)} of {number(scope.grid)}"
    run = last - first + 1 == len(scope.ctas)
    return f"CTAs {f'{first} to {last}' if run else ', '.join(map(str, scope.ctas))} of {number(scope.grid)}"


def sizes_words(ranges: Sequence[ProvedRange], together: ProvedTogether | None = None) -> str:
    """``for any number of tiles (k_iters 16) or of k_iters (tiles 2)``: the sizes of a proof, "" if only one.

    Of words of a kernel ``for every n from 64 to 4,096 in steps of 64``, of several ``with every k from 1 to 8``
    or ``or for every k from 1 to 8, one of them at a time``.
    """
    if together is not None and together.every:
        return f"for {' with '.join(f'every {values_of_word(each)}' for each in together.every)}"
    free = [f"{each.parameter}{_other_values(each)}" for each in ranges if each.lap and not each.step]
    words = [values_of_word(each) for each in ranges if each.step and each.is_every]
    some = [f"{_values_to(each, each.last)}, no further value" for each in ranges if each.step and not each.is_every]
    if words or some:
        alone = ", one of them at a time" if len(ranges) > 1 else ""
        return " or ".join((*(f"for every {each}" for each in words), *(f"for {each}" for each in some))) + alone
    return f"for any number of {' or of '.join(free)}" if free else ""


def values_of_word(each: ProvedRange) -> str:
    """``n from 64 to 4,096 in steps of 64``."""
    return _values_to(each, each.most)


_TILES = {"launch_control", "tile_counter"}  #: the policies that are also words


def nearby_words(report: CheckReport) -> str:
    """``the same for n from 3,969 to 4,096 or any lda, but for global memory; --any n asks for others``: each alone."""
    decide = sorted((each for each in report.nearby if not each.is_every), key=lambda each: -each.most)
    some = [_values_to(each, each.most) for each in report.nearby if not each.is_every and each.least < each.most]
    every = [_word(each) for each in report.nearby if each.is_every]
    more = count(len(every), "other word" if some else "word")
    any_ = [f"any value of {listed(every) if len(every) <= MOST_NAMED else more}"] if every else []
    rest = ", but for global memory" if report.scope.on_global or report.scope.not_judged else ""
    same = f"the same for {' or '.join((*some, *any_))}{rest}" if some or any_ else "those of the launch"
    words = [_word(each) for each in decide[:MOST_NAMED]]
    words += sorted((report.scope.policies.keys() & _TILES) - {each.parameter for each in report.ranges})
    others = " or ".join(f"--any {each}" for each in words)
    return f"{same}; {others} asks for others" if words and report.verdict is Verdict.PROVED else same


def _word(each: ProvedRange | NearbyValues) -> str:
    if each.parameter == "tile_counter" and isinstance(each, ProvedRange):
        return "number of the counter's tiles"
    return f"params+{each.parameter}" if each.parameter.isdecimal() else each.parameter


def _values_to(each: ProvedRange | NearbyValues, last: int) -> str:
    steps = f" in steps of {number(each.step)}" if each.step > 1 else ""
    return f"{_word(each)} from {number(each.least)} to {number(last)}{steps}"


def _other_values(each: ProvedRange) -> str:
    return f" ({values_words(each.others)})" if each.others else ""


def _assuming(scope: VerdictScope) -> list[str]:
    """``that ... (--strict-proxies, 2)``: each assumption, its switch and at how many places."""
    made = scope.counted().items()
    return [f"that {ASSUMPTIONS[kind].clause} ({kind.switch}, {number(places)})" for kind, places in made]


def assumptions_counted(scope: VerdictScope) -> tuple[AssumptionCount, ...]:
    """The same as data."""
    made = scope.counted().items()
    return tuple(AssumptionCount(kind.value, kind.switch, n, ASSUMPTIONS[kind].clause) for kind, n in made)


def not_judged_words(each: NotJudged) -> str:
    """``6 loads of global memory``, ``1 barrier that completes ... (acc_empty)``."""
    what = each.kind.one if each.count == 1 else each.kind.value
    return (f"{number(each.count)} {what}" if each.count else what) + (f" ({_few(each.names)})" if each.names else "")


def _few(names: Sequence[str]) -> str:
    """``full[0..3], done and 2 more``, ``k.cu:3 and k.cu:5: the reason of both``."""
    reasons: dict[str, list[str]] = {}
    for each in names:
        name, _, why = each.partition(": ")
        reasons.setdefault(why, []).append(name)
    return "; ".join(": ".join(filter(None, (_first_few(some), why))) for why, some in reasons.items())


def _first_few(names: Sequence[str]) -> str:
    """The stages of a group together."""
    groups: dict[str, list[int]] = {}
    for each in names:
        group, _, stage = each.removesuffix("]").rpartition("[")
        numbered = group and stage.isdecimal()
        groups.setdefault(group if numbered else each, []).extend([int(stage)] if numbered else [])
    said = [
        f"{group}[{number_runs(stages).replace(' to ', '..')}]" if stages else group for group, stages in groups.items()
    ]
    most = next(n for n in range(MOST_NAMED, 0, -1) if n == 1 or sum(map(len, said[:n])) <= _LONGEST_NAMES)
    return listed(with_lines_together(said[:most], max(len(said) - most, 0)))


def assumed_line(each: Assumed) -> str:
    """One place where something is assumed, as a line of a report."""
    at_place = each.kind is Assumption.LANES and not each.lines
    said = f"lanes that parted are together again at {each.what}" if at_place else each.what
    lines = with_lines_together(list(dict.fromkeys(map(place, filter(None, each.lines)))))
    return said + (f" ({', '.join(lines)})" if lines else "")
