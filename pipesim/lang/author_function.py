"""An author's function: that it can be called and does not suspend, where it begins, and what it raises as it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.raised import NOT_OURS, hint, in_words, raised_at


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
        pass  # a function that is not written in Python tells nothing about its arguments


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
