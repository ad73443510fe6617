"""What an instruction does that other warps notice or wait for: barriers, copies, groups, accesses of memory."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pipesim.coredump.sass.word import RZ, URZ, Word


class SassSync(Enum):
    """The kinds. The value is a phrase for a sentence."""

    INIT = "mbarrier init"
    WAIT = "mbarrier wait"
    ARRIVE = "mbarrier arrive"
    EXPECT = "mbarrier expect_tx"
    COMPLETE = "mbarrier complete_tx"
    INVALIDATE = "mbarrier inval"
    CP_ASYNC_ARRIVE = "cp.async arrive"
    COPY = "bulk copy"
    TENSOR_COPY = "tensor copy"
    TENSOR_COMMIT = "tcgen05 commit"
    STORE_ASYNC = "st.async"
    BAR_SYNC = "bar.sync"
    BAR_ARRIVE = "bar.arrive"
    CLUSTER_ARRIVE = "cluster arrive"
    CLUSTER_WAIT = "cluster wait"
    COMMIT = "commit of a group of copies"
    GROUP_WAIT = "wait for groups of copies"
    WGMMA_WAIT = "wait for wgmma groups"
    ASK_REGISTERS = "setmaxnreg.inc"
    GIVE_REGISTERS = "setmaxnreg.dec"
    SLEEP = "nanosleep"
    LANES = "warp barrier"
    PRIMARY_WAIT = "griddepcontrol.wait"
    LOAD = "load"
    SHARED_LOAD = "load of shared memory"
    STORE = "store"
    SHARED_STORE = "store to shared memory"
    ATOMIC = "atomic operation"
    SWAP = "compare-and-swap"
    SHARED_ATOMIC = "atomic operation on shared memory"
    BRANCH = "branch"
    CALL = "call"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """An address: a register, a uniform register and an offset; -1 for one that it does not have."""

    register: int
    uniform: int
    offset: int


@dataclass(frozen=True, slots=True)
class SyncInstruction:
    """One of them. ``register``: the operand that a kind has, -1 if none: of a wait the word with the parity in bit 31,
    of an expect the bytes, of an arrive the count, of a named barrier its number, of a store or an atomic operation
    what it stores or adds; ``threads``: the register with those.

    ``number``: an immediate instead: the named barrier, pending groups, registers, which atomic operation it is.
    ``count``: threads of a named barrier (0: all of the CTA). ``arrives``: an arrive, 0 of an expect_tx alone.
    ``expects``: it raises the bytes.
    """

    kind: SassSync
    address: MachineAddress | None = None
    register: int = -1
    number: int = -1
    count: int = 0
    threads: int = -1
    arrives: bool = False
    expects: bool = False
    remote: bool = False  #: of the cluster's window: the CTA is in the address
    multicast: bool = False


_SIMPLE = {
    0x9C7: SassSync.CLUSTER_ARRIVE, 0xDC7: SassSync.CLUSTER_WAIT, 0x9B7: SassSync.COMMIT, 0x9AF: SassSync.COMMIT,
    0x82E: SassSync.PRIMARY_WAIT, 0x94D: SassSync.EXIT,
    0x95D: SassSync.SLEEP, 0x35D: SassSync.SLEEP,
    0x348: SassSync.LANES, 0x948: SassSync.LANES, 0x941: SassSync.LANES,
    0x947: SassSync.BRANCH, 0x547: SassSync.BRANCH, 0x949: SassSync.BRANCH, 0x94A: SassSync.BRANCH,
    0x944: SassSync.CALL, 0x950: SassSync.CALL,
}  # fmt: skip
_REDUCTION = 0x18E  #: RED has no exchange: above its three bits for the operation is that of a descriptor
_MEMORY = {
    0x180: SassSync.LOAD, 0x181: SassSync.LOAD, 0x184: SassSync.SHARED_LOAD, 0x185: SassSync.STORE,
    0x186: SassSync.STORE, 0x188: SassSync.SHARED_STORE, 0x18A: SassSync.ATOMIC, 0x18B: SassSync.SWAP,
    0x1A8: SassSync.ATOMIC, 0x1A9: SassSync.SWAP, _REDUCTION: SassSync.ATOMIC,
    0x18C: SassSync.SHARED_ATOMIC, 0x18D: SassSync.SHARED_ATOMIC,
}  # fmt: skip
#: LD and ST of an address of 32 bits are of shared memory, of any CTA of the cluster.
_OF_CLUSTER = {0x180: SassSync.SHARED_LOAD, 0x185: SassSync.SHARED_STORE}
_LOADED = frozenset({SassSync.LOAD, SassSync.SHARED_LOAD})
GLOBAL_MEMORY = frozenset({SassSync.LOAD, SassSync.STORE, SassSync.ATOMIC, SassSync.SWAP})  #: addresses of 64 bits
_MULTICAST = 1 << 11


def sync_of(word: Word, *, wide: bool) -> SyncInstruction | None:
    """What an instruction does of this, None for any other.

    ``wide``: of sm_100 and later, with 8 bits for a uniform register where sm_90 has 6.
    """
    simple = _SIMPLE.get(word.opcode)
    if simple is not None:
        return SyncInstruction(simple)
    base = word.opcode & 0x1FF
    memory = _MEMORY.get(base)
    if memory is not None and word.opcode >> 9 in (1, 4):
        remote = base in _OF_CLUSTER and not word.high & (_HAS_DESCRIPTOR | _HAS_64_BITS)
        memory = _OF_CLUSTER[base] if remote else memory
        value = word.rc if memory is SassSync.SWAP else -1 if memory in _LOADED else word.rb
        number = word.high >> 23 & (7 if base == _REDUCTION else 0xF)
        return SyncInstruction(memory, _address(word, wide=wide), value, number, remote=remote)
    if base in _ON_ADDRESS:
        return _ON_ADDRESS[base](word, _address(word, wide=wide))
    return _OTHERS[base](word) if base in _OTHERS else None


_HAS_UNIFORM, _HAS_DESCRIPTOR, _HAS_64_BITS = 1 << 27, 1 << 26, 1 << 12
_LOADS = frozenset({0x980, 0x981, 0x984})
_DESCRIBED = (0x1A8, 0x1A9)  #: ATOMG: its uniform register is always that of a descriptor


def _address(word: Word, *, wide: bool) -> MachineAddress:
    """A uniform register is in the place of the third operand, of a load in that of the second; or a descriptor is."""
    uniform, zero = -1, RZ if wide else URZ
    if word.high & _HAS_UNIFORM and not (word.high & _HAS_DESCRIPTOR or word.opcode & 0x1FF in _DESCRIBED):
        uniform = (word.rb if word.opcode in _LOADS else word.high) & zero
    return MachineAddress(word.ra if word.ra != RZ else -1, uniform if uniform != zero else -1, word.offset)


def _syncs(word: Word, address: MachineAddress) -> SyncInstruction:
    """PHASECHK has a form of its own. What else arrives and is expected is in three bits.

    0 arrives and expects what a register says; A1T0 is 1, A0T1 2, A0TR 3, A0TX 4, ART0 5.
    """
    if word.opcode == 0x5A7:
        return SyncInstruction(SassSync.WAIT, address, word.rb)
    way = word.high >> 20 & 7
    arrives, expects = way in (0, 1, 5), way in (0, 2, 3)
    return SyncInstruction(
        SassSync.ARRIVE if arrives else SassSync.EXPECT if expects else SassSync.COMPLETE,
        address,
        word.rb if way in (0, 3, 4, 5) else -1,
        number=way,
        arrives=arrives,
        expects=expects,
        remote=bool(word.high >> 10 & 1),
    )


def _cp_async_arrive(word: Word, address: MachineAddress) -> SyncInstruction:
    """ARVCNT, with ``.noinc``, is an arrival; TRANSCNT takes back what was added to the bytes before."""
    later = word.high >> 12 & 3  # since sm_100; before, bits 70 and 71 say which
    counts = bool(later & 1) if later else bool(word.high >> 6 & 1)
    return SyncInstruction(SassSync.CP_ASYNC_ARRIVE, address, arrives=counts)


def _init(word: Word) -> SyncInstruction:
    return SyncInstruction(SassSync.INIT, MachineAddress(-1, word.ra, word.offset), word.rb)


def _tensor_copy(word: Word) -> SyncInstruction:
    """The barrier is in the uniform register after that of the destination."""
    return SyncInstruction(
        SassSync.TENSOR_COPY, MachineAddress(-1, word.rb + 1, 0), multicast=bool(word.high & _MULTICAST)
    )


def _bulk_copy(word: Word) -> SyncInstruction | None:
    """The same; of a copy to global memory there is no barrier. The bytes are 16 times a uniform register."""
    if not word.high >> 9 & 1:
        return None
    return SyncInstruction(
        SassSync.COPY, MachineAddress(-1, word.rb + 1, 0), word.high & URZ, multicast=bool(word.high & _MULTICAST)
    )


def _tensor_commit(word: Word) -> SyncInstruction:
    target = MachineAddress(-1, word.ra, 0)
    return SyncInstruction(SassSync.TENSOR_COMMIT, target, arrives=True, multicast=bool(word.high & _MULTICAST))


def _store_async(word: Word) -> SyncInstruction | None:
    """The barrier is in the register after the address."""
    wanted = word.opcode in (0xDBD, 0xDBE)
    return SyncInstruction(SassSync.STORE_ASYNC, MachineAddress(word.ra + 1, -1, 0), remote=True) if wanted else None


def _group_wait(word: Word) -> SyncInstruction:
    return SyncInstruction(SassSync.GROUP_WAIT, number=word.low >> 38 & 0x3F, count=word.low >> 44 & 7)


def _wgmma_wait(word: Word) -> SyncInstruction | None:
    return SyncInstruction(SassSync.WGMMA_WAIT, number=word.high >> 8 & 7) if word.low >> 47 & 1 else None


def _registers(word: Word) -> SyncInstruction:
    kind = SassSync.ASK_REGISTERS if word.high >> 9 & 1 else SassSync.GIVE_REGISTERS
    return SyncInstruction(kind, number=word.immediate & 0x3FF)


def _named(word: Word) -> SyncInstruction:
    """BAR: the number in bits 54 to 57 or a register, the threads in bits 42 to 53 or a register, or both in one."""
    kind = SassSync.BAR_ARRIVE if word.high >> 13 & 3 == 1 else SassSync.BAR_SYNC
    number, count = word.low >> 54 & 0xF, word.low >> 42 & 0xFFF
    match word.opcode >> 9:
        case 5:
            return SyncInstruction(kind, number=number, count=count)
        case 4:
            return SyncInstruction(kind, number=number, threads=word.rb)
        case 2:
            return SyncInstruction(kind, register=word.rb, count=count)
        case _:
            return SyncInstruction(kind, register=word.rb, threads=word.rb)  # packed: the threads from bit 16 on


_ON_ADDRESS: dict[int, Callable[[Word, MachineAddress], SyncInstruction]] = {
    0x1A7: _syncs,
    0x1B0: _cp_async_arrive,
    0x1B1: lambda _, address: SyncInstruction(SassSync.INVALIDATE, address),
}
_OTHERS: dict[int, Callable[[Word], SyncInstruction | None]] = {
    0x1B2: _init, 0x1B4: _tensor_copy, 0x1BA: _bulk_copy, 0x1E9: _tensor_commit, 0x1BD: _store_async,
    0x1BE: _store_async, 0x11D: _named, 0x11A: _group_wait, 0x1C5: _wgmma_wait, 0x1C8: _registers,
}  # fmt: skip
