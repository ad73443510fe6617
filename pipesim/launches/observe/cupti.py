"""CUPTI's callback interface, as far as observing the driver's calls needs it (``cupti_callbacks.h``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes import CFUNCTYPE, byref, c_int, c_uint32, c_void_p
from pathlib import Path
from typing import Any

from pipesim.errors import PipesimError

_CALLBACK = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_void_p)
_DRIVER_DOMAIN = 1  #: CUPTI_CB_DOMAIN_DRIVER_API
_OTHERS = 39  #: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED


class CuptiError(PipesimError):
    """CUPTI cannot be used in this process. ``taken``: another profiler has it, and no other CUPTI will do."""

    taken = False


class Subscription:
    """Calls a function at each of the driver's calls with the given numbers, before it and after it.

    ``callback(number, data)`` has the address of a CallbackData. CuptiError if CUPTI refuses; OSError without it.
    """

    def __init__(self, library: Path | str, numbers: Iterable[int], callback: Callable[[int, int], None]) -> None:
        self._cupti = ctypes.CDLL(str(library))
        self._handle = c_void_p()

        def called(_: Any, domain: int, number: int, data: int) -> None:
            if domain == _DRIVER_DOMAIN:
                callback(number, data)

        self._called = _CALLBACK(called)  # kept: CUPTI holds its address
        self._require(self._cupti.cuptiSubscribe(byref(self._handle), self._called, None), "subscribe")
        for number in numbers:  # an older CUPTI does not know the newest functions, which then are not called either
            self._cupti.cuptiEnableCallback(c_uint32(1), self._handle, c_int(_DRIVER_DOMAIN), c_uint32(number))

    def close(self) -> None:
        """End the calls."""
        if self._handle.value:
            self._cupti.cuptiUnsubscribe(self._handle)
            self._handle = c_void_p()

    def _require(self, status: int, what: str) -> None:
        if status == _OTHERS:
            error = CuptiError(
                "another profiler observes this process",
                cause="CUPTI serves one subscriber at a time: Nsight, torch.profiler or Triton's Proton",
                correction="end it, or capture the launches in a run of their own",
            )
            error.taken = True
            raise error
        if status:
            raise CuptiError(
                f"CUPTI cannot {what}: error {status}", cause="CUPTI and the driver may be of two versions"
            )
