"""Names that are not text, numbers of an author's own class, attributes assigned from outside: errors at a line."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import Protocol
from pipesim.errors import ProtocolError
from pipesim.lang.warp import Warp
from pipesim.model.program import Program


def made(
    *,
    name: Any = "ring",
    full: Any = "full",
    cell: Any = "cell",
    load: Any = "load",
    loop: Any = "tiles",
    number: Callable[[int], Any] = int,
    after: Callable[[Protocol], object] = lambda _: None,
) -> Program:
    p = Protocol(name)
    bars = p.mbarriers(full, number(1), number(1))
    tile = p.smem(cell, slots=number(1), nbytes=number(64))

    @p.role(load, warps=number(1))
    def role(w: Warp) -> None:
        with w.lanes(number(1)):
            for i in w.loop(number(2), loop):
                w.write(tile[number(0)], i)
                bars[number(0)].arrive()
                w.work(number(5))

    after(p)
    return p.flatten()


def named(place: str, value: object) -> Program:
    """With a name at one place."""
    given: dict[str, Any] = {place: value}
    return made(**given)


PLACES = {"name": "protocol", "full": "tile or an array", "cell": "tile or an array", "load": "role", "loop": "loop"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [None, 5, b"x", str, object(), 1.5], ids=lambda value: type(value).__name__)
def test_a_name_is_text(place: str, value: object) -> None:
    with pytest.raises(
        ProtocolError, match=f"the name of a {PLACES[place]}.* is of type {type(value).__name__}"
    ) as caught:
        named(place, value)
    assert caught.value.place.startswith(__file__)


def test_a_name_that_was_assigned_is_a_name() -> None:
    with pytest.raises(ProtocolError, match="the name of a protocol is"):
        made(after=lambda p: setattr(p, "name", "\x1b[31m"))
    assert made(after=lambda p: setattr(p, "name", "other")).name == "other"
