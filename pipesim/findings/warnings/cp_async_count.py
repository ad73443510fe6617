"""cp_async_count: a cp.async arrive without .noinc is on a barrier that counts bytes."""

from collections.abc import Iterator

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Advisory
from pipesim.model.groups import COUNTS_BYTES, TRANSACTIONS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def _look(program: Program) -> Iterator[Advisory]:
    """Arrives of ``cp.async`` without ``.noinc`` on an mbarrier that also counts bytes.

    PTX raises the pending count by them until the copies are done, and so does the model; H100 and H200 raise the
    transaction count instead (measured). Only where bytes are counted on the same barrier can a phase tell.
    """
    counted = {
        operand(op, "barrier")
        for op in program.operations
        if op[0] in TRANSACTIONS or (op[0] in COUNTS_BYTES and (op[0] != Op.ARRIVE or operand(op, "expect")))
    }
    for a, code in enumerate(program.code):
        role = program.agents[a].role
        for pc, op in enumerate(code):
            if op[0] != Op.CP_ASYNC_ARRIVE or operand(op, "noinc") or operand(op, "barrier") not in counted:
                continue
            name, line = program.barriers[operand(op, "barrier")].name, program.line(a, pc)
            claim = (
                f"{role} arrives on {name} by cp.async without .noinc, and {name} also counts bytes: PTX adds these "
                "arrivals to the pending count, H100 and H200 to the bytes"
            )
            yield Advisory(role, claim, line, "cp_async_count")


CP_ASYNC_COUNT = FindingKind(
    "cp_async_count",
    "a cp.async arrive without .noinc is on a barrier that counts bytes",
    what=(
        "cp.async.mbarrier.arrive without .noinc is used on a barrier that also counts bytes. PTX adds the arrivals to "
        "the pending count; H100 and H200 add them to the bytes (measured)."
    ),
    ptx="cp.async.mbarrier.arrive",
    shows="A phase can complete earlier or later than PTX says.",
    corrected="Use .noinc and count these arrivals in the init, or give the bytes a barrier of their own.",
    certainty=Certainty.WARNING,
    look=_look,
    of=Op.CP_ASYNC_ARRIVE,
    example=ProtocolExample("""A barrier that counts bytes is arrived on by cp.async without .noinc.

    tile = p.smem("tile", slots=2, nbytes=64)
    full = p.mbarriers("full", 1, count=33 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], item=0)
        full[0].cp_async_arrive(noinc=bool(right))
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[1], full[0], item=1)
        full[0].wait(0)
        w.read(tile[0], item=0)
        w.read(tile[1], item=1)
"""),
)
