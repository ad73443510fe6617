"""How a run ends: one vocabulary for simulated, recorded and searched runs. Trace files hold the values."""

from enum import StrEnum


class Ending(StrEnum):
    """How a run of a kernel, or of its model, ended. The value is ``status`` in a trace's metadata."""

    FINISHED = "finished"  #: every agent ran its last operation
    DEADLINE = "deadline"  #: on hardware: a wait gave up at its deadline, or the launch did not end in its time
    TRAP = "trap"  #: on hardware: the launch was ended by an exception
    DEADLOCK = "deadlock"  #: in the model: some agent has not ended, and nothing can move or land any more
    FAULT = "fault"  #: in the model: a rule was broken at which a run cannot continue; a proof stops at every rule
    UNKNOWN = "unknown"  #: in the model: the budget ran out before any of these


HUNG = frozenset({Ending.DEADLOCK, Ending.DEADLINE})  #: nothing moved any more
TRAPPED = frozenset({Ending.FAULT, Ending.TRAP})  #: something forbidden ended the run
