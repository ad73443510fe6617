"""Advice: the protocol is simulated as it is, then with each change, and the changes are sorted by what they gain."""

from __future__ import annotations

from collections.abc import Mapping

from pipesim.answers.advise.changes import Variant, changes
from pipesim.answers.progress import SILENT, Progress
from pipesim.answers.sweep.measure import MOST_STATES, MOST_STEPS, proof, resources_of, simulate_once, why_not
from pipesim.answers.sweep.rank import value_of
from pipesim.answers.views.advise import Advice, AdviseReport
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.sweep import Metric, Outcome, Times
from pipesim.errors import ParameterError
from pipesim.model.finding import Verdict
from pipesim.targets import Target
from pipesim.timed.profile import Profile

PERCENT = 20  #: by how much times are changed, unless a person asks for another amount
_STATES = {Verdict.PROVED: Outcome.USABLE, Verdict.REFUTED: Outcome.REFUTED, Verdict.UNKNOWN: Outcome.UNDECIDED}


def advise(
    target: Target,
    params: Mapping[str, int],
    profile: Profile,
    *,
    ctas: int | None = None,
    percent: int = PERCENT,
    max_states: int = MOST_STATES,
    max_steps: int = MOST_STEPS,
    progress: Progress = SILENT,
) -> AdviseReport:
    """What limits the protocol with these parameters, and what each change would bring.

    A protocol that is refuted or does not finish gets no advice. ParameterError for a percentage outside of 1 to 90.
    """
    if not 1 <= percent <= 90:
        raise ParameterError(f"a change of {percent} %", correction="give 1 to 90")
    target = target.timed()
    program = target.build(params, grid=ctas)
    found = proof(program, max_states)
    before = simulate_once(program, profile, max_steps)
    metric = Metric.RUN if before.times is None or before.times.period_millicycles is None else Metric.PERIOD
    advice: list[Advice] = []
    if before.times is not None and found.verdict is not Verdict.REFUTED:
        tried = list(changes(target, params, ctas, program, profile, percent))
        with progress.configurations(program.name, len(tried)) as step:
            for n, each in enumerate(tried, 1):
                advice.append(_advice(each, before.times, metric, found.verdict, max_states, max_steps))
                step(n, len(tried))
    return AdviseReport(
        heading=heading(program),
        profile=profile.name,
        device=profile.device,
        percent=percent,
        verdict=found.verdict,
        resources=resources_of(program),
        metric=metric,
        times=before.times,
        value=0 if before.times is None else value_of(before.times, metric, None) or 0,
        advice=tuple(sorted(advice, key=_gain)),
        why=why_not(found) or before.why,
        assumed=profile.assumed,
    )


def _gain(each: Advice) -> tuple[int, int]:
    """The largest gain first; what could not be tried last."""
    return (1, 0) if each.gain_permille is None else (0, -each.gain_permille)


def _advice(each: Variant, before: Times, metric: Metric, verdict: Verdict, max_states: int, max_steps: int) -> Advice:
    if each.refused:
        return Advice(each.change, Outcome.REFUSED, each.refused)
    resources = resources_of(each.program)
    why = ""
    if not each.same_operations:
        found = proof(each.program, max_states)
        verdict, why = found.verdict, why_not(found)
    if verdict is Verdict.REFUTED:
        return Advice(each.change, Outcome.REFUTED, why, verdict, resources)
    ran = simulate_once(each.program, each.profile, max_steps)
    if ran.times is None:
        return Advice(each.change, Outcome.UNFINISHED if ran.why else Outcome.CUT, ran.why, verdict, resources)
    metric = _common(before, ran.times, metric)
    was, value = value_of(before, metric, None), value_of(ran.times, metric, None)
    same_work = each.same_operations or (ran.times.work, ran.times.unit) == (before.work, before.unit)
    gain = round(1000 * (was - value) / was) if was and value is not None and same_work else None
    return Advice(each.change, _STATES[verdict], why, verdict, resources, ran.times, value, gain, metric)


def _common(before: Times, after: Times, metric: Metric) -> Metric:
    """By what both are compared: the whole run where the period of the second is not known, or of another loop."""
    known = after.period_millicycles is not None and after.iterations == before.iterations
    return metric if known else Metric.RUN
