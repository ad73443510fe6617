"""Random programs of which only the beginning of some agents was read, as of a kernel not followed to its end."""

import random
from dataclasses import replace

from pipesim.errors import ProgramFormatError
from pipesim.model.coverage import Coverage
from pipesim.model.groups import ACCESSES, MEETINGS, PARITY_WAITS
from pipesim.model.program import Program


def beginning(program: Program, seed: int) -> Program | None:
    """The beginnings of some agents; None where one of them would jump beyond its end, or has no operation to lose.

    An agent that loses no more than accesses, waits and barriers of threads is silent.
    """
    rng = random.Random(seed)
    agents = [a for a, code in enumerate(program.code) if code and rng.random() < 0.6]
    if not agents:
        return None
    ends = {a: rng.randrange(len(program.code[a])) for a in agents}
    quiet = ACCESSES | PARITY_WAITS | MEETINGS
    silent = tuple(a for a in agents if all(op[0] in quiet for op in program.code[a][ends[a] :]))
    code = tuple(row[: ends.get(a, len(row))] for a, row in enumerate(program.code))
    lines = tuple(row[: ends.get(a, len(row))] for a, row in enumerate(program.lines))
    said = Coverage(stopped=("not read",))
    try:
        return replace(program, code=code, lines=lines, cut=tuple(agents), silent=silent, coverage=said)
    except ProgramFormatError:
        return None
