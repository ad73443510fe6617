"""Simulated beside measured times of whole kernels, and the pairs that the simulation ranks the wrong way round:
``python tools/ranking.py [--device h200] [--profile FILE]``.

Measured are the configurations of the GEMM beside cuBLAS (``traces/*/gemm_speed.json``) and of the attention beside
PyTorch (``traces/*/attention_speed.json``). A configuration is simulated as ``pipesim sweep`` does: one CTA of a launch
with a CTA on every SM, all of its tiles. CTAs beyond that run in waves, each as long as the first. The clock is the
profile's while tensor cores work. Pairs whose measured times differ by at most 2 % have no order.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.sweep.measure import simulated
from pipesim.targets import find
from pipesim.timed.costs import sm_khz
from pipesim.timed.profile import Profile, load_profile

TRACES = Path(__file__).resolve().parents[1] / "traces"
DEVICES = ("h100", "h200")
SAME_PERMILLE = 20  #: of the smaller: measured times so close have no order
_MOST_STEPS = 20_000_000
_GROUP_ROWS = 64  #: rows of a consumer group in both kernels


@dataclass(frozen=True)
class Row:
    """One configuration: measured and simulated nanoseconds of the whole kernel, and what limits it."""

    kernel: str
    params: Mapping[str, int]
    measured_ns: int
    simulated_ns: int
    limit: str

    @property
    def error_permille(self) -> int:
        """Of the simulated time, in thousandths of the measured one."""
        return round(1000 * (self.simulated_ns - self.measured_ns) / self.measured_ns)

    @property
    def name(self) -> str:
        """Its parameters."""
        return " ".join(f"{name}={value}" for name, value in self.params.items())


def rows(device: str, profile: Profile, folder: Path = TRACES) -> dict[str, list[Row]]:
    """The rows of each table, in the order in which they were measured."""
    gemm = json.loads((folder / device / "gemm_speed.json").read_text(encoding="utf-8"))
    tables = {
        f"gemm_sm90, {gemm['size']:,}³": [
            _gemm(each["params"], round(1000 * each["us"]), gemm["size"], profile) for each in gemm["runs"]
        ]
    }
    attention = json.loads((folder / device / "attention_speed.json").read_text(encoding="utf-8"))
    for each in attention["runs"]:
        kernel, *words = each["name"].split()
        if kernel != "attention_sm90":
            continue  # a library's
        params = {"depth": each["depth"]} | {name: int(value) for name, _, value in (w.partition("=") for w in words)}
        name = f"attention_sm90, {attention['heads']} heads of {attention['length']:,}, depth {each['depth']}"
        found = _attention(params, each["median_ns"], attention["heads"], attention["length"], profile)
        tables.setdefault(name, []).append(found)
    return tables


def _gemm(params: dict[str, int], measured_ns: int, size: int, profile: Profile) -> Row:
    """A persistent kernel: a CTA on each SM, the tiles shared out; the CTA with the most tiles is the last."""
    whole = find("gemm_sm90").defaults | params
    tiles = (size // (_GROUP_ROWS * whole["num_consumer"])) * (size // whole["block_n"])
    grid = min(profile.sms, tiles)
    more = {"tiles": -(-tiles // grid), "k_iters": size // whole["block_k"]}
    return _row("gemm_sm90", params, more, grid, 1, measured_ns, profile)


def _attention(params: dict[str, int], measured_ns: int, heads: int, length: int, profile: Profile) -> Row:
    """A CTA for each tile of queries."""
    whole = find("attention_sm90").defaults | params
    ctas = heads * length // (_GROUP_ROWS * whole["num_consumer"])
    grid = min(profile.sms, ctas)
    more = {"kv_blocks": length // whole["block_n"]}
    return _row("attention_sm90", params, more, grid, -(-ctas // grid), measured_ns, profile)


def _row(
    kernel: str, params: dict[str, int], more: dict[str, int], grid: int, waves: int, measured_ns: int, profile: Profile
) -> Row:
    program = find(kernel).build(params | more, grid=grid)
    found = simulated(program, profile, _MOST_STEPS)
    assert found.times is not None, found
    limit = found.times.limited_by
    ns = round(waves * found.times.cycles * 1_000_000 / sm_khz(program, profile))
    return Row(kernel, params, measured_ns, ns, limit.role if limit is not None else "")


def wrong_pairs(table: Sequence[Row], same_permille: int = SAME_PERMILLE) -> list[tuple[Row, Row]]:
    """The pairs in the wrong order: (faster, slower) as they were measured, simulated as slow or slower."""
    found = []
    for one, other in combinations(table, 2):
        fast, slow = sorted((one, other), key=lambda row: row.measured_ns)
        apart = 1000 * (slow.measured_ns - fast.measured_ns) > same_permille * fast.measured_ns
        if apart and fast.simulated_ns >= slow.simulated_ns:
            found.append((fast, slow))
    return found


def best_permille(table: Sequence[Row]) -> int:
    """How much slower than the measured best the configuration is that the simulation names the best."""
    chosen = min(table, key=lambda row: row.simulated_ns)
    return round(1000 * chosen.measured_ns / min(row.measured_ns for row in table)) - 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and what they come to; 1 if a pair is in the wrong order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=DEVICES, action="append", help="may be repeated (default: both)")
    parser.add_argument("--profile", help="a latency profile (default: the device's)")
    options = parser.parse_args(arguments)
    wrong = 0
    for device in options.device or DEVICES:
        profile = load_profile(options.profile or device)
        for name, table in rows(device, profile).items():
            print(f"{name}, {profile.device}")
            wrong += _print(table)
    return 1 if wrong else 0


def _print(table: Sequence[Row]) -> int:
    width = max(len(row.name) for row in table)
    for row in table:
        times = f"{row.measured_ns / 1000:8,.0f} µs measured {row.simulated_ns / 1000:8,.0f} µs simulated"
        print(f"  {row.name:{width}} {times} {row.error_permille / 10:+6.1f} %  {row.limit}")
    pairs = wrong_pairs(table)
    errors = sorted(abs(row.error_permille) for row in table)
    print(
        f"  |error| median {errors[len(errors) // 2] / 10:.1f} %, worst {errors[-1] / 10:.1f} %; the simulated best is "
        f"{best_permille(table) / 10:.1f} % from the measured best; {len(pairs)} of "
        f"{len(table) * (len(table) - 1) // 2} pairs in the wrong order"
    )
    for fast, slow in pairs:
        apart = 100 * slow.measured_ns / fast.measured_ns - 100
        simulated_as = 100 * fast.simulated_ns / slow.simulated_ns - 100
        print(f"    {fast.name} is {apart:.1f} % faster than {slow.name}, simulated {simulated_as:.1f} % slower")
    print()
    return len(pairs)


if __name__ == "__main__":
    sys.exit(main())
