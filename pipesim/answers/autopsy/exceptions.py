"""What stopped the kernels of a dump that is not of a hang: exceptions of warps (CUDA-GDB, "GPU exceptions").

An exception stops every warp of its context where it is, so that nothing is known of their waits.
"""

from collections.abc import Iterator

from pipesim.answers.autopsy.coded_dump import CodedDump
from pipesim.coredump.dump import DumpWarp
from pipesim.coredump.sass.sync import SassSync, sync_of
from pipesim.coredump.sass.word import SIZE, Word

_WORDS = {
    1: "illegal address", 2: "stack overflow", 3: "stack overflow", 4: "illegal instruction", 5: "address out of range",
    6: "misaligned address", 7: "invalid address space", 8: "invalid program counter", 9: "stack overflow",
    10: "illegal address", 11: "misaligned address", 12: "failed assertion", 13: "error of a system call",
    14: "illegal address", 15: "illegal atomic operation", 16: "illegal atomic operation",
    17: "address out of range in the cluster", 18: "access to a CTA of the cluster that is not there",
    19: "damaged stack", 20: "access to tensor memory that is not allowed", 21: "tensor memory that was not freed",
}  # fmt: skip
_ILLEGAL_INSTRUCTION = 4
_BREAKPOINT = 0x95C
_COUNTED = frozenset({SassSync.ARRIVE, SassSync.EXPECT, SassSync.COMPLETE})


def exception_words(number: int) -> str:
    """An exception in words; later drivers have more of them."""
    return _WORDS.get(number, f"exception {number}")


def exception_of(dump: CodedDump, warp: DumpWarp) -> tuple[str, str]:
    """What stopped a warp, and the line: where the hardware does not say it, that of the warp. "" if nothing did."""
    trapped = 0
    if not warp.exception and warp.is_broken and warp.lanes:
        trapped = next((n for n in (0, SIZE) if _word_at(dump, warp.lanes[0].pc - n).opcode == _BREAKPOINT), -1)
        if trapped < 0:
            return "", ""
    if not (warp.exception or warp.is_broken):
        return "", ""
    pc = warp.error_pc or (warp.lanes[0].pc - trapped if warp.lanes else 0)
    said = exception_words(warp.exception) if warp.exception else "trap"
    sync = sync_of(_word_at(dump, pc), wide=dump.wide)
    if warp.exception == _ILLEGAL_INSTRUCTION and sync is not None and sync.kind in _COUNTED:
        said += ": an mbarrier gets more arrivals or bytes than it can count"
    return said, _place(dump, pc)


def elsewhere(dump: CodedDump) -> Iterator[str]:
    """Exceptions of warps that are not in the dump any more, as its SMs have them."""
    known = {warp.exception for cta in dump.dump.ctas for warp in cta.warps}
    for sm, number, pc in dump.dump.exceptions:
        if number not in known:
            at = f" ({_place(dump, pc)})" if pc else ""
            yield f"SM {sm} was stopped by an exception: {exception_words(number)}{at}; its warp is not there any more"


def is_stopped(dump: CodedDump) -> bool:
    """Whether an exception stopped the kernels."""
    warps = (warp for cta in dump.dump.ctas for warp in cta.warps if warp.exception or warp.is_broken)
    return bool(dump.dump.exceptions) or any(exception_of(dump, warp)[0] for warp in warps)


def _word_at(dump: CodedDump, pc: int) -> Word:
    code = dump.standings.code_at(pc)
    found = code.word_at(pc - code.address) if code is not None else None
    return found or Word(0, 0)


def _place(dump: CodedDump, pc: int) -> str:
    code = dump.standings.code_at(pc)
    return dump.place(code, pc - (code.address if code is not None else 0))
