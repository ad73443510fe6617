"""What an author gives as a number or a name, as a plain integer or string; else an error at the author's line."""

from __future__ import annotations

from operator import index

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.names import shown, wrong_name


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

    A decorator without its parentheses hands over the function itself.
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
            f"the name of a {what} is {shown(plain)}",
            place=author_line(),
            cause=wrong,
            correction="choose a short name of letters, digits and _",
        )
    return plain
