"""``pipesim.sweep`` and ``pipesim.advise``: a protocol at many parameters, ranked; what changes of it would bring."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pipesim.answers.advise.advise import PERCENT
from pipesim.answers.advise.advise import advise as advise_answer
from pipesim.answers.sweep.sweep import WITHIN_PERMILLE, Sweep, Where, Workers
from pipesim.answers.sweep.sweep import sweep as sweep_answer
from pipesim.answers.views.sweep import Advice, AdviseReport, Configuration, Metric, RankedConfiguration, SweepReport
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenWords,
    KernelLaunch,
    at_least_one,
    build_target,
    profile_from,
    target_from,
    whole_params,
)
from pipesim.api.result import VerdictResult
from pipesim.errors import ParameterError
from pipesim.formats.documents import column_names, sweep_csv
from pipesim.report.pages.protocols.advise import advise_lines, advise_sentence, change_words
from pipesim.report.pages.protocols.sweep import sweep_lines
from pipesim.report.pictures.sweep_svg import sweep_svg
from pipesim.report.sentences.sweep import sweep_sentence
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Rows


@dataclass(frozen=True, repr=False, eq=False)
class AdviseResult(VerdictResult):
    """What limits a protocol, and changes, those that gain most first. ``report`` is the whole answer as data."""

    report: AdviseReport

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The changes, each alone, with what they gain and cost."""
        return self.report.advice

    def _in_short(self) -> str:
        return f"{self.report.heading.protocol}: {advise_sentence(self.report)}"

    def _lines(self, width: int) -> list[str]:
        return advise_lines(self.report, width)

    def _rows(self) -> Rows:
        numbers = {"value_millicycles": int, "gain_permille": int, "smem_bytes": int}
        return {"change": str, "metric": str, **numbers, "proof": str}, [
            {
                "change": change_words(each.change, self.report.percent),
                "metric": each.metric.name.lower(),
                "value_millicycles": each.value,
                "gain_permille": each.gain_permille,
                "smem_bytes": each.resources.smem_bytes if each.resources is not None else None,
                "proof": each.verdict.name.lower() if each.verdict is not None else None,
            }
            for each in self.advice
        ]


def advise(
    x: Given,
    profile: GivenProfile = "h100",
    *,
    percent: int = PERCENT,
    ctas: int | None = None,
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> AdviseResult:
    """Say what limits a protocol, and simulate changes one at a time: stages, work, loads, reads, multiplications.

    ``x``, ``profile``, ``ctas``, the launch and ``params`` as in :func:`pipesim.simulate`. ``percent``: by how much
    work, loads and signals are shortened. Each change has its gain, its cost in shared memory and a verdict. Raises
    UsageError.
    """
    target, whole, _ = build_target(x, params, ctas, launch=KernelLaunch(launch, set, box))
    by = at_least_one("percent", percent)
    return AdviseResult(advise_answer(target, whole, profile_from(profile), ctas=ctas, percent=by))


@dataclass(frozen=True, repr=False, eq=False)
class SweepResult(VerdictResult):
    """A protocol at many parameters. ``report`` is the whole answer as data."""

    report: SweepReport

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """All of them, usable or not, in the order of the values that were given."""
        return self.report.configurations

    @property
    def ranked(self) -> tuple[RankedConfiguration, ...]:
        """The usable ones, the best first."""
        return self.report.ranked

    @property
    def best(self) -> Mapping[str, int] | None:
        """The parameters of the best configuration, None if none is usable."""
        return self.report.ranked[0].configuration.params if self.report.ranked else None

    @property
    def smallest(self) -> Mapping[str, int] | None:
        """The parameters of the smallest configuration that is within ``within`` percent of the best."""
        return self.report.smallest.configuration.params if self.report.smallest is not None else None

    def to_csv(self) -> str:
        """All configurations as a table, a row for each."""
        return sweep_csv(self.report)

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The metric over one parameter, a line for each value of the others; none if no configuration is usable."""
        picture = sweep_svg(self.report)
        return ((f"sweep of {self.report.protocol}", picture),) if picture else ()

    def _in_short(self) -> str:
        return f"{self.report.protocol}: {sweep_sentence(self.report)}"

    def _lines(self, width: int) -> list[str]:
        return sweep_lines(self.report, width)

    def _rows(self) -> Rows:
        types = {"state": str, "why": str, "cycles": int, "period_millicycles": int, "smem_bytes": int}
        names = dict(zip(types, column_names(types, self.report.axes), strict=True))
        columns: dict[str, type] = dict.fromkeys(self.report.axes, int) | {names[own]: types[own] for own in types}
        rows = [
            {**each.params, **{names[own]: value for own, value in _row(each).items()}} for each in self.configurations
        ]
        return columns, rows


def _row(each: Configuration) -> dict[str, object]:
    times, resources = each.times, each.resources
    return {
        "state": each.state.value,
        "why": each.why,
        "cycles": times.cycles if times is not None else None,
        "period_millicycles": times.period_millicycles if times is not None else None,
        "smem_bytes": resources.smem_bytes if resources is not None else None,
    }


def sweep(
    x: Given,
    profile: GivenProfile = "h100",
    *,
    by: str | None = None,
    within: float | None = None,
    prove: bool = True,
    ctas: int | None = None,
    jobs: int = 1,
    dask: str | None = None,
    results: str | PathLike[str] | None = None,
    **params: int | Iterable[int],
) -> SweepResult:
    """Prove and simulate a protocol at every combination of values, and rank the configurations.

    ``x``, ``profile`` and ``ctas`` as in :func:`pipesim.simulate`. ``params``: a number, or several, such as
    ``stages=range(2, 9)``. ``by``: "period", "run" or "throughput"; None takes one that can be compared. ``within``:
    how many percent worse than the best the smallest configuration may be (1). ``prove=False`` only simulates.
    ``jobs``: processes; more than one need a protocol that has a name on the command line, and a script that is
    guarded by ``if __name__ == "__main__"``. ``dask``: the address of a Dask scheduler, to compute there. ``results``:
    a file that keeps every answer and is continued if it is there. Raises UsageError.
    """
    values = {name: _values(name, given) for name, given in params.items()}
    asked = Sweep(
        target=target_from(x, {}),
        axes={name: several for name, several in values.items() if len(several) != 1},
        fixed={name: several[0] for name, several in values.items() if len(several) == 1},
        profile=profile_from(profile),
        ctas=ctas if ctas is None else at_least_one("ctas", ctas),
        metric=_metric(by),
        prove=bool(prove),
        within_permille=WITHIN_PERMILLE if within is None else _permille(within),
        profile_given="" if isinstance(profile, Profile) else str(profile),
    )
    where = Where(at_least_one("jobs", jobs), _cluster(dask), None if results is None else Path(results))
    return SweepResult(sweep_answer(asked, where))


def _values(name: str, given: object) -> tuple[int, ...]:
    """One value or several, each a whole number."""
    several: Iterable[Any] = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    return tuple(whole_params({name: value})[name] for value in several)


def _metric(by: object) -> Metric | None:
    if by is None:
        return None
    if isinstance(by, str) and by.upper() in Metric.__members__:
        return Metric[by.upper()]
    raise ParameterError(f"by is {by!r}", correction='give "period", "run" or "throughput", or leave it out')


def _permille(within: object) -> int:
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < 1000:
        raise ParameterError(f"within is {within!r}", correction="give a percentage of 0 or more, for example 1")
    return round(10 * within)


def _cluster(address: str | None) -> Workers | None:
    if address is None:
        return None
    from pipesim.answers.sweep.dask_cluster import DaskCluster

    return DaskCluster(address)
