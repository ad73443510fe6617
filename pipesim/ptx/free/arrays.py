"""Arrays in global memory whose elements are free: which values they may have."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class FreeArray:
    """``count`` elements of ``size`` bytes from ``address`` on, each ``low`` and up to ``most`` times ``step``.

    ``late``: from an index on elements are not below a number of a value, and those before are. ``held``: they are the
    usual ones.
    ``rises``: by how many steps an element is greater than the one before, at least and at most; None: by any number.
    ``usual``: what they hold where nothing else is chosen, by the numbers of the values.
    ``place``: of the first element, as ``--set`` has it: a prefix, and the byte after it.
    ``size``: 0 of a word of the parameters, which has its name there.
    """

    name: str
    low: int
    step: int
    most: int
    count: int
    usual: tuple[int, ...] = field(default=(), repr=False)
    rises: tuple[int, int] | None = None
    address: int = 0
    size: int = 4
    place: tuple[str, int] = ("", 0)
    late: tuple[int, int] = (0, 0)
    held: bool = False

    @property
    def high(self) -> int:
        """The greatest value."""
        return self.low + self.step * self.most

    def setting(self, index: int) -> str:
        """The place of an element as ``--set`` has it: ``8:12``."""
        prefix, offset = self.place
        return f"{prefix}{offset + index * self.size}" if self.size else prefix

    def numbers(self, index: int) -> range:
        """The values of an element that leave values for all others, by their numbers."""
        if self.held:
            return range(self.usual[index], self.usual[index] + 1)
        least = self.rises[0] if self.rises is not None else 0
        from_index, late = self.late
        if index < from_index:
            return range(least * index, late - least * (from_index - 1 - index))
        return range(late + least * (index - from_index), self.most - least * (self.count - 1 - index) + 1)

    def rising(self, chosen: Mapping[int, int]) -> "FreeArray | None":
        """The same with each element greater than the one before, with chosen values; None if it has too few values."""
        if self.most < self.count - 1:
            return None
        numbers = {n: (value - self.low) // self.step for n, value in chosen.items()}
        usual = tuple(numbers.get(n, number) for n, number in enumerate(self.usual))
        return replace(self, usual=usual, rises=(1, self.most), size=1, place=(f"{self.name}:", 0))

    def completed(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """The elements where some are chosen, by the numbers of their values.

        Of elements that rise these are all, the others as near as can be to the usual ones.
        """
        if self.rises is None:
            return dict(chosen)
        least, most = self.rises
        bounds = [self.numbers(n) for n in range(self.count)]
        low = [chosen.get(n, each.start) for n, each in enumerate(bounds)]
        high = [chosen.get(n, each.stop - 1) for n, each in enumerate(bounds)]
        for n in reversed(range(self.count - 1)):
            low[n], high[n] = max(low[n], low[n + 1] - most), min(high[n], high[n + 1] - least)
        found: dict[int, int] = {}
        for n, (first, last) in enumerate(zip(low, high, strict=True)):
            if n:
                first, last = max(first, found[n - 1] + least), min(last, found[n - 1] + most)
            found[n] = min(max(self.usual[n], first), last)
        return found
