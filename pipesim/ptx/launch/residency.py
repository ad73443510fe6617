"""How many CTAs of a launch a device holds at the same time (CUDA programming guide, "Compute Capabilities")."""

from __future__ import annotations

from math import prod

from pipesim.model.tables import BLACKWELL
from pipesim.model.warp_shape import WARP, register_bound
from pipesim.ptx.launch.values import Launch

_SMS = 132  #: of an H100 SXM and an H200
_SMS_BLACKWELL = 148  #: of a B200
_THREADS, _CTAS, _SHARED = 2_048, 32, 228 << 10  #: of an SM
_RESERVED = 1 << 10  #: bytes of shared memory that the system uses for each CTA


def ctas_that_fit(launch: Launch, shared_bytes: int, architecture: int) -> tuple[int, int]:
    """The most CTAs that are on the device at a time, as far as the launch says what they need; and the SMs of it.

    ``shared_bytes``: of a CTA, dynamic ones included. Registers count where the launch file has them.
    """
    warps = -(-prod(launch.block) // WARP)
    each = min(_CTAS, _THREADS // (WARP * warps), _SHARED // (shared_bytes + _RESERVED))
    while launch.registers and each and register_bound(warps, each) < launch.registers:
        each -= 1
    sms = _SMS_BLACKWELL if architecture >= BLACKWELL else _SMS
    return sms * each, sms
