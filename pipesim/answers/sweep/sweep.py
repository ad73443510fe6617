"""A sweep: every configuration proved and simulated, on this machine's processors or on a cluster, then ranked."""

import hashlib
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from pipesim.answers.progress import SILENT, Progress
from pipesim.answers.spread import spread
from pipesim.answers.sweep.configuration import (
    Params,
    Question,
    SweepAnswer,
    SweepPart,
    axes_of,
    carry_out,
    configurations,
    evaluate,
    failed_answer,
)
from pipesim.answers.sweep.measure import MOST_STATES, MOST_STEPS
from pipesim.answers.sweep.results_file import ResultsFile
from pipesim.answers.verify import Subject
from pipesim.answers.views.sweep import (
    Comparable,
    Configuration,
    Metric,
    Outcome,
    RankedConfiguration,
    SweepReport,
    Times,
    WorkUnit,
)
from pipesim.errors import ClusterLostError, ParameterError, PipesimError
from pipesim.model.coverage import switches
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target, require_grid
from pipesim.timed.profile import PROFILE_VERSION, Profile, load_profile, profile_names
from pipesim.version import __version__

WITHIN_PERMILLE = 10  #: of the best: what counts as nearly as good


#: The metric where none was chosen: the first of period, run and throughput that can be compared.
METRIC = {
    Comparable.PERIODS: Metric.PERIOD,
    Comparable.NOT_STEADY: Metric.RUN,
    Comparable.OTHER_ITERATIONS: Metric.RUN,
    Comparable.OTHER_WORK: Metric.THROUGHPUT,
    Comparable.NO_WORK: Metric.RUN,
}


def comparable(configurations: Iterable[Configuration]) -> Comparable:
    """What the usable ones have in common.

    Cycles of a run can be compared where all do the same work, and cycles an iteration where that work is the same in
    an iteration as well: of two kernels, one of which takes two tiles in an iteration, its period says nothing.
    """
    times = [each.times for each in configurations if each.usable and each.times is not None]
    if len({(each.work, each.unit) for each in times}) > 1:
        return Comparable.OTHER_WORK
    steady = all(each.period_millicycles is not None for each in times)
    if steady and len({each.iterations for each in times}) <= 1:
        return Comparable.PERIODS
    if times and not any(each.work for each in times):
        return Comparable.NO_WORK
    return Comparable.OTHER_ITERATIONS if steady else Comparable.NOT_STEADY


def unit_for(configurations: Iterable[Configuration]) -> WorkUnit | None:
    """What throughput counts for all of them: bytes if one of them has no matrix multiplication; None of none."""
    units = {each.times.unit for each in configurations if each.usable and each.times is not None}
    return None if not units else WorkUnit.BYTES if WorkUnit.BYTES in units else WorkUnit.MATRIX


def rank(configurations: Sequence[Configuration], metric: Metric) -> tuple[RankedConfiguration, ...]:
    """The usable ones that have a number, the best first; of equally good ones the smallest, then the first given."""
    unit = unit_for(configurations)
    numbers = [
        (value, each)
        for each in configurations
        if each.usable and each.times is not None and (value := value_of(each.times, metric, unit)) is not None
    ]
    higher = metric is Metric.THROUGHPUT
    numbers.sort(key=lambda pair: (-pair[0] if higher else pair[0], *_size(pair[1])))
    return tuple(RankedConfiguration(each, value, _off(value, numbers[0][0], higher=higher)) for value, each in numbers)


def smallest(
    order: Sequence[RankedConfiguration], within_permille: int = WITHIN_PERMILLE
) -> RankedConfiguration | None:
    """Among those this close to the best the one with the least shared memory, then registers, then threads."""
    near = [(off, each) for each in order if (off := each.off_permille) is not None and off <= within_permille]
    return min(near, key=lambda pair: (*_size(pair[1].configuration), pair[0]), default=(0, None))[1]


def value_of(times: Times, metric: Metric, unit: WorkUnit | None) -> int | None:
    """The metric in thousandths of its unit; None where there is no such number."""
    match metric:
        case Metric.PERIOD:
            return times.period_millicycles
        case Metric.RUN:
            return 1000 * times.cycles
        case Metric.THROUGHPUT:
            return 1000 * times.work // times.cycles if times.cycles and times.unit is unit else None


def _off(value: int, best: int, *, higher: bool) -> int | None:
    """How much worse than the best, in thousandths of the time that the best takes; None if that is not a number."""
    if value == best:
        return 0
    more, less = (best, value) if higher else (value, best)
    return round(1000 * more / less) - 1000 if less else None


def _size(configuration: Configuration) -> tuple[int, int, int]:
    return configuration.resources.size if configuration.resources is not None else (0, 0, 0)


OnDone = Callable[[Params, SweepAnswer], None]  #: called with each answer, as soon as there is one


class Workers(Protocol):
    """Processes elsewhere that compute configurations."""

    def compute(self, parts: Sequence[SweepPart], asked: Question, on_done: OnDone) -> None:
        """Compute these, ``on_done`` with each, in any order. ClusterLostError if that ends before the last."""


@dataclass(frozen=True)
class Where:
    """Where a sweep is computed, and where its answers are kept.

    ``jobs``: processes, which can be more than one only where the target has a name that another process finds.
    ``results``: the file of the answers, None to keep none.
    """

    jobs: int = 1
    cluster: Workers | None = None
    results: Path | None = None


@dataclass(frozen=True)
class Sweep:
    """What is swept. ``fixed``: parameters that are not swept; ``axes``: each swept one with its values.

    ``metric``: None to choose one that can be compared (:func:`~pipesim.answers.sweep.sweep.comparable`).
    ``profile_given``: how a command line names the profile, "" if it is an object.
    """

    target: Target
    axes: Mapping[str, Sequence[int]]
    fixed: Mapping[str, int]
    profile: Profile
    ctas: int | None = None
    metric: Metric | None = None
    prove: bool = True
    max_states: int = MOST_STATES
    max_steps: int = MOST_STEPS
    within_permille: int = WITHIN_PERMILLE
    profile_given: str = ""


def sweep(asked: Sweep, where: Where | None = None, progress: Progress = SILENT) -> SweepReport:
    """Prove and simulate every configuration, and rank them.

    What a configuration is refused for is part of the answer. ParameterError for a parameter that the protocol does
    not have or that is given twice; ResultsFileError for a results file that cannot be continued. A time limit, an
    interruption or the loss of the cluster after the first answer ends the sweep with what is known.
    """
    where = where or Where()
    axes = _require(asked)
    every = configurations(axes)
    kept: AbstractContextManager[ResultsFile | None] = nullcontext()
    if where.results is not None:
        kept = ResultsFile(where.results, _question(asked))
    with kept as file:
        known = file.known if file else {}
        new_first = sorted(every, key=known.__contains__)  # a sweep whose time is up again and again gets further
        found, ended = _answers(asked, where, [(params, known.get(params)) for params in new_first], file, progress)
    answers = tuple(
        found[params].configuration if params in found else Configuration(dict(params), Outcome.NOT_REACHED, ended)
        for params in every
    )
    reused = sum(each.reused for each in found.values())
    changed = sum(params in known and not each.reused for params, each in found.items())
    return _report(asked, axes, answers, reused=reused, changed=changed, ended=ended)


def _require(asked: Sweep) -> dict[str, tuple[int, ...]]:
    """The axes, after every name has been checked."""
    axes = axes_of(asked.axes)
    if asked.target.program is not None:
        raise ParameterError(
            f"{asked.target.name} takes no parameters, so that there is nothing to sweep",
            correction="sweep the protocol that makes it",
        )
    if not axes:
        raise ParameterError(
            "no parameter is swept",
            correction=f"give one several values, such as {next(iter(asked.target.defaults), 'n')}=2..8",
        )
    unknown = [name for name in (*axes, *asked.fixed) if name not in asked.target.defaults]
    if unknown:  # the error is that of a call with this parameter
        asked.target.build({unknown[0]: 1})
    require_grid(asked.ctas)
    return axes


def _question(asked: Sweep) -> dict[str, object]:
    """What a results file must agree in: all that the answers depend on, but for the values of the axes.

    The program of each configuration is not among it: every line of the file has a hash of its own program.
    """
    axes = axes_of(asked.axes)
    profile = asked.profile
    numbers = [PROFILE_VERSION, profile.sms, profile.sm_khz, sorted(profile.values.items())]
    return {
        "pipesim": __version__,
        "protocol": asked.target.name,
        "profile": profile.name,
        "profile_values": hashlib.sha256(repr(numbers).encode()).hexdigest(),
        "swept": sorted(axes),
        "fixed": sorted(f"{name}={value}" for name, value in asked.fixed.items()),
        "ctas": asked.ctas,
        "proved": asked.prove,
        "max_states": asked.max_states if asked.prove else None,
        "max_steps": asked.max_steps,
        "strict": list(switches(asked.target.strictness)),
    }


# computing


def _answers(
    asked: Sweep,
    where: Where,
    rest: Sequence[tuple[Params, SweepAnswer | None]],
    file: ResultsFile | None,
    progress: Progress,
) -> tuple[dict[Params, SweepAnswer], str]:
    """The answers of these, each with what the results file has of it, and what ended the sweep ("" if nothing did)."""
    found: dict[Params, SweepAnswer] = {}
    ended = "interrupted"
    question = Question(asked.profile, asked.prove, asked.max_states, asked.max_steps)
    with progress.configurations(asked.target.name, len(rest)) as step:

        def on_done(params: Params, answer: SweepAnswer) -> None:
            found[params] = answer
            if file is not None and not answer.reused:
                file.keep(answer)
            step(len(found), len(rest))

        try:
            _compute(asked, where, rest, question, on_done)
        except LimitReachedError as reached:
            if reached.limit is not Limit.TIME or not found:
                raise
            current().resume()
            ended = reached.in_words()
        except ClusterLostError as lost:
            if not found:
                raise
            ended = lost.fact
        except KeyboardInterrupt:
            if not found:
                raise
            current().resume()
    return found, ended if len(found) < len(rest) else ""  # spread() returns where it is interrupted


def _compute(
    asked: Sweep, where: Where, rest: Sequence[tuple[Params, SweepAnswer | None]], question: Question, on_done: OnDone
) -> None:
    spelling = asked.target.spelling
    if where.cluster is not None:
        parts = []
        for params, kept in rest:
            made = _prepare(asked, params, question, kept)
            if isinstance(made, SweepPart):
                parts.append(made)
            else:
                on_done(params, made)
        where.cluster.compute(parts, question, on_done)
    elif where.jobs > 1 and spelling:
        parts = [SweepPart(params, _subject(asked, params), kept) for params, kept in rest]
        spread(
            parts,
            partial(carry_out, asked=question),
            lambda part, error: SweepAnswer(failed_answer(part.params, error)),
            lambda n: None,  # noqa: ARG005
            where.jobs,
            lambda n, answer: on_done(parts[n].params, answer),
        )
    else:
        for params, kept in rest:
            on_done(params, evaluate(params, partial(_build, asked, params), question, kept))


def _build(asked: Sweep, params: Params) -> Program:
    return asked.target.build(dict(asked.fixed) | dict(params), grid=asked.ctas)


def _subject(asked: Sweep, params: Params) -> Subject:
    values = tuple((dict(asked.fixed) | dict(params)).items())
    return Subject(asked.target.spelling, values, asked.ctas, asked.target.strictness)


def _prepare(asked: Sweep, params: Params, question: Question, kept: SweepAnswer | None) -> SweepPart | SweepAnswer:
    """A configuration for another machine: one of a file is made here, as the file is not there, or refused here."""
    if asked.target.spelling in BUILT_IN:
        return SweepPart(params, _subject(asked, params), kept)
    try:
        return SweepPart(params, _build(asked, params), kept)
    except PipesimError:
        return evaluate(params, partial(_build, asked, params), question, kept)


def _report(
    asked: Sweep,
    axes: dict[str, tuple[int, ...]],
    answers: tuple[Configuration, ...],
    *,
    reused: int,
    changed: int,
    ended: str,
) -> SweepReport:
    found = comparable(answers)
    metric = asked.metric or METRIC[found]
    order = rank(answers, metric)
    return SweepReport(
        protocol=asked.target.name,
        profile=asked.profile.name,
        device=asked.profile.device,
        axes=axes,
        fixed=dict(asked.fixed),
        ctas=asked.ctas,
        metric=metric,
        unit=unit_for(answers),
        chosen=asked.metric is None,
        proved=asked.prove,
        configurations=answers,
        ranked=order,
        smallest=smallest(order, asked.within_permille),
        within_permille=asked.within_permille,
        comparable=found,
        command=_command(asked, order[0]) if order else "",
        reused=reused,
        changed=changed,
        interrupted=ended,
        assumed=asked.profile.assumed,
    )


def _command(asked: Sweep, best: RankedConfiguration) -> str:
    """The command line that runs a configuration as it was swept, "" if one cannot name the protocol or the profile."""
    profile = asked.profile_given or _name_of(asked.profile)
    if not asked.target.spelling or not profile:
        return ""
    name, *words = _subject(asked, tuple(best.configuration.params.items())).arguments()
    return shlex.join(["pipesim", "run", name, "--profile", profile, *words])


def _name_of(profile: Profile) -> str:
    """The name of a built-in profile, "" of another one, whatever it calls itself."""
    return profile.name if profile.name in profile_names() and load_profile(profile.name) == profile else ""
