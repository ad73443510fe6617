"""uninitialised_read: uninitialised bytes are read."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.findings.words import tile_of
from pipesim.model.finding import FaultKind

UNINITIALISED_READ = FindingKind(
    FaultKind.UNINITIALISED_READ,
    what="Bytes are read that nothing has written.",
    ptx="state spaces: shared",
    shows="The result has whatever the memory held: often the data of an earlier launch, so that a test may pass.",
    corrected=(
        "Read what was written: compare offsets and sizes of both accesses, and wait for all copies of the phase. With "
        "--strict-tensor-memory the same holds for tensor memory."
    ),
    certainty=Certainty.SCHEDULE,
    note="{role} reads {place}, where nothing has been written",
    detail=tile_of,
    example=ProtocolExample("""No agent has written the second half of what is read.

    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0].part(0, 32), item=0)
        if right:
            w.write(tile[0].part(32, 32), item=0)
        w.read(tile[0], item=0)
"""),
)
