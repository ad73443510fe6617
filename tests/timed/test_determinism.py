"""Same program, same profile: same trace, to the last event, in this process and in any other."""

import hashlib
import os
import subprocess
import sys
from dataclasses import fields

import pytest

from pipesim.targets import find
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import Events
from tests.support.lanes import slow_but
from tests.support.paths import ROOT

CONFIGURATIONS = [
    {"stages": 1, "tiles": 9, "consumer_warps": 1, "work": 0, "tile_bytes": 4096},
    {"stages": 4, "tiles": 40, "consumer_warps": 4, "arrive_lanes": 32},
]
ELSEWHERE = """
import json
from tests.timed.test_determinism import CONFIGURATIONS, fingerprint, run
print(json.dumps([fingerprint(run(number)) for number in range(len(CONFIGURATIONS))]))
"""


def run(number: int) -> Simulation:
    return simulate(find("producer_consumer").build(CONFIGURATIONS[number]), load_profile("h100"), traced=True)


def fingerprint(result: Simulation) -> str:
    digest = hashlib.sha256(repr((result.trace.meta, result.cycles, result.ends, result.steps, result.state)).encode())
    for column in fields(Events):
        digest.update(getattr(result.trace.events, column.name).tobytes())
    return digest.hexdigest()


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("seed", slow_but(["1"], ["1", "4711"]))
def test_in_another_process_that_hashes_differently(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = [fingerprint(run(number)) for number in range(len(CONFIGURATIONS))]
    assert [digest in done.stdout for digest in here] == [True] * len(here)
