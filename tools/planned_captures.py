"""The captures that the split names beside the stored ones: drawn by seed from the tables below.

``tools/trace_split.py`` writes them into ``traces/split.json``, and ``tools/split_captures.py`` captures what that file
names. Of every kernel 22 configurations that run long enough for a steady state, odd values of stages, tile bytes,
warps and trip counts among them, and so many of later draws as :data:`LATER` says, each for a new score when the others
had been read. Drawing takes a minute: what is drawn is tried against kernel and protocol.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.twins import REGISTRY, registered
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.targets import find
from pipesim.trace.steady import period_marks
from tools.odd_captures import copied, is_legal

COUNT = 22  #: of each kernel
RECORD_CTAS = 2  #: CTAs whose events are kept, or those of a cluster; the times of all are kept anyway
#: The largest launch: bytes that all CTAs copy. What other kernels copy is made on the host; these CTAs share theirs.
MOST_BYTES = 192 << 20
SHARED = {
    "gemm_sm90": 512 << 20,
    "attention_sm90": 2 << 30,
    "attention_sm90_fused": 2 << 30,
    "producer_consumer": 2 << 30,
}
_TRIES = 20_000
_SEED = 19
#: Of the later draws, by their numbers: the seed, and how many of each kernel to which a profile may be fitted (True),
#: and that are held out. Those of :data:`OTHER_VALUES` draw from that table.
LATER = {
    2: (20, {True: 12, False: 8}),
    3: (21, {True: 0, False: 8}),
    4: (22, {True: 0, False: 8}),
    5: (23, {True: 0, False: 8}),
    6: (24, {True: 14, False: 8}),
    7: (25, {True: 0, False: 8}),
    8: (26, {True: 0, False: 8}),
}

Values = Mapping[str, tuple[int, ...]]

#: Values of each kernel's parameters to draw from, a value twice where it is to come twice as often; ``grid`` is in
#: CTAs, or clusters where the protocol has them. A parameter that is not here keeps its default.
DRAWN: Mapping[str, Values] = {
    "producer_consumer": {
        "grid": (1, 1, 1, 1, 13, 131, 132),
        "stages": (1, 2, 3, 4, 5, 6, 7, 9, 11),
        "tiles": (96, 113, 160),
        "tile_bytes": (1040, 2048, 3072, 5120, 8192, 10240, 12288, 16384, 20480, 24576, 40960),
        "consumer_warps": (1, 2, 3, 4, 5, 6, 7, 8),
        "work": (0, 0, 111, 300, 777, 1100, 3001),
        "arrive_lanes": (1, 1, 1, 32),
    },
    "attention_sm90": {
        "grid": (1, 1, 1, 5, 132),
        "kv_blocks": (23, 24, 31, 40),
        "stages": (1, 2, 3, 4, 5, 7),
        "depth": (64, 128, 128),
        "block_n": (64, 128, 128, 128),
        "num_consumer": (1, 2, 2, 2),
        "pingpong": (0, 1, 1),
        "qk_stages": (1, 2),
    },
    "attention_sm90_fused": {
        "grid": (1, 1, 1, 5, 132),
        "kv_blocks": (23, 24, 31, 40),
        "stages": (2, 3, 4, 5, 6, 7, 9, 10, 13),
        "depth": (64, 128, 128),
        "block_n": (64, 128, 128, 128),
        "num_consumer": (1, 2, 2, 2),
        "pingpong": (0, 1, 1),
    },
    "cluster_multicast": {
        "grid": (1, 1, 1, 3, 16),
        "cluster": (1, 2, 2, 4, 8),
        "stages": (1, 2, 3, 4, 5, 6, 7, 9),
        "tiles": (31, 40, 56),
        "own_bytes": (1152, 2048, 4096, 6144, 8192, 10240, 12288, 16384, 24576),
        "consumer_warps": (1, 2, 3, 4, 5, 6, 7),
        "work": (0, 0, 201, 600, 1100, 2003),
    },
    "epilogue_residual": {
        "grid": (1, 1, 1, 13, 132),
        "tiles": (16, 24, 33),
        "k_iters": (1, 2, 3, 4, 5, 7, 9),
        "stages": (1, 2, 3, 4, 5, 6),
        "accumulators": (1, 2, 3),
        "epi_stages": (1, 2, 3, 4),
        "clc_stages": (1, 2, 3, 4),
        "slices": (1, 2, 3, 4, 5),
        "slice_bytes": (2048, 2048, 4096, 6144),
        "residual": (0, 1, 1),
        "epilogue": (0, 150, 150, 501, 1500),
    },
    "gemm_sm90": {
        "grid": (1, 1, 1, 5, 132),
        "tiles": (11, 16, 24),
        "k_iters": (4, 5, 7, 8, 11, 16),
        "stages": (1, 2, 3, 4, 5, 6, 7, 8),
        "k_group_size": (1, 1, 1, 2, 4),
        "num_consumer": (1, 2),
        "block_n": (64, 128, 128, 128, 256, 256, 256),
        "epilogue": (0, 300, 300, 1001, 2500),
        "lookahead": (0, 1),
        "drain": (0, 1),
    },
    "persistent_scheduler": {
        "grid": (1, 1, 1, 13, 132),
        "tiles": (16, 24, 31),
        "k_iters": (1, 2, 3, 4, 5, 7),
        "stages": (1, 2, 3, 4, 5, 6, 7),
        "tile_bytes": (2064, 4096, 6144, 8192, 10240, 12288, 16384, 24576),
        "consumer_warps": (1, 2, 3, 4, 5, 7),
        "work": (0, 150, 401, 600, 1000, 2003),
        "clc_stages": (1, 2, 3, 4),
    },
}
#: Values that the draws before the sixth do not have, most of them.
_OTHER: Mapping[str, Values] = {
    "producer_consumer": {
        "grid": (1, 1, 1, 7, 66, 132),
        "stages": (1, 2, 3, 4, 5, 6, 8, 10, 12),
        "tiles": (96, 128),
        "tile_bytes": (640, 1536, 4096, 6144, 7168, 14336, 18432, 28672, 32768, 49152),
        "consumer_warps": (1, 2, 3, 4, 5, 6, 7, 8),
        "work": (0, 50, 200, 450, 900, 1500),
        "arrive_lanes": (1, 1, 32),
    },
    "attention_sm90": {
        "grid": (1, 1, 1, 7, 66, 132),
        "kv_blocks": (16, 20, 28, 36),
        "stages": (1, 2, 3, 4, 6),
        "depth": (64, 128, 128),
        "block_n": (64, 128, 128),
        "num_consumer": (1, 2, 2),
        "pingpong": (0, 1),
        "qk_stages": (1, 2),
    },
    "attention_sm90_fused": {
        "grid": (1, 1, 1, 7, 66, 132),
        "kv_blocks": (16, 20, 28, 36),
        "stages": (2, 3, 4, 5, 6, 8, 9, 12),
        "depth": (64, 128, 128),
        "block_n": (64, 128, 128),
        "num_consumer": (1, 2, 2),
        "pingpong": (0, 1),
    },
    "cluster_multicast": {
        "grid": (1, 1, 2, 8),
        "cluster": (1, 2, 4, 8, 8),
        "stages": (1, 2, 3, 4, 5, 6, 8),
        "tiles": (31, 48),
        "own_bytes": (1024, 3072, 5120, 7168, 9216, 12288, 14336, 20480),
        "consumer_warps": (1, 2, 3, 4, 5, 6, 7, 8),
        "work": (0, 100, 400, 900, 1600),
    },
    "epilogue_residual": {
        "grid": (1, 1, 1, 7, 66),
        "tiles": (16, 28),
        "k_iters": (1, 2, 3, 6, 8, 12),
        "stages": (1, 2, 3, 4, 7),
        "accumulators": (1, 2, 3, 4),
        "epi_stages": (1, 2, 3, 5),
        "clc_stages": (1, 2, 3),
        "slices": (1, 2, 3, 4, 6),
        "slice_bytes": (2048, 4096, 6144, 8192),
        "residual": (0, 1),
        "epilogue": (0, 80, 300, 900, 2500),
    },
    "gemm_sm90": {
        "grid": (1, 1, 1, 7, 66, 132),
        "tiles": (12, 20),
        "k_iters": (6, 9, 12, 20, 24),
        "stages": (1, 2, 3, 4, 5, 6, 7),
        "k_group_size": (1, 1, 2, 3),
        "num_consumer": (1, 2),
        "block_n": (64, 128, 128, 256, 256),
        "epilogue": (0, 100, 700, 1800),
        "lookahead": (0, 1),
        "drain": (0, 1),
    },
    "persistent_scheduler": {
        "grid": (1, 1, 1, 7, 66),
        "tiles": (16, 28),
        "k_iters": (1, 2, 4, 6, 9),
        "stages": (1, 2, 3, 4, 5, 7, 8),
        "tile_bytes": (1040, 3072, 5120, 7168, 9216, 12288, 14336, 20480),
        "consumer_warps": (1, 2, 3, 4, 5, 6, 7, 8),
        "work": (0, 80, 300, 800, 1500),
        "clc_stages": (1, 2, 3, 5),
    },
}
#: The draws of these values.
OTHER_VALUES: Mapping[int, Mapping[str, Values]] = {6: _OTHER, 8: _OTHER}


def planned() -> tuple[CaptureRequest, ...]:
    """So many requests of every kernel, in the order of the registry: the same at every call."""
    return tuple(request for name in REGISTRY for request in islice(_draw(name, _SEED), COUNT))


def planned_later(number: int, fitted: Callable[[CaptureRequest], bool | None]) -> tuple[CaptureRequest, ...]:
    """Those of a later draw. ``fitted``: whether a profile may be fitted to a capture; None if it is known."""
    return tuple(request for name in REGISTRY for request in _by_part(name, number, fitted))


def _by_part(name: str, number: int, fitted: Callable[[CaptureRequest], bool | None]) -> Iterator[CaptureRequest]:
    """The first of a draw that are wanted of each part."""
    seed, wanted = LATER[number]
    taken: Counter[bool] = Counter()
    for request in _draw(name, seed, OTHER_VALUES.get(number, DRAWN)):
        part = fitted(request)
        if part is None or taken[part] == wanted[part]:
            continue
        taken[part] += 1
        yield request
        if taken == Counter(wanted):
            return


def request_of(name: str, params: Mapping[str, int], ctas: int) -> CaptureRequest:
    """The capture of a launch of so many CTAs of a kernel; parameters that are not given have their defaults."""
    whole = dict(find(name).defaults) | dict(params)
    cluster = whole.get("cluster", 1)
    return CaptureRequest(TwinSubject(name, ctas // cluster), whole, record_ctas=max(RECORD_CTAS, cluster))


def _draw(name: str, seed: int, values: Mapping[str, Values] = DRAWN) -> Iterator[CaptureRequest]:
    """Of many guesses those that the kernel can run and that have a steady state, each once."""
    rng = random.Random(f"{seed} {name}")
    seen: set[tuple[tuple[tuple[str, int], ...], int]] = set()
    for _ in range(_TRIES):
        guess = {parameter: rng.choice(choice) for parameter, choice in values[name].items()}
        if name == "cluster_multicast":
            guess["shared_bytes"] = guess["own_bytes"]  # the kernel wants both alike
        grid = guess.pop("grid")
        request = request_of(name, guess, grid * guess.get("cluster", 1))
        key = tuple(request.params.items()), grid
        if key in seen or not _is_timed(request):
            continue
        seen.add(key)
        yield request
    raise ConfigurationError(f"{len(seen)} configurations of {name} in {_TRIES:,} guesses", correction="widen DRAWN")


def _is_timed(request: CaptureRequest) -> bool:
    """Whether it can be captured, is small enough, and runs into a steady state."""
    name, grid = request.subject.name, request.subject.grid if isinstance(request.subject, TwinSubject) else 1
    try:
        registered(name).check(request.params, grid)
        program = find(name).build(dict(request.params), grid=request.ctas)
    except (ParameterError, ConfigurationError):
        return False
    return (
        period_marks(program) is not None
        and copied(program) <= SHARED.get(name, MOST_BYTES)
        and is_legal(replace(request, subject=TwinSubject(name)))  # its limit of bytes is meant for one CTA here
    )
