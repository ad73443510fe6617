"""Random flat programs by seed; the same seed gives the same program on every machine.

``rings``: hand-overs between agents as a protocol has them, half of them with mistakes. ``corners``: what a certificate
is easily wrong about. ``all_operations``: every operation with right and wrong operands. ``loops``: loops that repeat,
and random ends for them. ``orders_and_scopes``: rings whose memory orders, scopes and fences are drawn. ``contested``:
phases that now one arrival completes, now another. ``exits``: agents that end while others wait at the cluster barrier.
``registers``, ``handovers``: requests for registers that have to wait. ``lives``: mbarriers that are invalidated and
begin again. ``commits``: several commits of one thread, of which others learn of the last alone. ``exchanged``:
arrives that may be counted in another lap's phase. ``engines``: warps that use the same engines in the same cycles.
``copies``: loads and stores in an order that depends on times.
"""

from collections.abc import Callable, Mapping

from pipesim.model.program import Program
from tests.support.random_programs.all_operations import random_operations
from tests.support.random_programs.commits import random_commits
from tests.support.random_programs.copies import random_copies
from tests.support.random_programs.corners import random_corners
from tests.support.random_programs.engines import random_engines
from tests.support.random_programs.exchanged import random_exchanged
from tests.support.random_programs.exits import random_exits
from tests.support.random_programs.lives import random_lives
from tests.support.random_programs.registers import random_handovers, random_registers
from tests.support.random_programs.rings import random_ring

#: By name the families on which the engines of the proof are compared (``tools/judge_proof.py``, ``judge_spin.py``).
FAMILIES: Mapping[str, Callable[[int], Program]] = {
    "rings": random_ring,
    "corners": random_corners,
    "operations": random_operations,
    "exits": random_exits,
    "registers": random_registers,
    "handovers": random_handovers,
    "lives": random_lives,
    "commits": random_commits,
    "exchanged": random_exchanged,
}

#: Those on which the engines that compute times are compared.
TIMED_FAMILIES: Mapping[str, Callable[[int], Program]] = {
    **FAMILIES,
    "engines": random_engines,
    "copies": random_copies,
}
