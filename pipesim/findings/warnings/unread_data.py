"""unread_data: data is left in memory that no agent reads."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

UNREAD_DATA = FindingKind(
    "unread_data",
    "data is left in memory that no agent reads",
    what=(
        "A tile is written or loaded, and no agent reads it, or a part of it: it is there at the end, or the copy of a "
        "later phase has overwritten it."
    ),
    shows="The work is for nothing, the protocol leaves out who reads it, or a reader takes another tile for it.",
    corrected="Leave out the copy, or describe the read.",
    certainty=Certainty.WARNING,
    note="{role} leaves data in {place}",
    example=ProtocolExample("""A tile is loaded and no agent reads it.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            full[0].wait(0)
            if right:
                w.read(tile[0], item=0)
"""),
)
