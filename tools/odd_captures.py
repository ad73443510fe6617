"""Captures at parameters that were never recorded, compared with the protocols: ``python tools/odd_captures.py``.

Draws configurations of every kernel of the registry in turn: primes, ones, largest values and odd combinations that the
kernel and its protocol allow, none of which is stored in ``traces`` or belongs there, each small enough for about a
second. Prints the seed and a table; ``--seed`` draws the same again, ``--only NAME`` takes one kernel, ``--list``
draws and needs no GPU, ``--json FILE`` writes the table's rows. Ends with 1 if one of them does not conform.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, TwinSubject, capture
from hwkernels.capture.pipeline import compile_builds
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY, registered
from hwkernels.twins.twin import Range
from pipesim.conform.agreement import Agreement, agreement_of
from pipesim.errors import ConfigurationError, ParameterError, PipesimError
from pipesim.model.ops import AT, Op, operand
from pipesim.model.program import Program
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.library import stored_traces, trace_folder

Configuration = tuple[str, tuple[tuple[str, int], ...], int]  #: kernel, parameters by name, CTAs of the launch

GRIDS = (1, 2, 3, 5, 7, 13, 31, 67, 131)  #: CTAs, or clusters where the protocol has them
#: The largest value that is drawn of a parameter, where its range goes further.
CAPS = {
    "tiles": 61, "k_iters": 37, "kv_blocks": 29, "work": 2999, "epilogue": 2999, "order_delay": 2999,
    "tile_bytes": 1 << 16, "own_bytes": 1 << 15, "slice_bytes": 1 << 13,
}  # fmt: skip
#: What only the model is told of a kernel stays as it is; upstream's order of the loads, which can hang, is not drawn.
FIXED = {"atomic", "softmax", "first_tile_only"}
#: Parameters of a kernel that must be those of another.
SAME = {("cluster_multicast", "shared_bytes"): "own_bytes"}
#: A run that takes about a second: operations of a CTA or cluster; bytes that all CTAs copy, more than none.
MOST_OPERATIONS, MOST_BYTES = 20_000, 64 << 20
_TRIES = 5000


@dataclass(frozen=True)
class Row:
    """One capture: what was run, whether its trace conforms, and how many elements of its results are wrong.

    ``agreement``: the word of the documents, or "failed"; ``reason``: why it does not conform, "" if it does.
    """

    kernel: str
    params: dict[str, int]
    ctas: int
    agreement: str
    reason: str
    wrong: int
    events: int
    seconds: float

    @property
    def good(self) -> bool:
        """It conforms, and its results are right."""
        return self.agreement == Agreement.CONFORMS.value and self.wrong == 0


def draw(count: int, seed: int, kernels: Sequence[str] = ()) -> list[CaptureRequest]:
    """So many different requests, the kernels in turn; the same for the same seed, registry and stored traces."""
    rng, taken = random.Random(seed), stored()
    drawn: list[CaptureRequest] = []
    for name in islice(cycle(kernels or tuple(REGISTRY)), count):
        request = _draw_one(name, rng, taken)
        taken.add(configuration(request))
        drawn.append(request)
    return drawn


def stored() -> set[Configuration]:
    """What is recorded already, and what belongs into the stored traces."""
    known = {configuration(recorded_request(name, r)) for name, twin in REGISTRY.items() for r in twin.recorded}
    metas = [trace.meta for trace in stored_traces(trace_folder())]
    return known | {(meta.protocol, tuple(sorted(meta.params.items())), meta.grid) for meta in metas}


def configuration(request: CaptureRequest) -> Configuration:
    """What makes two requests the same one here."""
    return request.subject.name, tuple(sorted(request.params.items())), request.ctas


def _draw_one(name: str, rng: random.Random, taken: set[Configuration]) -> CaptureRequest:
    """The first of many guesses that is legal, small and new. ConfigurationError if there is none."""
    for _ in range(_TRIES):
        request = CaptureRequest(
            TwinSubject(name, rng.choice(GRIDS)), _guess(name, rng), repetitions=1, seed=rng.randrange(1 << 16)
        )
        if configuration(request) not in taken and is_legal(request):
            return request
    raise ConfigurationError(f"no configuration of {name} was found in {_TRIES:,} guesses", correction="raise CAPS")


def _guess(name: str, rng: random.Random) -> dict[str, int]:
    """A value for every parameter within its range: the smallest, the largest, a prime or any."""
    params = dict(find(name).defaults)
    for parameter, allowed in registered(name).ranges.items():
        if parameter not in FIXED:
            params[parameter] = _value(allowed, CAPS.get(parameter, allowed.high), rng)
    return params | {mine: params[other] for (kernel, mine), other in SAME.items() if kernel == name}


def _value(allowed: Range, cap: int, rng: random.Random) -> int:
    if allowed.one_of:
        return rng.choice(allowed.one_of)
    step = allowed.multiple_of
    low, high = -(-allowed.low // step), min(allowed.high, cap) // step
    primes = [n for n in range(max(low, 2), high + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]
    kind = rng.random()
    if kind < 0.1 or low == high:
        return low * step
    if kind < 0.2:
        return high * step
    if kind < 0.7 and primes:  # small primes as often as large ones: of shared memory there is little
        return rng.choice(primes[: rng.randint(1, len(primes))]) * step
    return rng.randint(low, high) * step


def is_legal(request: CaptureRequest) -> bool:
    """Whether kernel and protocol allow the request, and it is of the size that is wanted here."""
    try:
        check_request(request)
        if request.subject.shape(request.params).smem_bytes > MAX_SMEM:
            return False
        program = find(request.subject.name).build(dict(request.params), grid=request.ctas)
        if sum(map(len, program.code)) > MOST_OPERATIONS or not 0 < copied(program) <= MOST_BYTES:
            return False
        plan(request)
    except (ParameterError, ConfigurationError):
        return False
    return True


def copied(program: Program) -> int:
    """Bytes that all CTAs of the launch copy."""
    copies = (Op.TMA_LOAD, Op.TRANSFER_READ, Op.TRANSFER_WRITE)
    assert all(op in AT["bytes"] for op in copies)
    return program.grid * sum(operand(op, "bytes") for code in program.code for op in code if op[0] in copies)


def capture_and_compare(request: CaptureRequest) -> Row:
    """Run it and compare its trace with the protocol. An error of any capture is a row, too."""
    begun = time.monotonic()
    name, params = request.subject.name, dict(request.params)
    try:
        trace = capture(request)
        answer = agreement_of(find(name).build(params, grid=request.ctas), trace)
        said = str(answer.conformance.divergence or answer.reason) if answer.reason else ""
        agreement, wrong, events = answer.agreement.value, trace.meta.wrong_tiles or 0, len(trace.events)
    except PipesimError as error:
        agreement, said, wrong, events = "failed", str(error).replace("\n", "; "), 0, 0
    return Row(name, params, request.ctas, agreement, said, wrong, events, round(time.monotonic() - begun, 2))


def compile_all(requests: Sequence[CaptureRequest], jobs: int) -> None:
    """Fill the cache of compiled kernels on all processors."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for _ in pool.map(_compile, requests):
            pass


def _compile(request: CaptureRequest) -> int:
    return len(compile_builds(request))


def words(kernel: str, params: Mapping[str, int]) -> str:
    """The parameters that are not the protocol's defaults, as they are written after ``-p``."""
    usual = find(kernel).defaults
    return " ".join(f"{name}={value}" for name, value in params.items() if usual[name] != value) or "defaults"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows, one a line, and the reason below one that is not good."""
    yield f"{'kernel':<22} {'CTAs':>4}  {'agreement':<10} {'wrong':>5} {'events':>7} {'s':>5}  parameters"
    for row in rows:
        yield (
            f"{row.kernel:<22} {row.ctas:>4}  {row.agreement:<10} {row.wrong:>5} {row.events:>7,} {row.seconds:>5.1f}  "
            f"{words(row.kernel, row.params)}"
        )
        if not row.good:
            yield f"    {row.reason or 'wrong results'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, capture, compare; 1 if one of them does not conform."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=42, help="how many configurations (default 42)")
    parser.add_argument("--seed", type=int, default=None, help="of the draw (default: another each time)")
    parser.add_argument("--only", choices=tuple(REGISTRY), action="append", default=[], help="one kernel; repeatable")
    parser.add_argument("--list", action="store_true", help="draw only: needs no GPU")
    parser.add_argument("--json", type=Path, default=None, help="write the rows to this file")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    requests = draw(options.count, seed, options.only)
    print(f"seed {seed}: {len(requests)} configurations, none of them stored", flush=True)
    if options.list:
        for request in requests:
            print(f"{request.subject.name:<22} {request.ctas:>4}  {words(request.subject.name, request.params)}")
        return 0
    compile_all(requests, os.cpu_count() or 1)
    rows = [capture_and_compare(request) for request in requests]
    print("\n".join(table(rows)))
    good = sum(row.good for row in rows)
    print(f"{good} of {len(rows)} conform, {sum(row.events for row in rows):,} events")
    if options.json is not None:
        document: dict[str, Any] = {"seed": seed, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
