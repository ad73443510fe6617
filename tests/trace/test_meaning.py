"""What waits are for: by who completes a phase and with what, in programs and in recordings, and never by a name."""

from dataclasses import replace

import pytest

from pipesim.model.waits import WaitPurpose, wait_purposes
from pipesim.targets import find
from pipesim.trace.activity import awaited_by_site, known_from, waited_groups
from pipesim.trace.files import read_trace
from pipesim.trace.schema import EventKind, Trace
from pipesim.trace.sites import site_table
from tests.support.paths import TRACES
from tests.support.recordings import RECORDINGS, one_of_each, sampled

DATA, ROOM = WaitPurpose.DATA, WaitPurpose.ROOM
THROTTLE = ("scheduler", "throttle.full")


@pytest.mark.sampled(8, 20)
@pytest.mark.parametrize("name", sampled(RECORDINGS, one_of_each(RECORDINGS, 8_000)))
def test_a_stored_trace_tells_it_by_its_sites(name: str) -> None:
    """They were recorded without it; what is derived from their sites is what their programs say.

    But for the throttle of a scheduler, of whose responses the kernels record nothing, and where there are no tiles.
    """
    trace = read_trace(TRACES / name)
    assert {site.awaited for site in trace.meta.sites} == {None}
    assert waited_groups(trace) or not len(trace.events)
    if not trace.meta.params.get("tiles", 1):
        return
    meant = wait_purposes(find(trace.meta.protocol).build(dict(trace.meta.params), twice=False))
    told = dict[tuple[str, str], WaitPurpose]()
    for site, what in zip(trace.meta.sites, awaited_by_site(trace), strict=True):
        assert (what is None) == (site.kind not in (EventKind.WAIT_ENTER, EventKind.TRY))
        if (site.role, site.barrier) in meant and what is not None:
            told[site.role, site.barrier] = what
    other = {what for what in told if told[what] is not meant[what]}
    assert other == ({THROTTLE} if THROTTLE in told and meant[THROTTLE] is ROOM else set())
    several = trace.meta.protocol == "persistent_scheduler" and trace.meta.params["tiles"] > 1
    assert THROTTLE in other or not several, "the twin: it can be seen to differ"
    assert set(told.values()) == ({DATA, ROOM} if trace.meta.params.get("kv_blocks", 1) else {DATA})


@pytest.mark.slow
def test_a_recording_is_told_by_the_simulation_beside_it() -> None:
    name = next(each for each in RECORDINGS if "/persistent_scheduler-" in each and "-t16-" in each)
    measured = read_trace(TRACES / name)
    table = site_table(find("persistent_scheduler").build(dict(measured.meta.params)))
    simulated = Trace(replace(measured.meta, sites=table.sites), measured.events)
    assert ("throttle.full", DATA) in waited_groups(measured)
    assert ("throttle.full", ROOM) in waited_groups(known_from(measured, simulated))
