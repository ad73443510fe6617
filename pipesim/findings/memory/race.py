"""race: two concurrent accesses to the same bytes, at least one of them a write."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.findings.words import tile_of
from pipesim.model.finding import FaultKind

RACE = FindingKind(
    FaultKind.RACE,
    what="Two accesses to the same bytes can happen at the same time, and at least one of them is a write.",
    ptx="memory consistency model: conflict and data-races",
    shows=(
        "Results are wrong in some launches: tiles are torn or mixed. Nothing detects it, and a recording or a debugger"
        " can make it vanish."
    ),
    corrected=(
        "Let the later agent wait for an arrive that the earlier one makes after its access: a wait for full before "
        "reading, an arrive on empty after the last read, a barrier between writing and reading."
    ),
    certainty=Certainty.SCHEDULE,
    detail=tile_of,
    example=ProtocolExample("""A tile is written and read at the same time.

    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.sync_threads()
        if right:
            w.sync_threads()
        w.write(tile[0], item=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.sync_threads()
        w.read(tile[0], item=0)
        if right:
            w.sync_threads()
"""),
)
