"""For pytest: a protocol must be right in every schedule, and the failure message is the finding.

from pipesim.testing import assert_verified

def test_my_ring():
assert_verified(ring, stages=2, tiles=5)
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pipesim.answers.check import check
from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import strictness_from
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES
from pipesim.report.findings.in_short import in_one_line
from pipesim.report.pages.check import check_lines
from pipesim.report.text.console import text_of
from pipesim.targets import target_of

WIDTH = 100  #: cells of a message


def assert_verified(
    protocol: Callable[..., Protocol] | Program,
    *,
    max_states: int = MOST_STATES,
    strict: bool | Collection[str] = (),
    **params: int,
) -> None:
    """Raise AssertionError, with the finding and its schedule, unless ``protocol`` is proved at these parameters.

    The message begins with the verdict in one line, which is all that pytest's summary shows of it.
    ``protocol``: a function that makes one, or a flat program. What hits a limit is not proved. The strict rules are
    those of :func:`pipesim.check`.
    """
    __tracebackhide__ = True  # pytest shows the test's line
    target = target_of(protocol).with_strictness(strictness_from(strict))
    report = check(target, params, max_states=max_states, most_ranges=0)
    if report.verdict is not Verdict.PROVED:
        raise AssertionError(text_of([in_one_line(report), "", *check_lines(report, WIDTH)]))
