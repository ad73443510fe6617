"""The ranking of configurations: pairs in the wrong order are found, others and equal ones are not."""

from __future__ import annotations

import json
from pathlib import Path

from pipesim.targets import find
from pipesim.timed.costs import sm_khz
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tools.ranking import Row, best_permille, rows, wrong_pairs


def row(name: int, measured: int, simulated: int) -> Row:
    return Row("k", {"n": name}, measured, simulated, "")


def names(table: list[Row]) -> list[tuple[int, int]]:
    return [(fast.params["n"], slow.params["n"]) for fast, slow in wrong_pairs(table)]


def test_a_pair_in_the_wrong_order_is_found() -> None:
    table = [row(0, 1000, 900), row(1, 1100, 890), row(2, 1200, 1000)]
    assert names(table) == [(0, 1)]
    assert best_permille(table) == 100


def test_times_that_hardly_differ_have_no_order_and_equal_simulated_ones_have_none_either() -> None:
    assert names([row(0, 1000, 900), row(1, 1020, 890)]) == []
    assert names([row(0, 1000, 900), row(1, 1021, 890)]) == [(0, 1)]
    assert names([row(0, 1000, 900), row(1, 1100, 900)]) == [(0, 1)]
    assert best_permille([row(0, 1000, 900), row(1, 1100, 901)]) == 0


def test_a_small_table_is_simulated_as_a_launch(tmp_path: Path) -> None:
    """A GEMM of two tiles a CTA, and an attention in two waves."""
    (tmp_path / "h200").mkdir()
    gemm = {"size": 1024, "runs": [{"params": {"stages": 4, "block_n": 128}, "us": 10.0}]}
    attention = {
        "heads": 16,
        "length": 2048,
        "runs": [
            {"name": "torch FLASH_ATTENTION", "depth": 64, "median_ns": 1},
            {"name": "attention_sm90 stages=2 block_n=128", "depth": 64, "median_ns": 50_000},
        ],
    }
    (tmp_path / "h200" / "gemm_speed.json").write_text(json.dumps(gemm), encoding="utf-8")
    (tmp_path / "h200" / "attention_speed.json").write_text(json.dumps(attention), encoding="utf-8")
    tables = rows("h200", load_profile("h200"), tmp_path)
    assert [(name, len(table)) for name, table in tables.items()] == [
        ("gemm_sm90, 1,024³", 1),
        ("attention_sm90, 16 heads of 2,048, depth 64", 1),
    ]
    ((first,), (second,)) = tables.values()
    assert (first.measured_ns, second.measured_ns) == (10_000, 50_000)
    assert 1_000 < first.simulated_ns < 100_000
    one = find("attention_sm90").build({"depth": 64, "stages": 2, "block_n": 128, "kv_blocks": 16}, grid=132)
    wave = simulate(one, load_profile("h200")).cycles
    assert second.simulated_ns == round(2 * wave * 1_000_000 / sm_khz(one, load_profile("h200"))), "two waves"
