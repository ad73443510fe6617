"""The report of a check: what is known, and how far it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from pipesim.answers.checking.state import NO_VERDICT, CheckState
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.global_memory.grid_memory import ORDER
from pipesim.answers.views.check import CheckReport, Counterexample, LeftOut
from pipesim.answers.views.conclusion import VerdictScope, heading, scope_of
from pipesim.findings.catalog import looked_for
from pipesim.model.coverage import ON_GLOBAL, NotJudged, NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.prove.counterexample.words import doubt_line


def report_of(state: CheckState, wrong: Iterable[Counterexample], left_out: tuple[LeftOut, ...]) -> CheckReport:
    """All that is known now, with these findings and steps left out."""
    asked, found = state.asked, state.found
    assert found is not None, "there is a verdict"
    return CheckReport(
        heading=heading(asked.program),
        verdict=found.verdict,
        how=found.how,
        operations=found.operations,
        phases=found.phases,
        states=found.states,
        doubts=tuple(doubt_line(asked.program, doubt) for doubt in found.doubts),
        refutations=tuple(wrong),
        ranges=tuple(state.ranges),
        together=state.together,
        nearby=state.nearby,
        advisories=() if found.how in NO_VERDICT else looked_for(asked.program) + state.left,
        also=state.failures.also,
        left_out=left_out,
        scope=_scope(state),
        kinds=() if state.size else state.others.kinds(),
        undecided=state.others.undecided or bool(asked.any_words and found.refutations) or _some_values(state),
        open_word=state.others.open_word,
        cut=state.cut,
    )


def _is_left_open(state: CheckState, each: NotJudged) -> bool:
    """Whether it is also not judged where all CTAs of the grid are followed together."""
    talk, kernel = state.others.together, state.asked.target.kernel
    followed = talk.sizes[-1] if talk.sizes and not talk.not_judged else 0
    whole = kernel is not None and followed >= prod(kernel.kernel.launch.grid)
    return not (whole and each.kind in ON_GLOBAL and all(name.endswith(ORDER) for name in each.names))


def _some_values(state: CheckState) -> bool:
    """Whether every value of a word was asked for, and only some are proved."""
    found = {each.parameter: each for each in state.ranges}

    def is_answered(word: AnyWord) -> bool:
        shown = found.get(word.name)
        if shown is None:
            return False
        return shown.is_every or (word.high is not None and shown.least <= word.low <= word.high <= shown.last)

    proved = state.found is not None and state.found.verdict is Verdict.PROVED
    return proved and not all(map(is_answered, state.asked.any_words))


def _scope(state: CheckState) -> VerdictScope:
    proved = state.found is not None and state.found.verdict is Verdict.PROVED
    one_size = proved and not (state.ranges and all(each.is_every for each in state.ranges))
    every = proved and state.others.complete
    policies = state.others.checked_with
    scope = scope_of(state.asked.program, state.assumed, policies, one_size=one_size, every_cta=every)
    program = state.asked.program
    if program.words_cta >= 0 and state.asked.target.kernel is None:
        names = dict.fromkeys(each.name for n, each in enumerate(program.barriers) if program.is_word(n))
        return replace(scope, together=(program.words_cta,), words=tuple(names))
    if not proved:
        return scope
    talk = state.others.together
    judged = talk.loops if talk.sizes and not talk.why_not else set()
    others = state.ranges or state.others.contents or state.asked.any_words
    more = state.asked.target.kernel is not None and bool(others)
    sizes = " at the size of the launch file" if more else ""
    open_sizes = [NotJudged(NotJudgedKind.OTHER_SIZES, 0)] if more and (scope.on_global or state.talk) else []
    return replace(
        scope,
        contents={} if state.talk else state.others.contents,
        any_tiles=state.others.any_tiles,
        together=tuple(talk.sizes),
        words=tuple(talk.words),
        meet=talk.meet,
        on_global=tuple(f"{each}{sizes}" for each in scope.on_global),
        assuming=(*(each for each in scope.assuming if each.what not in judged), *talk.assumed),
        not_judged=(*filter(lambda each: _is_left_open(state, each), scope.not_judged), *talk.not_judged, *open_sizes),
    )
