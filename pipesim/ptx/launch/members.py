"""The members of the objects in a launch file, with errors that name their place."""

from collections.abc import Sequence
from typing import Any

from pipesim.errors import LaunchFileError

PAGE = "see docs/launch-file.md, or write a template with `pipesim new --ptx KERNEL.ptx`"


class Members:
    """The members of one object of a launch file. Every getter raises LaunchFileError with the member's place."""

    def __init__(self, data: Any, place: str, known: Sequence[str]) -> None:
        self.place = place
        if not isinstance(data, dict):
            raise LaunchFileError(f"this is {_kind(data)}, not an object", place=place, correction=PAGE)
        for name in data:
            if name not in known:
                raise LaunchFileError(
                    f"the member {str(name)[:40]!r} is not known",
                    place=place,
                    cause=f"an object here may have {', '.join(known)}",
                    correction=PAGE,
                )
        self.data: dict[str, Any] = data

    def place_of(self, name: str) -> str:
        """The place of a member."""
        return f"{self.place}.{name}" if self.place else name

    def error(self, name: str, fact: str, *, correction: str = PAGE) -> LaunchFileError:
        """What is wrong with a member."""
        return LaunchFileError(f"{name}: {fact}", place=self.place_of(name), correction=correction)

    def text(self, name: str, default: str | None = None, among: Sequence[str] = ()) -> str:
        """A member that is text, one of ``among`` if there are any."""
        value = self._value(name, default)
        if not isinstance(value, str) or (among and value not in among):
            wanted = f"one of {', '.join(among)}" if among else "text"
            raise self.error(name, f"expected {wanted}, found {_kind(value)}")
        return value

    def whole(self, name: str, default: int | None = None, low: int = 0, high: int = (1 << 63) - 1) -> int:
        """A member that is a whole number from ``low`` to ``high``."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(name, f"expected a whole number from {low:,} to {high:,}, found {_kind(value)}")
        return value

    def number(self, name: str) -> int | float | None:
        """A member that is a number, or null where it is left open."""
        value = self._value(name, None)
        if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
            raise self.error(name, f"expected a number or null, found {_kind(value)}")
        if isinstance(value, int) and value.bit_length() > 64:
            raise self.error(name, "the number has more than 64 bits")
        return value

    def wholes(
        self, name: str, default: Sequence[int] | None = None, low: int = 0, high: int = (1 << 63) - 1, most: int = 5
    ) -> tuple[int, ...]:
        """A member that is a list of up to ``most`` whole numbers."""
        value = self._value(name, list(default) if default is not None else None)
        right = isinstance(value, list) and len(value) <= most
        if not right or any(type(each) is not int or not low <= each <= high for each in value):
            wanted = f"a list of up to {most:,} whole numbers from {low:,} to {high:,}"
            raise self.error(name, f"expected {wanted}, found {_kind(value)}")
        return tuple(value)

    def items(self, name: str, default: Sequence[Any] | None = None) -> list[Any]:
        """A member that is a list."""
        value = self._value(name, list(default) if default is not None else None)
        if not isinstance(value, list):
            raise self.error(name, f"expected a list, found {_kind(value)}")
        return value

    def _value(self, name: str, default: Any) -> Any:
        if name not in self.data and default is None:
            raise LaunchFileError(f"{name} is missing", place=self.place, correction=PAGE)
        return self.data.get(name, default)


def _kind(value: Any) -> str:
    """What was found, short enough for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value):,}" if len(value) > 8 else f"the list {str(value)[:60]}"
    return "null" if value is None else repr(value)[:60]
