"""The simulation is a SimPy model: one environment, run by SimPy, and nothing of SimPy's that is not documented."""

import ast

import pytest
import simpy

from pipesim.model.ending import Ending
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.paths import ROOT

H100 = load_profile("h100")
#: What SimPy's classes use and do not document. ``_do_get`` is documented: resources implement it.
PRIVATE = {
    *("_queue", "_now", "_eid", "_active_proc", "_ok", "_value", "_defused", "_delay", "_generator", "_target"),
    *("_resume", "_capacity", "_trigger_get", "_trigger_put"),
}


def uses(source: str) -> set[str]:
    """The names of attributes in a module."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}


def test_nothing_private_of_simpy_is_used() -> None:
    for path in sorted((ROOT / "pipesim" / "timed").rglob("*.py")):
        assert not PRIVATE & uses(path.read_text()), path
    assert PRIVATE & uses("heappush(env._queue, event)"), "it can be seen"


def test_a_time_limit_inside_a_process_ends_the_run_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    program = find("producer_consumer").build({"tiles": 40})
    whole = simulate(program, H100)
    steps = [0]
    timeout = simpy.Timeout.__init__

    def limited(event: simpy.Timeout, env: simpy.Environment, delay: int, value: object = None) -> None:
        steps[0] += 1
        if steps[0] == 100:
            raise LimitReachedError(Limit.TIME, 1.5)
        timeout(event, env, delay, value)

    monkeypatch.setattr(simpy.Timeout, "__init__", limited)
    cut = simulate(program, H100, until_time_limit=True)
    assert (cut.outcome, cut.cut) == (Ending.UNKNOWN, Limit.TIME)
    assert 0 < cut.steps < whole.steps
    assert 0 < cut.cycles < whole.cycles
    steps[0] = 0
    with pytest.raises(LimitReachedError, match="TIME") as raised:
        simulate(program, H100)
    assert (raised.value.limit, raised.value.most) == (Limit.TIME, 1.5)
