"""What a public function is given: a function, a Protocol, a program, a name or a path, and parameters as keywords."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from pipesim.errors import ParameterError, ProtocolError, UsageError
from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import Strictness
from pipesim.model.program import Program
from pipesim.ptx.launch.settings import BOX
from pipesim.targets import Target, find, target_of
from pipesim.timed.profile import Profile, load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace

#: What names a protocol: a function that makes one, what it returned, a program, a built-in's name, or a path
#: (``file.py:function``, ``program.json``, ``kernel.ptx``).
Given: TypeAlias = Callable[..., Protocol] | Protocol | Program | Target | str | PathLike[str]
GivenTrace: TypeAlias = Trace | str | PathLike[str]
GivenProfile: TypeAlias = Profile | str | PathLike[str]
GivenLaunch: TypeAlias = str | PathLike[str] | None
#: Words of a kernel's parameters, each by the parameter's name, or by a byte offset as ``--set`` takes it.
GivenWords: TypeAlias = Mapping[str, int | float | str] | Mapping[int, int | float | str] | None
#: Boxes of its tensor maps, the innermost size first, or as ``--box`` takes them: ``{"tma_a": (64, 128)}``.
GivenBoxes: TypeAlias = Mapping[str, Sequence[int] | str] | Mapping[int, Sequence[int] | str] | None


@dataclass(frozen=True)
class KernelLaunch:
    """The keywords by which every function is given the launch of a kernel's PTX, each None if it was not."""

    launch: GivenLaunch = None
    set: GivenWords = None
    box: GivenBoxes = None

    def target(self, text: str) -> Target:
        """The target that ``text`` names, in this launch. ParameterError where it has none."""
        settings = [f"{place}={value}" for place, value in _pairs("set", self.set)]
        settings += [f"{BOX}{place}={_sizes(value)}" for place, value in _pairs("box", self.box)]
        if self.launch is not None and not isinstance(self.launch, str | PathLike):
            raise ParameterError(f"launch is {self.launch!r}", correction="give the path of a launch file")
        return find(text, launch="" if self.launch is None else str(self.launch), sets=settings)

    def require_none(self, given: object) -> None:
        """ParameterError if any was given: of what is not the path of a file."""
        for name in ("launch", "set", "box"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{name} is given, but no kernel's PTX",
                    cause=f"given: {_what(given)}",
                    correction=f'leave {name} out, or give the path of a .ptx file: "kernel.ptx"',
                )


NO_LAUNCH = KernelLaunch()


def _pairs(name: str, given: object) -> Iterable[tuple[object, object]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        example = '{"m_tiles": 2}' if name == "set" else '{"tma_a": (64, 128)}'
        raise ParameterError(f"{name} is {given!r}", correction=f"give a dict, for example {name}={example}")
    return given.items()


def _sizes(given: object) -> object:
    return ",".join(map(str, given)) if isinstance(given, Sequence) and not isinstance(given, str) else given


def target_from(given: object, params: Mapping[str, int], launch: KernelLaunch = NO_LAUNCH) -> Target:
    """What ``given`` names. UsageError, with a correction, for anything that is not a :data:`Given`."""
    if isinstance(given, str | PathLike):
        return launch.target(str(given))
    launch.require_none(given)
    if isinstance(given, Target):
        return given
    if isinstance(given, Protocol):
        if params:
            name, value = next(iter(params.items()))
            raise ParameterError(
                f"{given.name} was called already, so it takes no further parameters",
                cause=f"given: a Protocol, and {', '.join(params)}",
                correction=f"give the function itself: {given.name}, {name}={value}",
            )
        return target_of(given.flatten())
    if isinstance(given, Program) or callable(given):
        return target_of(given)
    raise ProtocolError(
        f"a protocol is expected, not {_what(given)}",
        cause="a protocol's function that ends without `return p` gives None" if given is None else "",
        correction="give a function that makes one, a built-in's name, file.py:function, or a program's .json",
    )


#: Keywords of the public functions that are no parameters of a protocol: proposed where a name is nearly one of them.
_OWN = (
    "box", "ctas", "hardware", "launch", "max_states", "profile", "set", "strict", "tolerance", "traced", "traces",
)  # fmt: skip


def whole_params(params: Mapping[str, int]) -> dict[str, int]:
    """The parameters as plain integers: a NumPy integer is one, True and 4.0 are none. ParameterError names which."""
    return {name: _whole(name, value) for name, value in params.items()}


def _similar_keyword(name: str) -> str:
    """The keyword of a public function that ``name`` nearly is, "" if there is none."""
    near = difflib.get_close_matches(name, _OWN, n=1, cutoff=0.8)
    return near[0] if near else ""


def build_target(
    given: Given,
    params: Mapping[str, int],
    ctas: int | None,
    strictness: Strictness | None = None,
    *,
    timed: bool = False,
    launch: KernelLaunch = NO_LAUNCH,
) -> tuple[Target, dict[str, int], Program]:
    """The target, its parameters and its program; UsageError for what cannot be built. ``timed``: to be simulated."""
    whole = whole_params(params)
    target = target_from(given, whole, launch)
    target = target.timed() if timed else target
    target = target if strictness is None else target.with_strictness(strictness)
    for name in whole:
        if name not in target.defaults and (meant := _similar_keyword(name)):
            raise ParameterError(f"there is no keyword {name!r}", correction=f"did you mean {meant}?")
    return target, whole, target.build(whole, grid=None if ctas is None else _whole("ctas", ctas))


def profile_from(given: object) -> Profile:
    """A latency profile, the name of a built-in one, or the path of a JSON file. ProfileError if there is none."""
    if isinstance(given, Profile):
        return given
    if isinstance(given, str | PathLike):
        return load_profile(str(given))
    raise UsageError(
        f"a latency profile is expected, not {_what(given)}",
        correction='give its name, such as "h100", the path of a JSON file, or what load_profile returned',
    )


def trace_from(given: object) -> tuple[Trace, str]:
    """A trace, or one read from a file, and what to call it. TraceFormatError for a file that is not a trace."""
    if isinstance(given, Trace):
        return given, f"a {'simulated' if given.meta.source == 'simulation' else 'recorded'} trace"
    if isinstance(given, str | PathLike):
        return read_trace(Path(given)), str(given)
    result = isinstance(getattr(given, "trace", None), Trace)
    raise UsageError(
        f"a trace is expected, not {_what(given)}",
        correction="give its .trace" if result else "give the path of a trace file, or what read_trace returned",
    )


def at_least_one(name: str, value: int) -> int:
    """``value`` if it is a whole number of 1 or more, else ParameterError."""
    if _whole(name, value) < 1:
        raise ParameterError(f"{name} is {value!r}", correction="give 1 or more")
    return index(value)


def above_zero(name: str, value: float | None) -> float | None:
    """``value`` if it is None or a number above 0, else ParameterError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ParameterError(f"{name} is {value!r}", correction="give a number of seconds above 0")
    return value


def _whole(name: str, value: object) -> int:
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]  # what has no __index__ is what this is about
        except TypeError:
            pass
    meant = _similar_keyword(name)
    if meant and meant != name:
        raise ParameterError(f"there is no keyword {name!r}", correction=f"did you mean {meant}?")
    raise ParameterError(f"{name} takes a whole number, not {value!r}", correction=f"for example {name}=4")


def _what(given: object) -> str:
    return "None" if given is None else f"something of type {type(given).__name__}"
