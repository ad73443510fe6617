"""The compiled code of a formula does what its instructions say, and phrases are found where a list repeats itself."""

from __future__ import annotations

import random
from itertools import accumulate
from unittest.mock import patch

import numpy as np
import pytest

from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.profile import load_profile
from pipesim.timed.recurrence.code.compiled import CompiledFormula
from pipesim.timed.recurrence.code.phrases import LONGEST, phrases
from pipesim.timed.recurrence.evaluate import Evaluated, FormulaTimes
from pipesim.timed.recurrence.formula import Do, Formula
from pipesim.timed.recurrence.instructions import Instructions
from pipesim.timed.recurrence.many import ManyProfiles
from pipesim.timed.recurrence.prices import PriceTable, price_table
from pipesim.timed.recurrence.timings import derived
from tests.support.random_profiles import drawn

H100 = load_profile("h100")


@pytest.mark.parametrize("name", [name for name in BUILT_IN if not name.startswith(("attention", "epilogue"))])
def test_the_code_of_built_in_protocols(name: str) -> None:
    """Evaluated one instruction after the other, then by code; the twin: the profiles differ in their times."""
    program = find(name).build({"num_consumer": 1} if name == "gemm_sm90" else {})
    times = derived(program, H100).times
    assert times is not None
    times(price_table(program, times.formula, ManyProfiles([H100]), np.arange(1), traced=False))
    ends = set()
    for profile in (H100, *map(drawn, range(12))):
        prices = price_table(program, times.formula, ManyProfiles([profile]), np.arange(1), traced=False)
        plain, coded = FormulaTimes(times.formula)(prices), times(prices)
        assert plain.undecided == coded.undecided
        if not plain.undecided:
            assert plain == coded
            ends.add(tuple(plain.ends))
    assert len(ends) > 1 or plain.undecided


def evaluated(formula: Formula, prices: PriceTable, times: int) -> Evaluated:
    """What is said the last of so many times."""
    evaluate = FormulaTimes(formula)
    return [evaluate(prices) for _ in range(times)][-1]


def test_a_rule_is_written_once() -> None:
    """A rule that is changed is another one for numbers, for arrays and in compiled code."""
    program = find("producer_consumer").build({"tiles": 12})
    profiles = ManyProfiles([H100, H100])
    times = derived(program, H100).times
    assert times is not None
    formula = times.formula
    one, two = (price_table(program, formula, profiles, np.arange(n), traced=False) for n in (1, 2))

    def later(self: Instructions, value: int, complete: int, price: int) -> None:
        self._v[value] = self._v[complete] + self._prices.visible[price] + 1000

    assert any(each[0] == Do.SEEN for each in formula.instructions)
    right = [evaluated(formula, one, 1).cycles, evaluated(formula, one, 2).cycles, *evaluated(formula, two, 1).cycles]
    with patch.object(Instructions, "_seen", later):
        wrong = [evaluated(formula, one, 1).cycles, evaluated(formula, one, 2).cycles]
        wrong += [*evaluated(formula, two, 1).cycles]
    assert len(set(right)) == len(set(wrong)) == 1
    assert right[0] < wrong[0]


def test_the_code_of_a_long_run_is_short() -> None:
    """The functions of its phrases do not become more with the iterations, and each call carries out many."""
    lines = []
    for tiles in (256, 1024):
        program = find("producer_consumer").build({"tiles": tiles})
        times = derived(program, H100).times
        assert times is not None
        code = CompiledFormula(times.formula)
        lines.append(code.lines)
        assert len(code.calls) < len(times.formula.instructions) / 20
    assert lines[1] < 2 * lines[0]


def test_phrases_of_a_list_that_repeats_itself() -> None:
    lengths = phrases([*"x", *("abcde" * 40), *"yz"])
    assert sum(lengths) == 203
    assert len(lengths) < 15
    assert max(lengths) % 5 == 0


def test_phrases_that_are_equal_consist_of_the_same() -> None:
    """Of random lists: nothing is left out, no phrase is too long, and cutting a random list gains little."""
    for seed in range(30):
        draw = random.Random(seed)
        part = [draw.randint(0, 4) for _ in range(draw.randint(1, 200))]
        symbols = part * draw.randint(1, 20) + [draw.randint(0, 9) for _ in range(draw.randint(0, 99))]
        lengths = phrases(symbols)
        assert list(accumulate(lengths))[-1] == len(symbols)
        assert max(lengths) <= LONGEST
    assert phrases([]) == []
    assert phrases(range(50)) == [1] * 50
