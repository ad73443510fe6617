"""Barriers without names are stages of a ring where one instruction goes through them, and only there."""

import pytest

from pipesim.answers.autopsy.autopsy import RingStage, stages_of
from pipesim.answers.autopsy.suppliers import WalkedWarp
from pipesim.answers.autopsy.walks import WarpWalk
from pipesim.coredump.sass.sync import SassSync, SyncInstruction
from pipesim.coredump.sass.walk import SyncEvent


def gone_through(*ways: list[int], kind: SassSync = SassSync.WAIT) -> dict[int, RingStage]:
    """The stages of a warp that has an instruction for each way."""
    events = [
        SyncEvent(index, SyncInstruction(kind), 1, address, None, (), True)
        for index, way in enumerate(ways)
        for address in way
    ]
    walk = WarpWalk(tuple(events), (), whole=True, lost=False, ends=True)
    return stages_of([WalkedWarp("warp/0", 0, walk, "", str)])


def starts(found: dict[int, RingStage]) -> dict[int, str]:
    return {address: str(each).removeprefix("ring at ") for address, each in sorted(found.items())}


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        ([[0x10, 0x18, 0x20, 0x10]], {0x10: "0x10 [0 of 3]", 0x18: "0x10 [1 of 3]", 0x20: "0x10 [2 of 3]"}),
        ([[0x20, 0x10, 0x18, 0x20]], {0x10: "0x10 [0 of 3]", 0x18: "0x10 [1 of 3]", 0x20: "0x10 [2 of 3]"}),
        ([[0x10, 0x30, 0x10]], {0x10: "0x10 [0 of 2]", 0x30: "0x10 [1 of 2]"}),  # of structures of 32 bytes
        # one had two stages behind it when the kernel stopped, another the next
        ([[0x10, 0x18], [0x18, 0x20]], {0x10: "0x10 [0 of 3]", 0x18: "0x10 [1 of 3]", 0x20: "0x10 [2 of 3]"}),
        # every second one of four, by one instruction, and all by another
        ([[0x10, 0x20, 0x10], [0x10, 0x18, 0x20, 0x28]], {n: f"0x10 [{(n - 16) // 8} of 4]" for n in range(16, 48, 8)}),
        ([[0x10, 0x20, 0x18, 0x28]], {}),  # full and empty barriers by one instruction: in no order of stages
        ([[0x10, 0x18, 0x10, 0x10, 0x18]], {}),
        ([[0x10, 0x18, 0x28]], {}),  # no stride
        ([[0x10, 0x14, 0x18]], {}),  # not of barriers
        ([[0x10], [0x18], [0x20]], {}),  # of a loop that was unrolled
    ],
)
def test_stages(ways: list[list[int]], expected: dict[int, str]) -> None:
    assert starts(gone_through(*ways)) == expected


def test_an_init_goes_through_barriers_of_every_kind() -> None:
    assert not gone_through([0x10, 0x18, 0x20], kind=SassSync.INIT)
