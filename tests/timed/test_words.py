"""Words of global memory in simulated time: a loop on one makes loads, which find a store or a count after its way."""

import json
import runpy
from pathlib import Path

import pytest

from pipesim import Order, Protocol, Warp
from pipesim.explain.lap_counters import unmeasured_profile
from pipesim.model.ending import Ending
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.engine import simulate
from pipesim.timed.profile import ASSUMED, FOLDER, OF_WORDS, load_profile, parse_profile

GRIDS = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "examples" / "grids.py"))
H200 = load_profile("h200")
LOAD = H200["word.load"]
HOPS = {2: 1000, 3: 1174, 8: 1063}  #: measured on an H200: docs/experiments.md
BARRIERS = {2: (1373, 1688), 3: (1690, 1747), 4: (1747, 1754), 8: (1818, 1819)}


def ring(ctas: int, rounds: int) -> Protocol:
    """A flag of each CTA, which the one before it sets."""
    p = Protocol("ring", grid=ctas)
    flags = p.gmem("flags", ctas, 4)

    @p.role("hand_on")
    def hand_on(w: Warp) -> None:
        for i in w.loop(rounds, "rounds"):
            if w.cta:
                w.spin_until(flags[w.cta], equals=i + 1, order=Order.ACQUIRE)
            with w.elect_one():
                w.gstore(flags[(w.cta + 1) % ctas], value=i + 1, order=Order.RELEASE)
            if not w.cta:
                w.spin_until(flags[0], equals=i + 1, order=Order.ACQUIRE)

    return p


def barrier(ctas: int, rounds: int) -> Protocol:
    p = Protocol("barrier", grid=ctas)
    everyone = p.grid_barrier("everyone")

    @p.role("worker", warps=2)
    def worker(w: Warp) -> None:
        for _ in w.loop(rounds, "rounds"):
            everyone.sync(w)

    return p


def a_round(made: object, ctas: int) -> float:
    """The cycles of one more round."""
    lengths = [simulate(made(ctas, rounds).flatten(), H200).cycles for rounds in (2, 6)]  # type: ignore[operator]
    return (lengths[1] - lengths[0]) / 4


@pytest.mark.parametrize("ctas", HOPS)
def test_a_hop_of_a_flag_is_near_the_measured_one(ctas: int) -> None:
    assert a_round(ring, ctas) / ctas == pytest.approx(HOPS[ctas], rel=0.17)


@pytest.mark.parametrize("ctas", BARRIERS)
def test_a_barrier_is_near_the_measured_one_and_its_phases_are_one_loop(ctas: int) -> None:
    least, most = BARRIERS[ctas]
    assert least * 0.91 < a_round(barrier, ctas) < most * 1.09


def test_a_word_that_is_there_takes_one_load() -> None:
    def made(waits: int) -> Protocol:
        p = Protocol("flag", grid=2)
        flag = p.gmem("flag", 1, 4)

        @p.role("one")
        def one(w: Warp) -> None:
            if w.cta:
                w.work(cycles=5000)
                w.spin_until(flag[0], equals=1, order=Order.ACQUIRE)
                if waits == 2:
                    w.spin_until(flag[0], equals=1, order=Order.ACQUIRE)
            else:
                with w.elect_one():
                    w.gstore(flag[0], value=1, order=Order.RELEASE)

        return p

    once, twice = (simulate(made(waits).flatten(), H200).cycles for waits in (1, 2))
    assert 5000 + LOAD < once < 5000 + 3 * LOAD  # with the begin of a CTA, and its end
    assert twice == once + LOAD


@pytest.mark.parametrize("name", ["handed_on", "split_k", "last_block", "laps"])
def test_no_bound_is_above_the_simulated_period(name: str) -> None:
    for made in (GRIDS[name](), ring(3, 6), barrier(3, 6)):
        program = made.flatten()
        bound, found = least_period(program, H200), simulate(program, H200)
        assert found.outcome is Ending.FINISHED
        assert bound is None or bound.period_millicycles <= 1000 * found.cycles


def test_a_profile_without_words_takes_those_of_an_h200_and_says_so() -> None:
    data = json.loads((FOLDER / "h200.json").read_text(encoding="utf-8"))
    data["values"] = {name: value for name, value in data["values"].items() if name not in OF_WORDS}
    data["how"] = {way: [name for name in names if name not in OF_WORDS] for way, names in data["how"].items()}
    profile = parse_profile(json.dumps(data))
    assert {name: profile[name] for name in OF_WORDS} == OF_WORDS
    assert {profile.how[name] for name in OF_WORDS} == {ASSUMED}
    program = GRIDS["split_k"]().flatten()
    notes = [unmeasured_profile(program, each.device, each.assumed)[0].claim for each in (profile, H200)]
    assert ["of an H200" in note for note in notes] == [True, False]
