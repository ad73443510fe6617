"""Launches like one before, counted by the library in C: such a launch costs less than a microsecond.

The library is that of programs which are not Python (``inject/alike.h``). Where it could not be built, every launch is
reported to Python, which takes about ten times as long.
"""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from typing import Any

from pipesim.bounds import MAX_TEXT
from pipesim.inputs import json_value

ALL, AT_ITS_END = 1 << 29, 1 << 28  #: of an answer: for all launches of the function; to be asked again after it
MOST = 1 << 16  #: counters

_ASK = CFUNCTYPE(c_int, c_uint32, c_void_p)


class AlikeLaunches:
    """Calls ``ask(number, data)`` about launches of new kinds, and counts the others. OSError without the library."""

    def __init__(self, library: str, ask: Callable[[int, int], int]) -> None:
        loaded = ctypes.CDLL(library)
        loaded.pipesim_count.restype = POINTER(c_uint64)
        self._ask = _ASK(ask)  # kept: the library holds its address
        self._counters = loaded.pipesim_count(self._ask)
        if not self._counters:
            raise OSError("the library cannot ask the driver")
        self.called: Any = loaded.pipesim_called  #: what CUPTI calls
        loaded.pipesim_map.restype, loaded.pipesim_map.argtypes = c_char_p, [c_char_p]
        self._map, self._graphs, self._leave_out = loaded.pipesim_map, loaded.pipesim_graphs, loaded.pipesim_leave_out
        self._graphs.restype = POINTER(c_uint32)

    def graphs(self, *, recorded: bool) -> tuple[int, ...]:
        """Have each kernel of a graph that is launched asked about, or not any more; the calls to report for that."""
        found, numbers = self._graphs(c_int(recorded)), list[int]()
        while found[len(numbers)]:
            numbers.append(found[len(numbers)])
        return tuple(numbers)

    def leave_out(self, function: int, places: Sequence[int]) -> None:
        """Launches of a function may differ in these bytes of its parameters, which lie one after the other."""
        self._leave_out(c_void_p(function), (c_uint32 * len(places))(*places), c_uint32(len(places)))

    def count(self, counter: int) -> int:
        """Launches that were counted, and not asked about."""
        return int(self._counters[counter])

    def members_of(self, data: bytes) -> dict[str, Any] | None:
        """What the library knows about a tensor map that was encoded, by its 128 bytes; None of other bytes."""
        text: bytes | None = self._map(data)
        found: dict[str, Any] | None = None if text is None else json_value(text.decode(), MAX_TEXT)
        return found
