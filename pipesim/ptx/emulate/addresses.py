"""Addresses as a kernel sees them: shared memory of each CTA of the cluster, the generic window over it, tensor memory.

A shared address carries the rank of its CTA in bits 24 and up, as the hardware's do: kernels clear bit 24 to reach the
leader of a pair. Generic addresses of shared memory lie in a window of their own; those of other spaces are themselves.
"""

from __future__ import annotations

from pipesim.ptx.emulate.values import PerLane, Value, integers, lift

RANK_SHIFT = 24
SHARED_BASE = (
    0x400  #: of a CTA's variables: the first KiB is the system's (CUDA programming guide, compute capability 9)
)
WINDOW = 0x7F00_0000_0000  #: where the generic window over shared memory begins
WINDOW_END = WINDOW + (1 << 32)
LOCAL_WINDOW = 0x7F80_0000_0000  #: where generic addresses of local memory begin
LOCAL_WINDOW_END = LOCAL_WINDOW + (1 << 32)
MODULE_VARIABLES = 0x7D00_0000_0000  #: where the module's own variables in global and constant memory begin
_OFFSET = (1 << RANK_SHIFT) - 1


def to_generic(address: Value) -> Value:
    """The generic address of a shared one."""
    return address + WINDOW


def from_generic(address: Value) -> Value:
    """The shared address of a generic one."""
    return address - WINDOW


def _at_rank(address: int, rank: int) -> int:
    return (address & _OFFSET) | rank << RANK_SHIFT


def at_rank(address: Value, rank: Value) -> Value:
    """``mapa``: the same place in the CTA of this rank."""
    return lift(_at_rank, address, rank)


def rank_of(address: Value) -> Value:
    """The rank of the CTA in whose memory a shared address is."""
    return address >> RANK_SHIFT


def _low(address: int) -> int:
    return address - WINDOW if in_shared(address) else address


def of_shared(address: Value) -> Value:
    """The address that an instruction on ``.shared`` means; a generic one as well, of which the hardware uses the
    low bits.

    PTX does not define that (PTX ISA, "Addresses as Operands"), but public kernels do it in inline assembly.
    """
    if isinstance(address, int):
        return _low(address)
    if isinstance(address, PerLane) and not _some_generic(address.each):
        return address
    return lift(_low, address)


def _some_generic(each: list[Value]) -> bool:
    if integers(each) and max(each) < WINDOW:
        return False
    return any(isinstance(one, int) and in_shared(one) for one in each)


def in_shared(address: int) -> bool:
    """Whether a generic address is one of shared memory."""
    return WINDOW <= address < WINDOW_END


def place_of(address: int) -> tuple[int, int]:
    """CTA and offset in its variables of a shared address."""
    return int(address >> RANK_SHIFT), int((address & _OFFSET) - SHARED_BASE)
