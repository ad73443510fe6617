"""The end of every verdict: for what it holds, what it assumes, and what is not judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipesim.answers.views.check import CheckReport, ProvedRange, ProvedTogether
from pipesim.answers.views.scope import AssumptionCount, VerdictScope
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.assumptions import Assumption
from pipesim.model.coverage import Assumed, NotJudged
from pipesim.report.text.words import count, number, place


def scope_words(report: CheckReport) -> str:
    """``for CTA 0 of 2, at these parameters; assuming that ... (--strict-lanes, 1); not judged: ...``."""
    (_, what), (_, assuming), (_, not_judged) = scope_parts(report)
    return f"for {what}; assuming {assuming}; not judged: {not_judged}"


def scope_parts(report: CheckReport) -> tuple[tuple[str, str], tuple[str, str], tuple[str, str]]:
    """The three parts, each with its name."""
    scope = report.scope
    not_judged = ", ".join(map(not_judged_words, scope.not_judged)) or "nothing"
    return ("for", _for_what(report)), ("assuming", _assuming(scope)), ("not judged", not_judged)


def _for_what(report: CheckReport) -> str:
    sizes = sizes_words(report.ranges)
    sizes = f"{sizes}{_not_both(report.together)}" if sizes else "at these parameters"
    return f"{ctas_words(report.scope)}, {sizes}"


def _not_both(together: ProvedTogether | None) -> str:
    if together is None or not together.fails:
        return ""
    return f" but not of {'both' if len(together.parameters) == 2 else 'all'}: {together_words(together)}"


def together_words(together: ProvedTogether) -> str:
    """What became of small values of several trip counts together."""
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


def sizes_words(ranges: Sequence[ProvedRange]) -> str:
    """``for any number of tiles (k_iters 16) or of k_iters (tiles 2)``: the sizes of a proof, "" if only one."""
    free = [f"{each.parameter}{_other_values(each)}" for each in ranges if each.lap]
    return f"for any number of {' or of '.join(free)}" if free else ""


def _other_values(each: ProvedRange) -> str:
    return f" ({values_words(each.others)})" if each.others else ""


def _assuming(scope: VerdictScope) -> str:
    """``that ... (--strict-proxies, 2) and that ...``: each assumption, its switch and at how many places."""
    made = scope.counted()
    if not made:
        return "nothing"
    clauses = [f"that {ASSUMPTIONS[kind].clause} ({kind.switch}, {number(places)})" for kind, places in made.items()]
    return f"{', '.join(clauses[:-1])}{' and ' if clauses[1:] else ''}{clauses[-1]}"


def assumptions_counted(scope: VerdictScope) -> tuple[AssumptionCount, ...]:
    """The same as data."""
    made = scope.counted().items()
    return tuple(AssumptionCount(kind.value, kind.switch, n, ASSUMPTIONS[kind].clause) for kind, n in made)


def not_judged_words(each: NotJudged) -> str:
    """``6 loads of global memory``, ``1 barrier that ... (acc_empty)``."""
    what, several = each.kind.value, each.count != 1
    if each.count:
        noun, space, rest = what.partition(" ")
        noun = noun if several else {"copies": "copy"}.get(noun, noun.removesuffix("s"))
        what = f"{number(each.count)} {noun}{space}{rest if several else rest.replace(' were ', ' was ')}"
    return what + (f" ({', '.join(each.names)})" if each.names else "")


def assumed_line(each: Assumed) -> str:
    """One place where something is assumed, as a line of a report."""
    at_place = each.kind is Assumption.LANES and not each.lines
    said = f"lanes that parted are together again at {each.what}" if at_place else each.what
    lines = list(dict.fromkeys(map(place, filter(None, each.lines))))
    return said + (f" ({', '.join(lines)})" if lines else "")
