"""The author's code: lines of it, values that it gives, functions that it defines, and what these raise."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable
from operator import index
from types import CodeType, FrameType

from pipesim.errors import PipesimError, ProtocolError, describe_error
from pipesim.inputs import quoted_name, wrong_name
from pipesim.lang.other_names import meant_by
from pipesim.process.limits import LimitReachedError

_OURS = ("pipesim.lang.", "pipesim.model.", "pipesim.pipelines.", "contextlib")
Place = tuple[CodeType, int]  #: code, and an instruction in it
getframe = sys._getframe  # noqa: SLF001  # the documented way to read the stack without building a traceback


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


def whole(what: str, value: object) -> int:
    """``value`` as an integer; ProtocolError with the author's line if it is not a whole number."""
    try:
        return index(value)  # type: ignore[arg-type]  # what has no __index__ is what this is about
    except TypeError:
        raise ProtocolError(
            f"{what} is {value!r} of type {type(value).__name__}, not a whole number",
            place=author_line(),
            correction="divide with //, which keeps whole numbers whole" if isinstance(value, float) else "",
        ) from None


def name_of(what: str, name: object) -> str:
    """``name`` as a plain string; ProtocolError with the author's line if it cannot be a name.

    A decorator without its parentheses passes the function itself.
    """
    if not isinstance(name, str):
        raise ProtocolError(
            f"the name of a {what} is of type {type(name).__name__}, not a string",
            place=author_line(),
            cause="a decorator without parentheses and name" if callable(name) else "",
            correction='write @protocol.role("load")' if what == "role" else "write the name first, in quotes",
        )
    plain = str.__str__(name)  # an author's class may answer anything
    wrong = wrong_name(plain)
    if wrong:
        raise ProtocolError(
            f"the name of a {what} is {quoted_name(plain)}",
            place=author_line(),
            cause=wrong,
            correction="choose a short name of letters, digits and _",
        )
    return plain


class UnansweredError(BaseException):
    """Ends the recording of a role where it asks for the answer of an atomic that is not known yet."""


#: What an author's function may raise that is not reported as its fault, but goes to the caller as it is.
NOT_OURS = (PipesimError, KeyboardInterrupt, LimitReachedError, UnansweredError)


def in_words(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero``, in one line; the place of a syntax error is separate."""
    return describe_error(error)


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
    called = _called_function(error)
    return f"check the arguments of this call of {called}" if called else ""


def _called_function(error: BaseException) -> str:
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


def require_plain(body: Callable[..., object], who: str, head: str, *arguments: object) -> None:
    """An author's function can be called with these arguments and does not suspend; else ProtocolError."""
    if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body):
        raise _suspends(who, author_line())
    try:
        inspect.signature(body).bind(*arguments)
    except TypeError as error:
        raise ProtocolError(
            f"{who} cannot be called: {error}", place=author_line(), correction=f"write {head}"
        ) from None
    except ValueError:
        pass  # a function that is not written in Python says nothing about its arguments


def first_line(body: Callable[..., object]) -> str:
    """Where an author's function begins, at its decorator; "" for what is not written in Python."""
    code = getattr(body, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def _suspends(who: str, place: str) -> ProtocolError:
    return ProtocolError(
        f"{who} is a generator or a coroutine",
        place=place,
        cause="a role is recorded by calling it once, from start to end: it cannot suspend",
        correction="write it as a plain function, without yield, async or await",
    )


def run(body: Callable[[], object], who: str) -> None:
    """Run an author's function; whatever it raises that is not ours is reported with the author's line."""
    try:
        returned = body()
    except (*NOT_OURS, SystemExit):
        raise
    except BaseException as error:
        raise ProtocolError(
            f"{who} raised {in_words(error)}", place=raised_at(error), correction=hint(error)
        ) from error
    if inspect.isgenerator(returned) or inspect.iscoroutine(returned):
        returned.close()
        code = returned.gi_code if inspect.isgenerator(returned) else returned.cr_code
        raise _suspends(f"what {who} returns", f"{code.co_filename}:{code.co_firstlineno}")
