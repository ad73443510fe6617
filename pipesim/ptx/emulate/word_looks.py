"""What agents see of words where that decides what they do next: each value that they may see is another run.

A wait that ends with several values, a load that waits for nothing, an atomic that changes a word with some values
alone (``if (atomicCAS(lock, 0, 1) == 0)``): a run says what else might be seen, and the next one is made so that it is.
"""

from collections.abc import Callable, Mapping, Sequence

from pipesim.model.words import Look, WordEvent

Fails = Callable[[int], bool]


class WordLooks:
    """What is seen in one run. ``sees``: agents with the codes of :class:`Look` that are to be seen, of each in order.

    ``all_alike``: the run represents CTAs that nothing tells apart, so that nothing is asked.
    """

    def __init__(self, sees: Sequence[tuple[int, int]], *, all_alike: bool) -> None:
        self.asks = not all_alike
        self._wanted: dict[int, list[int]] = {}
        for agent, code in sees:
            self._wanted.setdefault(agent, []).append(code)
        self._seen: list[tuple[WordEvent, int, int, Fails | None]] = []  # with its code, and what was known before

    @property
    def left(self) -> bool:
        """Whether something that was to be seen was not."""
        return any(self._wanted.values())

    def wanted(self, agent: int, count: int) -> list[int]:
        """The next codes that an agent is to see, up to as many."""
        return self._wanted.get(agent, [])[:count]

    def see(self, event: WordEvent, known: int, fails: Fails | None = None) -> None:
        """It saw a word after ``event.version`` writes, of which it has known. ``fails``: it may not change it."""
        code = event.version if fails is None else 0 if event.act.writes else event.version + 1
        del self._wanted.get(event.agent, [])[:1]
        self._seen.append((event, code, known, fails))

    def tried(self, agent: int, history: Sequence[int], fails: Fails) -> int | None:
        """After how many writes it fails, -1 if it does not, None if it has to wait."""
        wanted = self.wanted(agent, 1)
        version = wanted[0] - 1 if wanted else len(history) - 1
        if version < 0 or (not wanted and not fails(history[version])):
            return None if fails(history[-1]) else -1
        return version if version < len(history) and fails(history[version]) else None

    def all_seen(self, histories: Mapping[int, Sequence[int]]) -> tuple[Look, ...]:
        """All in order, by the values of each word."""
        return tuple(self._look(*each, histories[each[0].address]) for each in self._seen)

    @staticmethod
    def _look(e: WordEvent, code: int, known: int, fails: Fails | None, values: Sequence[int]) -> Look:
        passes = fails or e.passes
        versions = range(known, e.version + 1 if e.act.writes else len(values))
        codes = [n for n in versions if passes is None or passes(values[n]) is not False]
        if fails is not None:
            codes = [n + 1 for n in codes] + [0] * any(not fails(value) for value in values)
        return Look(e.number, e.agent, code, tuple(n for n in codes if n != code), fails is not None)
