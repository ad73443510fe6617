"""Integers that vary with free inputs, against plain ones: random expressions and decisions, for all small inputs."""

import itertools
import operator
import random
from collections.abc import Callable

import numpy as np
import pytest

from pipesim.answers.every_cta.conditions import broken, covered
from pipesim.answers.every_size.nearby import settle
from pipesim.ptx.emulate.arithmetic import integers
from pipesim.ptx.emulate.values import lift, select
from pipesim.ptx.free.varying import FreeInputs, Varying, identity

RANGES = {"x": 12, "y": 5}
INPUTS = list(itertools.product(*map(range, RANGES.values())))
M = (1 << 32) - 1
Step = Callable[[list[int]], int]


def _binary(rng: random.Random, n: int) -> Step:
    """A step that takes two registers, or a register and a number, as an instruction of 32 bits does."""
    a, b, c = (
        rng.randrange(n),
        rng.randrange(n),
        rng.choice((0, 1, 2, 3, 5, 7, 8, 31, 32, 64, 100, 4095, M, M - 7, 1 << 31)),
    )
    second: Callable[[list[int]], int] = (lambda r: r[b]) if rng.random() < 0.5 else (lambda r: c)
    half = 1 << 31
    return rng.choice(
        [
            lambda r: (r[a] + second(r)) & M,
            lambda r: (r[a] - second(r)) & M,
            lambda r: (r[a] * second(r)) & M,
            lambda r: r[a] & second(r),
            lambda r: r[a] | second(r),
            lambda r: r[a] ^ second(r),
            lambda r: (r[a] << (c & 15)) & M,
            lambda r: r[a] >> (c & 31),
            lambda r: integers.div(r[a], second(r), 32),
            lambda r: integers.rem(r[a], second(r), 32),
            lambda r: integers.sdiv(r[a], second(r), 32),
            lambda r: integers.srem(r[a], second(r), 32),
            lambda r: integers.sar(r[a], c & 31, 32),
            lambda r: integers.shl(r[a], second(r), 32),
            lambda r: integers.shr(r[a], second(r), 32),
            lambda r: integers.least(r[a], second(r)),
            lambda r: integers.most_signed(r[a], second(r), 32),
            lambda r: integers.least_signed(r[a], second(r), 32),
            lambda r: integers.extended(r[a] & 0xFFFF, 16, 32),
            lambda r: integers.bfe(r[a], c & 31, 4, 32, b & 1),
            lambda r: integers.bfi(r[a], second(r), c & 31, 5, 32),
            lambda r: integers.funnel_left(r[a], second(r), c & 63, b & 1),
            lambda r: integers.funnel_right(r[a], second(r), c & 63, b & 1),
            lambda r: integers.lop3(r[a], r[b], c, 0xCA),
            lambda r: +((r[a] ^ half) - half < (second(r) ^ half) - half),
            lambda r: +(r[a] == second(r)),
            lambda r: +(r[a] != second(r)) & +(r[b] < c),
            lambda r: +(c < 40) & +(r[a] >= second(r)),
            lambda r: +(r[a] >= second(r)) ^ 1,
            lambda r: select(r[a] & 1, r[b], c),
            lambda r: select(r[a] < second(r), r[b], c),
        ]
    )


def _program(rng: random.Random) -> tuple[list[Step], list[tuple[int, str]]]:
    steps = [_binary(rng, 2 + n) for n in range(rng.randrange(1, 8))]
    asks = [
        (rng.randrange(len(steps) + 2), rng.choice(("truth", "value", "truth"))) for _ in range(rng.randrange(1, 4))
    ]
    return steps, asks


def _run(steps: list[Step], asks: list[tuple[int, str]], registers: list[int]) -> tuple[list[int], list[int]]:
    """All registers, and what was decided by them."""
    for step in steps:
        registers.append(step(registers))
    return registers, [int(bool(registers[at])) if how == "truth" else int(registers[at]) for at, how in asks]


def _values() -> dict[str, np.ndarray]:
    return {name: np.array([each[n] for each in INPUTS]) for n, name in enumerate(RANGES)}


@pytest.mark.sampled(10, 18)
@pytest.mark.parametrize("seed", range(60))
def test_a_run_covers_only_inputs_that_decide_as_it_does(seed: int) -> None:
    """And among these are all whose decisions are made by sums alone: here at least its own."""
    rng = random.Random(seed)
    for _ in range(10):
        steps, asks = _program(rng)
        plain = [_run(steps, asks, list(each)) for each in INPUTS]
        here = rng.randrange(len(INPUTS))
        inputs = FreeInputs()
        free = [inputs.free(name, INPUTS[here][n], 0, size - 1) for n, (name, size) in enumerate(RANGES.items())]
        registers, decided = _run(steps, asks, free)
        assert (list(map(int.__int__, registers)), decided) == plain[here], seed
        found = covered(inputs, _values())
        assert found[here]
        wrong = [n for n, holds in enumerate(found) if holds and plain[n][1] != decided]
        assert not wrong, (seed, INPUTS[here], [INPUTS[n] for n in wrong])
        for register, form in enumerate(map(identity, registers)):
            values = [each[0][register] for each in plain]
            if form.__class__ is not int and form.__class__ is not bool:
                low, high = form.low, form.high
                assert low <= min(values), (seed, register)
                assert max(values) <= high, (seed, register)


@pytest.mark.sampled(10, 18)
@pytest.mark.parametrize("seed", range(60))
def test_with_the_values_nearby_of_a_word_a_run_decides_as_it_does_in_every_place(seed: int) -> None:
    """``x`` is a word, and ``y`` a place."""
    rng = random.Random(seed)
    for _ in range(10):
        steps, asks = _program(rng)
        plain = {each: _run(steps, asks, list(each))[1] for each in INPUTS}
        x, y = here = rng.choice(INPUTS)
        inputs = FreeInputs(nearby=True)
        free = [inputs.word("x", x, RANGES["x"] - 1), inputs.free("y", y, 0, RANGES["y"] - 1)]
        _, decided = _run(steps, asks, free)
        assert decided == plain[here], seed
        assert all(not atom.name.startswith("x ") for terms in inputs.conditions for atom, _ in terms)
        found = covered(inputs, {"y": np.arange(RANGES["y"])})
        assert [plain[x, n] == decided for n in np.flatnonzero(found).tolist()] == [True] * found.sum(), seed
        settle(inputs, {"y": np.flatnonzero(found)})
        word = inputs.forms.words["x"]
        wrong = [at for at in INPUTS if word.low <= at[0] <= word.high and found[at[1]] and plain[at] != decided]
        assert word.low <= x <= word.high
        assert not wrong, (seed, here, wrong)


def test_a_word_that_is_compared_with_places_has_the_values_with_which_it_compares_so_in_each() -> None:
    """With ``y`` up to 4, ``128 * y + 128 > x`` is for 600 as for 512 to 639: it is so for ``y`` of 4 alone."""
    inputs = FreeInputs(nearby=True)
    word, place = inputs.word("x", 600, 9999), inputs.free("y", 2, 0, 4)
    assert not place * 128 + 128 > word
    values = {"y": np.arange(5)}
    assert list(covered(inputs, values)) == [True, True, True, True, False]
    settle(inputs, values)
    assert (inputs.forms.words["x"].low, inputs.forms.words["x"].high) == (512, 639)


def test_what_only_sums_decide_is_covered_to_the_last_input() -> None:
    """``x * 128 + y < 700`` is decided as at x = 2 for all of the inputs that it is so for."""
    inputs = FreeInputs()
    x, y = (inputs.free(name, 2, 0, size - 1) for name, size in RANGES.items())
    inputs.position = 7
    assert (x * 128 + y) & M < 700
    values = _values()
    assert list(covered(inputs, values)) == [a * 128 + b < 700 for a, b in INPUTS]
    found = broken(inputs, {"x": np.array([9]), "y": np.array([0])})
    assert found == (7, "128 * x + y > 699")


def test_what_never_decides_is_no_condition() -> None:
    inputs = FreeInputs()
    x = inputs.free("x", 3, 0, 11)
    assert x < 12
    assert (x * 4) % 4 == 0
    assert x * 2 + 1 != 8
    assert (x + 1) | x != 0  # no less than the greater of both
    assert isinstance(x, Varying)
    assert not inputs.conditions


@pytest.mark.parametrize("ask", [bool, int, hash, lambda x: x.bit_length(), {3: 0}.get])
def test_whatever_asks_for_the_value_is_a_condition(ask: Callable[[int], object]) -> None:
    inputs = FreeInputs()
    ask(lift(operator.add, inputs.free("x", 2, 0, 11), 1) - 0)
    values = {"x": np.arange(12)}
    holds = [True] * 12 if ask is bool else [n == 2 for n in range(12)]
    assert list(covered(inputs, values)) == holds
