"""For pytest: a protocol must be right in every schedule, and the failure message is the finding.

from pipesim.testing import assert_verified

def test_my_ring():
assert_verified(ring, stages=2, tiles=5)
"""

from collections.abc import Callable, Collection
from functools import partial
from os import PathLike
from pathlib import Path

from pipesim.answers.check import check
from pipesim.answers.project_settings import Triage, policy_of, read_settings
from pipesim.answers.views.conclusion import Conclusion
from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import strictness_from
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES
from pipesim.report.findings.brief import in_one_line
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.text import source
from pipesim.report.text.console import text_of
from pipesim.targets import target_of

WIDTH = 100  #: cells of a message


def assert_verified(
    protocol: Callable[..., Protocol] | Program,
    *,
    max_states: int = MOST_STATES,
    strict: bool | Collection[str] = (),
    fail_on: str | None = None,
    ignore: Collection[str] = (),
    baseline: str | PathLike[str] | None = None,
    **params: int,
) -> None:
    """Raise AssertionError, with the finding and its schedule, unless ``protocol`` is proved at these parameters.

    The message begins with the verdict in one line, which is all that pytest's summary shows of it.
    ``protocol``: a function that makes one, or a flat program. What hits a limit is not proved. The strict rules are
    those of :func:`pipesim.check`. Findings that are waived at their line, by ``[tool.pipesim]``, ``ignore``
    (``KIND:PATTERN``) or a ``baseline``, or that are less sure than ``fail_on``, do not fail, as of ``pipesim check``.
    """
    __tracebackhide__ = True  # pytest shows the test's line
    target = target_of(protocol).with_strictness(strictness_from(strict))
    file = None if baseline is None else Path(baseline)
    policy = policy_of(
        read_settings(Path.cwd()), fail_on=fail_on, strict=bool(target.strictness), ignores=tuple(ignore), baseline=file
    )
    program = target.build(params)
    again = partial(check, target, params, max_states=max_states, most_ranges=0, program=program)
    triage = Triage(policy, source.text_of, source.whole_text_of)
    report = triage.of(again(), program.sources, beside=partial(again, beside=True))
    if report.conclusion is not Conclusion.AGREES:
        raise AssertionError(text_of([in_one_line(report), "", *check_lines(report, WIDTH)]))
