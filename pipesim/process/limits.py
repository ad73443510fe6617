"""The limits of a process, in time and in memory, and what is raised where one is reached."""

from enum import Enum

from pipesim.errors import Interruption, LimitError


class Limit(Enum):
    """A limit of a process. The value is a phrase for a report."""

    TIME = "time limit"
    MEMORY = "memory limit"


class LimitReachedError(Interruption):
    """A limit is reached: raised in the main thread in whatever it does, so that what is known by then is kept.

    Not an Exception: who makes an answer of a failure must not make one of this.
    ``most``: seconds, or bytes of one process.
    """

    def __init__(self, limit: Limit, most: float) -> None:
        super().__init__(limit, most)
        self.limit = limit
        self.most = most

    def in_words(self) -> str:
        """``the time limit of 600 s was reached``."""
        match self.limit:
            case Limit.TIME:
                return f"the time limit of {self.most:,.10g} s was reached"
            case Limit.MEMORY:
                return f"the memory limit of {in_bytes(self.most)} was reached"


def limit_error(reached: LimitReachedError) -> LimitError:
    """The answer of a command or call that reached a limit before anything was known."""
    option = "--time-limit SECONDS" if reached.limit is Limit.TIME else "--max-memory SIZE"
    return LimitError(
        f"unknown: {reached.in_words()}", correction=f"set a larger limit with {option}, or ask about smaller sizes"
    )


def in_bytes(number: float) -> str:
    """``8 GiB``: in the largest unit of which there is one."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:,.4g} {unit}"
    return f"{number:,.0f} bytes"
