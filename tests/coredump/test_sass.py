"""Instructions as the toolkit's disassembler shows them: each is decoded to what it synchronises, with its operands."""

import re
from pathlib import Path

import pytest

from pipesim.coredump.sass.sync import MachineAddress, SassSync, SyncInstruction, sync_of
from pipesim.coredump.sass.word import RZ, Word
from tests.support.present import present

#: How the text of each kind begins.
KINDS = {
    r"SYNCS\.PHASECHK": SassSync.WAIT, r"SYNCS\.EXCH": SassSync.INIT, r"SYNCS\.CCTL": SassSync.INVALIDATE,
    r"SYNCS\.ARRIVE.*\.A0T[R1]": SassSync.EXPECT, r"SYNCS\.ARRIVE.*\.A0TX": SassSync.COMPLETE,
    r"SYNCS\.ARRIVE": SassSync.ARRIVE, r"ARRIVES": SassSync.CP_ASYNC_ARRIVE, r"BAR\.ARV": SassSync.BAR_ARRIVE,
    r"BAR\.": SassSync.BAR_SYNC, "UCGABAR_ARV": SassSync.CLUSTER_ARRIVE, "UCGABAR_WAIT": SassSync.CLUSTER_WAIT,
    r"UBLKCP\.S": SassSync.COPY, "UTMALDG": SassSync.TENSOR_COPY, "UTCBAR": SassSync.TENSOR_COMMIT,
    "DEPBAR": SassSync.GROUP_WAIT, r"WARPGROUP\.DEPBAR": SassSync.WGMMA_WAIT, "NANOSLEEP": SassSync.SLEEP,
    r"USETMAXREG\.TRY": SassSync.ASK_REGISTERS, r"USETMAXREG\.DEALLOC": SassSync.GIVE_REGISTERS,
    "UTMACMDFLUSH|LDGDEPBAR": SassSync.COMMIT, "WARPSYNC|BSYNC": SassSync.LANES, "ACQBULK": SassSync.PRIMARY_WAIT,
    "STAS|REDAS": SassSync.STORE_ASYNC, r"LDG\.": SassSync.LOAD, "LDS": SassSync.SHARED_LOAD,
    r"ATOMG.*CAS": SassSync.SWAP, "ATOMG|REDG": SassSync.ATOMIC,
}  # fmt: skip
LINES = (Path(__file__).parent / "instructions.txt").read_text(encoding="ascii").splitlines()


def decoded(line: str) -> tuple[SyncInstruction, str]:
    arch, low, high, text = line.split(" ", 3)
    found = present(sync_of(Word(int(low, 16), int(high, 16)), wide=arch != "sm_90"))
    return found, text


def written(address: MachineAddress) -> str:
    """The address in the disassembler's way."""
    parts = [f"R{address.register}"] * (address.register >= 0) + [f"UR{address.uniform}"] * (address.uniform >= 0)
    return "+".join(parts + [f"{address.offset:#x}"] * (address.offset != 0)) or "RZ"


@pytest.mark.parametrize("line", LINES)
def test_an_instruction_is_what_its_text_says(line: str) -> None:
    found, text = decoded(line)
    name, _, operands = text.partition(" ")
    assert found.kind is next(kind for begin, kind in KINDS.items() if re.match(begin, name))
    inside = re.search(r"\[(U?R[^]]*)\]", operands)
    if name.startswith(("SYNCS", "ARRIVES", "LDS")) and inside and found.address:
        assert written(found.address) == inside[1].replace("+URZ", "")
    if found.kind is SassSync.WAIT:
        assert operands.rpartition(", ")[2] == ("RZ" if found.register == RZ else f"R{found.register}")
    if found.kind in (SassSync.BAR_SYNC, SassSync.BAR_ARRIVE):
        first, *rest = operands.split(", ")
        assert first == (f"R{found.register}" if found.register >= 0 else f"{found.number:#x}")
        if rest:
            assert rest[0] == (f"R{found.threads}" if found.threads >= 0 else f"{found.count:#x}")
    if found.kind in (SassSync.GROUP_WAIT, SassSync.WGMMA_WAIT, SassSync.ASK_REGISTERS, SassSync.GIVE_REGISTERS):
        assert operands.rpartition(" ")[2] == f"{found.number:#x}"
    if found.kind is SassSync.ARRIVE:
        assert found.remote == (".RED" in name)
        assert found.expects == ("T0" not in name)
    if found.kind in (SassSync.TENSOR_COPY, SassSync.COPY, SassSync.TENSOR_COMMIT):
        assert found.multicast == ("MULTICAST" in name)
        register = int(re.findall(r"UR(\d+)", operands)[0])
        assert present(found.address).uniform == register + (found.kind is not SassSync.TENSOR_COMMIT)
    if found.kind is SassSync.ATOMIC:
        assert (".ADD", ".MIN", ".MAX", ".INC")[found.number] in name
    if found.kind is SassSync.CP_ASYNC_ARRIVE:
        assert found.arrives == ("ARVCNT" in name)


def test_what_synchronises_nothing_is_left_out() -> None:
    add, multiply = Word(0x000000FF04067210, 0x07FFE0FF), Word(0x0000000709097824, 0x078E02FF)
    assert [sync_of(word, wide=False) for word in (add, multiply)] == [None, None]
