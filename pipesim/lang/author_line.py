"""The line of an author's code: of the innermost call that is not the description language's own."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

_OURS = ("pipesim.lang.", "pipesim.model.", "pipesim.pipelines.", "contextlib")
Place = tuple[CodeType, int]  #: code, and an instruction in it
getframe = sys._getframe  # noqa: SLF001  # the documented way to walk the stack without building a traceback


def author_line() -> str:
    """``file:line`` of the innermost frame that is not part of the description language itself."""
    return line_of(*author_place(2))


def author_place(depth: int) -> Place:
    """Where the author's code is now, at least this many calls up; its line takes as long to find as all the rest."""
    frame: FrameType = getframe(depth)
    while IS_INSIDE[frame.f_globals.get("__name__", "")] and (caller := frame.f_back) is not None:
        frame = caller
    return frame.f_code, frame.f_lasti


def line_of(code: CodeType, instruction: int) -> str:
    """``file:line`` of an instruction of ``code``."""
    line = next((line for begin, end, line in code.co_lines() if begin <= instruction < end), code.co_firstlineno)
    return f"{code.co_filename}:{line}"


def is_inside(module: str) -> bool:
    """True for a module of the description language, whose lines are of no interest to an author."""
    return IS_INSIDE[module]


class _InsideByName(dict[str, bool]):
    """What :func:`is_inside` has answered: every operation asks several times, and a dictionary answers soonest."""

    def __missing__(self, module: str) -> bool:
        answer = self[module] = f"{module}.".startswith(_OURS)
        return answer


IS_INSIDE = _InsideByName()
