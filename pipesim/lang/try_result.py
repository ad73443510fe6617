"""``TryResult``: what a try_wait or test_wait returns to a role, whose program has not run yet."""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.recorder import recorder


class TryResult:
    """The result of a try_wait, unknown while recording: the register that will hold it, and what was asked.

    Pass it to a ``*_if_needed`` method. A role cannot branch on it in Python: the program has not run yet.
    """

    def __init__(self, register: int, barrier: int, parity: int) -> None:
        self.register = register
        self.barrier = barrier
        self.parity = parity
        self.owner = recorder()

    def __bool__(self) -> bool:
        raise ProtocolError(
            "a role cannot branch on the result of a try_wait while it is recorded",
            place=author_line(),
            correction="pass the result to wait_producer_if_needed, wait_consumer_if_needed or wait_if_needed",
        )
