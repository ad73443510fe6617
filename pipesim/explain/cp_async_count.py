"""Where the hardware and PTX differ in what ``cp.async.mbarrier.arrive`` counts, and one can tell the difference."""

from __future__ import annotations

from pipesim.model.finding import Advisory
from pipesim.model.groups import COUNTS_BYTES, TRANSACTIONS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def advisories(program: Program) -> tuple[Advisory, ...]:
    """Arrives of ``cp.async`` without ``.noinc`` on an mbarrier that also counts bytes, each role and line once.

    PTX raises the pending count by them until the copies are done, and so does the model; H100 and H200 raise the
    transaction count instead (measured). Only where bytes are counted on the same barrier can a phase tell.
    """
    counted = {
        operand(op, "barrier")
        for code in program.code
        for op in code
        if op[0] in TRANSACTIONS or (op[0] in COUNTS_BYTES and (op[0] != Op.ARRIVE or operand(op, "expect")))
    }
    found: dict[tuple[str, str], Advisory] = {}
    for a, code in enumerate(program.code):
        role = program.agents[a].role
        for pc, op in enumerate(code):
            if op[0] != Op.CP_ASYNC_ARRIVE or operand(op, "noinc") or operand(op, "barrier") not in counted:
                continue
            name, line = program.barriers[operand(op, "barrier")].name, program.line(a, pc)
            said = (
                f"{role} arrives on {name} by cp.async without .noinc, and {name} counts bytes, too: PTX adds these "
                "arrivals to the pending count, as here; H100 and H200 add them to the bytes"
            )
            found.setdefault((role, line), Advisory(role, said, line, "cp_async_count"))
    return tuple(found.values())
