"""Which configurations a profile may be fitted to, and which are kept to compare it with: written beforehand.

The split is by configuration, never by event: a kernel, the parameters that change what the GPU runs, and the CTAs of
the launch. The rule decides any configuration, also one that is not captured yet; the file lists the known ones
besides, so that a reader sees them and a test can hold the list to the rule.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path

from pipesim.bounds import MAX_PARAMETER, MAX_SMALL_BYTES
from pipesim.errors import EvidenceError
from pipesim.inputs import InputKind, wrong_name
from pipesim.trace.schema import TraceMeta

FORMAT, VERSION = "pipesim-split", 1
FILE = "split.json"  #: its name in a folder of traces
SPLIT = InputKind(
    "split of configurations", MAX_SMALL_BYTES, EvidenceError, "take the one of the repository: traces/split.json"
)
_DIGEST = 256  #: a byte of a digest: shares are parts of it


class SplitPart(Enum):
    """What a configuration is for."""

    FIT = "fit"  #: a profile may be fitted to it
    HELD_OUT = "held out"  #: no fit sees it; a model may be compared with it while it is written
    SEALED = "sealed"  #: held out, and read once: when the model is finished


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel, its parameters in the order of their names, and the CTAs of the launch."""

    kernel: str
    params: tuple[tuple[str, int], ...]
    ctas: int

    @property
    def text(self) -> str:
        """One line that names it, as the rule of a split reads it."""
        return " ".join([self.kernel, *(f"{name}={value}" for name, value in self.params), f"ctas={self.ctas}"])


@dataclass(frozen=True)
class Rule:
    """How any configuration is assigned.

    ``values``: of a kernel's parameters those that are held out whole. ``salt`` and ``share``: of the other
    configurations those whose digest (SHA-256 of salt and text) starts with a byte below ``share``. A held-out one is
    sealed if the second byte is even. ``ignored``: parameters that only the model has.
    """

    salt: str
    share: int
    ignored: frozenset[str]
    values: Mapping[str, Mapping[str, frozenset[int]]]

    def configuration(self, kernel: str, params: Mapping[str, int], ctas: int) -> LaunchedKernel:
        """What counts of a launch."""
        kept = tuple(sorted((name, value) for name, value in params.items() if name not in self.ignored))
        return LaunchedKernel(kernel, kept, ctas)

    def part(self, configuration: LaunchedKernel) -> SplitPart:
        """What this configuration is for."""
        whole = self.values.get(configuration.kernel, {})
        drawn, half = hashlib.sha256(f"{self.salt} {configuration.text}".encode()).digest()[:2]
        if drawn >= self.share and not any(value in whole.get(name, ()) for name, value in configuration.params):
            return SplitPart.FIT
        return SplitPart.HELD_OUT if half % 2 else SplitPart.SEALED

    def part_later(self, configuration: LaunchedKernel) -> SplitPart:
        """What a configuration is for that was drawn when others had been read: held out is sealed."""
        return SplitPart.FIT if self.part(configuration) is SplitPart.FIT else SplitPart.SEALED


@dataclass(frozen=True)
class Split:
    """The rule, and the configurations that are known with their parts."""

    rule: Rule
    listed: tuple[tuple[LaunchedKernel, SplitPart], ...]

    @cached_property
    def _parts(self) -> dict[LaunchedKernel, SplitPart]:
        return dict(self.listed)

    def part_of(self, kernel: str, params: Mapping[str, int], ctas: int) -> SplitPart:
        """The part of a launch: as listed, else by the rule."""
        configuration = self.rule.configuration(kernel, params, ctas)
        return self._parts.get(configuration) or self.rule.part(configuration)

    def part_of_trace(self, meta: TraceMeta) -> SplitPart:
        """The part of a recording."""
        return self.part_of(meta.protocol, meta.params, meta.grid)


def read_split(path: Path) -> Split:
    """The split in a file. EvidenceError if it is not one, or lists a configuration against its rule."""
    return parse_split(SPLIT.read_text(path), str(path))


def parse_split(text: str, place: str = "") -> Split:
    """The split in a text. Raises as :func:`read_split` does."""
    data = SPLIT.parse_json(text, place)
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise _wrong(f'a split has "format": "{FORMAT}" and "version": {VERSION}', place)
    try:
        rule = _rule(data["rule"])
        listed = tuple((_configuration(each), SplitPart(each["part"])) for each in data["configurations"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _wrong(f"a member is missing or has a wrong value: {error!r}", place) from None
    numbers = [each.get("draw", 1) for each in data["configurations"]]
    if any(type(number) is not int or number < 1 for number in numbers):
        raise _wrong("the number of a draw is 1 or more", place)
    for (configuration, part), number in zip(listed, numbers, strict=True):
        by_rule = rule.part_later(configuration) if number > 1 else rule.part(configuration)
        if by_rule is not part:
            raise _wrong(f"{configuration.text} is listed as {part.value}, and {by_rule.value} by the rule", place)
    return Split(rule, listed)


def _rule(data: Mapping[str, object]) -> Rule:
    salt, share, ignored, values = (data[key] for key in ("salt", "share", "ignored", "values"))
    if not isinstance(salt, str) or not isinstance(ignored, list) or not isinstance(values, dict):
        raise TypeError("salt, ignored, values")
    if type(share) is not int or not 0 <= share <= _DIGEST:
        raise ValueError("share")
    whole = {
        _name(kernel): {_name(name): frozenset(map(_number, each)) for name, each in of.items()}
        for kernel, of in values.items()
    }
    return Rule(salt, share, frozenset(map(_name, ignored)), whole)


def _configuration(data: Mapping[str, object]) -> LaunchedKernel:
    params = data["params"]
    if not isinstance(params, dict):
        raise TypeError("params")
    named = tuple(sorted((_name(name), _number(value)) for name, value in params.items()))
    return LaunchedKernel(_name(data["kernel"]), named, _number(data["ctas"]))


def _name(value: object) -> str:
    if not isinstance(value, str) or wrong_name(value):
        raise ValueError("name")
    return value


def _number(value: object) -> int:
    if type(value) is not int or abs(value) > MAX_PARAMETER:
        raise ValueError("number")
    return value


def _wrong(cause: str, place: str) -> EvidenceError:
    return EvidenceError("this is not a split of configurations", place=place, cause=cause, correction=SPLIT.correction)
