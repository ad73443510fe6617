"""A protocol for every schedule: the verdict, and what is wrong at the smallest sizes that show it.

Between the proof, which sees flat programs only, and those who ask: the command line, Python and pytest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from pipesim.answers.any_size import Families, Together, building, trip_counts
from pipesim.answers.counterexample import MOST_TRIES, counterexample_of, counterexamples, refuted_at
from pipesim.answers.views.check import CheckReport, ProvedRange, ProvedTogether, WalkReport
from pipesim.answers.views.heading import heading
from pipesim.explain.cp_async_count import advisories as cp_async_count
from pipesim.explain.register_requests import advisories as register_requests
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Verdict
from pipesim.model.program import Program
from pipesim.prove.any_size.family import EveryValue, SomeValues
from pipesim.prove.check import MOST_STATES, Check, How
from pipesim.prove.check import check as prove
from pipesim.prove.counterexample.activity import activity
from pipesim.prove.counterexample.confirm import carried, refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.counterexample.replay_text import walk
from pipesim.prove.counterexample.words import doubt_line
from pipesim.prove.memory_order.faults import memory_fault_of
from pipesim.prove.memory_order.may_fail import advisories
from pipesim.prove.optional_rules import advisories as noted_rules
from pipesim.prove.optional_rules import rests_on_reads
from pipesim.prove.refutation import Refutation
from pipesim.prove.search.leftovers import advisories as left_over
from pipesim.prove.search.leftovers import leftovers
from pipesim.targets import Target

EVERY_RANGE = 1 << 10
_MOST_LEFT = 20_000  #: operations of a program that is run once more for what it leaves


def check(
    target: Target,
    params: Mapping[str, int],
    *,
    max_states: int = MOST_STATES,
    ctas: int | None = None,
    most_ranges: int = EVERY_RANGE,
    program: Program | None = None,
) -> CheckReport:
    """The verdict for every schedule on the program that ``target`` makes of these parameters and CTAs of the launch.

    ``max_states`` are searched where one run does not decide. ``most_ranges``: trip counts of which every value is
    looked at; the others keep their values. ``program``: the target's, where it has been made already. Raises as
    ``Target.build`` does.
    """
    program = target.build(params, grid=ctas) if program is None else program
    families = Families(target, params, program)
    found = prove(program, max_states)
    if found.verdict is Verdict.UNKNOWN:
        found = _by_smaller(target, dict(params), program, found)
    looked_at = families.ranges(most_ranges) if found.verdict is Verdict.PROVED else ()
    wrong, also = counterexamples(target, dict(params), program, found, ctas)
    return CheckReport(
        heading=heading(program),
        verdict=found.verdict,
        how=found.how,
        operations=found.operations,
        phases=found.phases,
        states=found.states,
        doubts=tuple(doubt_line(program, doubt) for doubt in found.doubts),
        refutations=wrong,
        ranges=tuple(_range(target, params, program, each) for each in looked_at),
        together=_together(target, params, families.together(looked_at)),
        advisories=_advisories(program, found),
        also=also,
        assumed_registers=_assumed_registers(program),
        assumed_reads=found.verdict is Verdict.PROVED and _assumed_reads(target, params, program, found, looked_at),
    )


def _assumed_registers(program: Program) -> int:
    pools = program.register_pools
    return 0 if pools is None or pools.is_known else pools.launched


def _assumed_reads(
    target: Target,
    params: Mapping[str, int],
    program: Program,
    found: Check,
    ranges: Sequence[EveryValue | SomeValues],
) -> bool:
    """Of the program, or of one of a size that is claimed, too."""
    larger = [building(target, params, each.parameter)(each.checked) for each in ranges if isinstance(each, EveryValue)]
    by_search = found.how is How.SEARCH
    return any(rests_on_reads(each, by_search=by_search) for each in (program, *larger) if each is not None)


def replay(program: Program, text: str) -> CheckReport:
    """The verdict on one schedule. ParameterError for a move that is not possible in its state."""
    play = walk(program, text)
    found = _wrong(program, play)
    return CheckReport(
        heading=heading(program),
        verdict=Verdict.UNKNOWN if found is None else Verdict.REFUTED,
        how=None,
        operations=sum(map(len, program.code)),
        phases=0,
        states=0,
        doubts=(),
        refutations=(counterexample_of(program, found),) if found is not None else (),
        replayed=len(play.moves),
    )


def walked(program: Program, text: str) -> WalkReport:
    """One schedule as a timeline. ParameterError for a move that is not possible in its state."""
    play = walk(program, text)
    moves, spans = len(play.moves), activity(program, tuple(play.moves))
    found = _wrong(program, play)
    names = tuple(program.agent_name(agent) for agent in range(len(program.agents)))
    findings = (counterexample_of(program, found).finding,) if found is not None else ()
    return WalkReport(heading(program), moves, names, spans, findings, play.ended)


def _advisories(program: Program, found: Check) -> tuple[Advisory, ...]:
    """What breaks no rule and may not be meant: arrives without a scope, and what is left at the end."""
    left = leftovers(program) if found.verdict is Verdict.PROVED and found.operations <= _MOST_LEFT else ()
    of_rules = noted_rules(program) if found.verdict is Verdict.PROVED else ()
    own = advisories(program) + of_rules + register_requests(program) + cp_async_count(program)
    return own + left_over(program, left)


def _by_smaller(target: Target, params: dict[str, int], program: Program, found: Check) -> Check:
    """A fault of a smaller size, if its schedule goes wrong at this one, too; else what is known already."""
    for name in trip_counts(target, params, program):
        asked = params.get(name, target.defaults[name])
        for value in range(min(asked, MOST_TRIES)):
            smaller = refuted_at(target, params | {name: value}, None)
            if smaller is not None:
                shown = [carried(program, each.schedule) for each in smaller[1].refutations]
                wrong = tuple(each for each in shown if each is not None)
                if wrong:
                    return replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=wrong)
    return found


def _wrong(program: Program, play: Play) -> Refutation | None:
    """The finding at the end of a play, including the memory order of its last access."""
    found = refutation(play)
    if found is None and (unordered := memory_fault_of(program, play.moves)) is not None:
        return Refutation(Ending.FAULT, tuple(play.moves), unordered)
    return found


def _range(
    target: Target, params: Mapping[str, int], program: Program, shown: EveryValue | SomeValues
) -> ProvedRange:  # fmt: skip
    match shown:
        case EveryValue(parameter, least, first, lap, checked, far):
            others = tuple(name for name in trip_counts(target, params, program) if name != parameter)
            kept = {name: params.get(name, target.defaults[name]) for name in others}
            return ProvedRange(parameter, least, checked, first, lap, far=far, others=kept)
        case SomeValues(parameter, least, checked, fails, why):
            wrong = fails >= 0 and refuted_at(target, {**params, parameter: fails}, None) is not None
            return ProvedRange(parameter, least, checked, fails=fails, why=why, refuted=wrong)
        case _:
            assert_never(shown)


def _together(target: Target, params: Mapping[str, int], shown: Together | None) -> ProvedTogether | None:
    if shown is None:
        return None
    wrong = bool(shown.fails) and refuted_at(target, {**params, **shown.fails}, None) is not None
    return ProvedTogether(shown.parameters, shown.tried, shown.fails, refuted=wrong)
