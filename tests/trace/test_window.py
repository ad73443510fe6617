"""Windows and losses made from whole traces: what is kept, what is counted, and what cannot be cut."""

from dataclasses import replace

import pytest

from pipesim.errors import ParameterError
from pipesim.trace.activity import cut
from pipesim.trace.consistency import check_trace
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import AgentInfo, BarrierGroup, CtaInfo, Device, EventKind, Site, Trace, TraceMeta
from tests.support.lossy import lose

SITES = (
    Site("load_wait_enter_empty", "load", EventKind.WAIT_ENTER, "empty"),
    Site("load_wait_return_empty", "load", EventKind.WAIT_RETURN, "empty"),
    Site("load_copy_full", "load", EventKind.COPY, "full"),
    Site("use_work_begin", "use", EventKind.WORK_BEGIN),
)


def whole() -> Trace:
    """Six iterations of three events, four of one."""
    buffer = EventBuffer()
    for i in range(6):
        for site in range(3):
            buffer.append(0, 0, site, i % 2, -1, i, 0, 100 * i + site)
    for i in range(4):
        buffer.append(0, 1, 3, -1, -1, i, 0, 100 * i + 50)
    meta = TraceMeta(
        "simulation", "p", {}, 4, Device("d"), (AgentInfo("load", 0, 0), AgentInfo("use", 0, 1)),
        (BarrierGroup("full", 2, 1), BarrierGroup("empty", 2, 1)), SITES,
    )  # fmt: skip
    return Trace(meta, buffer.events(1_000_000))


def kept(trace: Trace) -> list[tuple[int, int, int, int]]:
    e = trace.events
    return list(zip(e.cta.tolist(), e.agent.tolist(), e.site.tolist(), e.iteration.tolist(), strict=True))


def test_the_same_iterations_of_every_agent() -> None:
    part = cut(whole(), 1, 3)
    assert kept(part) == [
        (0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 2, 1), (0, 0, 0, 2), (0, 0, 1, 2), (0, 0, 2, 2), (0, 1, 3, 1), (0, 1, 3, 2),
    ]  # fmt: skip
    assert part.meta == replace(
        whole().meta, window=(1, 3), ctas=(CtaInfo(0, 0, written=(6, 2), passes=(6, 4)),)
    )  # the rest of the description is untouched
    check_trace(part, "here")


@pytest.mark.parametrize(("first", "end"), [(3, 3), (4, 3), (-1, 3)])
def test_a_window_that_keeps_nothing(first: int, end: int) -> None:
    with pytest.raises(ParameterError, match=f"the window {first}..{end} keeps no iteration"):
        cut(whole(), first, end)


def test_what_is_not_whole_cannot_be_cut() -> None:
    part = cut(whole(), 0, 3)
    for trace in (part, lose(Trace(replace(part.meta, window=()), part.events), {0: 1})):
        with pytest.raises(ParameterError, match="is not complete"):
            cut(trace, 0, 2)
