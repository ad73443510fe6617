"""The page of a sweep: its table fits any number of parameters, and says of what is not there that it is not."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from rich.cells import cell_len

from pipesim.answers.sweep.sweep import METRIC, comparable, rank, smallest, unit_for
from pipesim.answers.views.sweep import Configuration, Metric, Outcome, Resources, SweepReport, Times, WorkUnit
from pipesim.conform.result import Bottleneck, LimitKind
from pipesim.report.pages.protocols.sweep import sweep_lines

NAMES = ("stages", "k_iters", "num_consumer", "block_n", "k_group_size", "epilogue", "a_name_of_twenty_two", "n")
LIMIT = Bottleneck(LimitKind.LOADS, "consumer", 300, "a_group_with_a_long_name.full")


def report_of(
    axes: Mapping[str, tuple[int, ...]],
    states: Sequence[Outcome] = (Outcome.USABLE,),
    *,
    metric: Metric | None = None,
    prove: bool = True,
    **more: int,
) -> SweepReport:
    """A sweep whose configurations have these states in turn; ``more`` goes to the times of the last one."""
    found = []
    every = list(product(*axes.values()))
    for n, values in enumerate(every):
        numbers: dict[str, Any] = {"cycles": 10_000 + n, "period_millicycles": 500_000, "work": 100, "iterations": 8}
        numbers |= more if n == len(every) - 1 else {}
        times = Times(unit=WorkUnit.BYTES, limited_by=LIMIT, **numbers)
        state = states[n % len(states)]
        params = dict(zip(axes, values, strict=True))
        found.append(Configuration(params, state, "", Resources(100_000 + n, 96, 64_512 + n), times))
    common = comparable(found)
    order = rank(found, metric or METRIC[common])
    return SweepReport(
        "mine", "h200", "NVIDIA H200", axes, {}, None, metric or METRIC[common], unit_for(found),
        chosen=metric is None, proved=prove, configurations=tuple(found), ranked=order,
        smallest=smallest(order), within_permille=10, comparable=common,
    )  # fmt: skip


@pytest.mark.parametrize("large", [9, 1_000_000_000])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("names", range(1, len(NAMES) + 1))
def test_any_number_of_parameters_fits(names: int, width: int, large: int) -> None:
    axes = {name: (n + 1, large + n) for n, name in enumerate(NAMES[:names])}
    lines = sweep_lines(report_of(axes), width)
    assert max(map(cell_len, lines)) <= width
    table = "\n".join(lines[: next(n for n, line in enumerate(lines) if "off: from the best" in line)])
    for n in range(names):
        assert f"{large + n:,}" in table, "no value is cut"


def test_where_the_parameters_fill_a_line_each_part_has_the_ranks() -> None:
    axes = dict.fromkeys(NAMES[:5], (1, 100000))
    lines = sweep_lines(report_of(axes), 80)
    heads = [n for n, line in enumerate(lines) if line.startswith("  rank  ")]
    assert len(heads) > 1
    for head in heads:
        assert [line.split()[0] for line in lines[head + 1 : head + 21]] == [str(n) for n in range(1, 21)]
    two = sweep_lines(report_of(dict.fromkeys(NAMES[:2], (1, 2))), 80)
    assert not any(line.startswith("  rank ") for line in two)


def test_what_is_proved_is_said_and_no_more() -> None:
    axes = {"stages": (1, 2)}
    for states, said in (
        ((Outcome.USABLE,), "each proved for every schedule"),
        ((Outcome.USABLE, Outcome.REFUSED), "each usable one proved for every schedule"),
        ((Outcome.REFUSED, Outcome.UNDECIDED), "none proved for every schedule"),
    ):
        assert sweep_lines(report_of(axes, states), 100)[2].endswith(f"(NVIDIA H200) · {said}")
    assert sweep_lines(report_of(axes, prove=False), 100)[2].endswith("not proved: --no-proof")


def test_why_a_metric_was_chosen_and_where_it_compares_unlike_things() -> None:
    axes = {"unroll": (1, 2)}
    other = "the configurations do the same work in different numbers of iterations"
    for report, said in (
        (report_of(axes), "chosen: all configurations do the same work in the same number of iterations"),
        (report_of(axes, iterations=4), f"chosen: {other}"),
        (report_of(axes, metric=Metric.PERIOD, iterations=4), f"not comparable: {other}"),
        (report_of(axes, metric=Metric.RUN, work=4), "not comparable: the configurations do different amounts of work"),
        (report_of(axes, metric=Metric.RUN, iterations=4), ""),
        (report_of(axes, metric=Metric.PERIOD), ""),
    ):
        text = " ".join(" ".join(sweep_lines(report, 100)).split())
        assert said in text
        assert ("chosen: " in text or "not comparable: " in text) == bool(said)
