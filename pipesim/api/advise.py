"""``pipesim.advise``: what limits a protocol, and what changes would bring."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.advise.advise import PERCENT
from pipesim.answers.advise.advise import advise as advise_answer
from pipesim.answers.views.advise import Advice, AdviseReport
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
)
from pipesim.api.result import VerdictResult
from pipesim.report.pages.advise import advise_lines, advise_sentence, change_words
from pipesim.trace.tables import Rows


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
