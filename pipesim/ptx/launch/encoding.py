"""The bytes of a value of one of a launch file's types."""

from __future__ import annotations

import struct

from pipesim.ptx.launch.values import TYPES

_FLOATS = {"f16": "e", "f32": "f", "f64": "d"}


def encoded(kind: str, value: int | float) -> bytes:
    """The bytes of a value; a whole number for a floating-point type gives its value, not its bits.

    An integer is taken modulo its size. Raises ValueError for a number that a floating-point type does not hold.
    """
    try:
        if kind in _FLOATS:
            return struct.pack(f"<{_FLOATS[kind]}", value)
        if kind == "bf16":
            return struct.pack("<f", value)[2:]
        return (int(value) % (1 << 8 * TYPES[kind])).to_bytes(TYPES[kind], "little")
    except OverflowError:
        raise ValueError(f"{value} does not fit {kind}") from None
