"""The recordings of the checkout, and which of them ``.ci/run`` takes where a test is about every one.

What a recording is one of is in its name: device, kernel, how the work overlaps, one CTA or several, and what is
special, such as a fault, a window, another clock, records that went elsewhere. Of every kind the smallest is taken. The
others have the marker ``long``.
"""

import re
from collections.abc import Container, Iterable
from functools import cache

import pytest
from _pytest.mark import ParameterSet

from tests.support.paths import TRACES

#: ``h200/gemm_sm90-bk64-d1-l1-t2-g1-both.parquet``: a folder, the kernel, its parameters, the CTAs, what is special.
_NAME = re.compile(r"(?P<device>[^/]+)/(?P<kernel>[^-]+)-(?P<params>.*?)-g(?P<ctas>\d+)(?P<special>.*)\.parquet")
#: Parameters that choose another order of the same work: the GEMM's look ahead, the ping-pong of the attentions.
_OVERLAP = re.compile(r"(?<=-)[lp][01](?=-|$)")

#: Every recording of a twin, by its path below ``traces``.
RECORDINGS = tuple(sorted(str(path.relative_to(TRACES)) for path in TRACES.glob("*/*.parquet")))


def kind_of(name: str) -> tuple[str, ...]:
    """What a recording is one of; the last word is what is special, empty of a plain one.

    ValueError for a name that no recording has.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"no name of a recording: {name}")
    overlap = _OVERLAP.findall(found["params"])
    return (found["device"], found["kernel"], *overlap, "one" if found["ctas"] == "1" else "several", found["special"])


@cache
def size_of(name: str) -> int:
    """The bytes of a recording's file."""
    return (TRACES / name).stat().st_size


def one_of_each(names: Iterable[str], most: int = 1 << 30) -> frozenset[str]:
    """The smallest of every kind that has one of at most this many bytes."""
    smallest: dict[tuple[str, ...], str] = {}
    for name in sorted(names, key=lambda name: (size_of(name), name)):
        smallest.setdefault(kind_of(name), name)
    return frozenset(name for name in smallest.values() if size_of(name) <= most)


def sampled(names: Iterable[str], kept: Container[str], fast: Container[str] = frozenset()) -> list[ParameterSet]:
    """One parameter, the names of recordings: those of ``fast`` in the fast lane, others in the slow one.

    At length only are those that are not ``kept``.
    """
    return [
        pytest.param(name, marks=() if name in fast else pytest.mark.slow if name in kept else pytest.mark.long)
        for name in names
    ]
