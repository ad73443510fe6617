"""An exception in an author's function, as the author must read it: in words, at the author's line, with a hint."""

from __future__ import annotations

import difflib

from pipesim.errors import PipesimError, described
from pipesim.lang.author_line import is_inside
from pipesim.lang.other_names import meant_by
from pipesim.process.limits import LimitReachedError

#: What an author's function may raise that is not reported as its fault, but goes to the caller as it is.
NOT_OURS = (PipesimError, KeyboardInterrupt, LimitReachedError)


def in_words(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero``, in one line; the place of a syntax error is separate."""
    return described(error)


def raised_at(error: BaseException) -> str:
    """``file:line`` of the innermost frame that is not part of the description language, "" if there is none."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if not is_inside(trace.tb_frame.f_globals.get("__name__", "")):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def hint(error: BaseException) -> str:
    """What to try, where the error is a misuse of what a role is given; else ""."""
    if isinstance(error, AttributeError) and is_inside(type(error.obj).__module__):
        if hasattr(error.obj, "__enter__"):
            return "enter it first: with ... as stage:"
        meant = meant_by(error.name or "", type(error.obj).__name__)
        if meant:
            return meant
        public = [name for name in dir(error.obj) if not name.startswith("_")]
        near = difflib.get_close_matches(error.name or "", public, n=1, cutoff=0.6)
        return f"did you mean {near[0]}?" if near else f"it has {', '.join(public)}"
    if isinstance(error, NameError) and (meant := meant_by(error.name or "")):
        return meant
    called = _called(error)
    return f"check the arguments of this call of {called}" if called else ""


def _called(error: BaseException) -> str:
    """What of ours the author called, if that is where the error came from, else ""."""
    called = ""
    trace = error.__traceback__
    while trace is not None:
        if not is_inside(trace.tb_frame.f_globals.get("__name__", "")):
            called = ""
        elif not called and "<locals>" not in trace.tb_frame.f_code.co_qualname:
            called = trace.tb_frame.f_code.co_qualname.removesuffix(".__init__")
        trace = trace.tb_next
    return called
