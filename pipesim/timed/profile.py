"""Latency profiles: how long each operation takes on one device. JSON documents beside this file, or the user's own.

All times are whole SM cycles, all sizes bytes. A document names its device and its units; :data:`FIELDS` is the whole
list of numbers that it must give (documented in ``docs/latency-profile.md``).
"""

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from reprlib import repr as brief  # of a value that may be as long as its file
from typing import TypeGuard

from pipesim.bounds import MAX_CYCLES, MAX_GRID, MAX_KHZ, MAX_SMALL_BYTES
from pipesim.errors import ProfileError
from pipesim.inputs import InputKind, quoted_name, readable, wrong_name
from pipesim.version import __version__

_NUMBERS = ("configurations", "median_permille", "worst_permille")
_MEMBERS = ("kernel", "figure", "ctas", "params", *_NUMBERS)
PERIOD, WHOLE_RUN = "period", "whole run, traced"  #: the figures by which times are compared, the better one first
MOST_PERMILLE = 10**6
ASSUMED = "assumed"
WAYS = ("measured", "fitted", ASSUMED)  #: how a value of a profile was obtained


@dataclass(frozen=True)
class StatedError:
    """How far the simulated ``figure`` of a kernel was off the measured one: PERIOD, of launches without recording in
    the steady state, or WHOLE_RUN, from the first record to the last.

    Over ``configurations`` recordings of ``kernel`` (a protocol's name) to which nothing was fitted, in launches of
    ``ctas`` (least, most) CTAs with each of ``params`` between its two values: the median and the largest absolute
    difference in thousandths of what was measured.
    """

    kernel: str
    figure: str
    ctas: tuple[int, int]
    params: dict[str, tuple[int, int]]
    configurations: int
    median_permille: int
    worst_permille: int

    def beyond(self, ctas: int, params: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """What of a launch lies outside: the names of parameters, or "CTAs", each with the least and most measured."""
        sizes = {"CTAs": ctas, **params}
        ranges = {"CTAs": self.ctas, **self.params}
        return {name: both for name, both in ranges.items() if not both[0] <= sizes.get(name, both[0]) <= both[1]}


def parse_errors(data: object, place: str) -> tuple[StatedError, ...]:
    """The list ``errors`` of a profile. ProfileError if it is not one of objects with just the members needed."""
    if not isinstance(data, list):
        raise ProfileError(
            'a latency profile has a list "errors"',
            place=place,
            cause="it states how far simulated periods were off measured ones; an empty list states nothing",
        )
    return tuple(_parse(each, place) for each in data)


def parse_how(data: object, values: Collection[str], place: str) -> dict[str, str]:
    """The object ``how``: for each way the names of the values that were obtained so. ProfileError unless it names
    every value once.
    """
    if (
        not isinstance(data, dict)
        or not data.keys() <= set(WAYS)
        or not all(isinstance(v, list) for v in data.values())
    ):
        raise ProfileError(f'a latency profile has an object "how" with lists {", ".join(WAYS)}', place=place)
    names = [name for way in WAYS for name in data.get(way, ())]
    if not all(isinstance(name, str) for name in names) or sorted(names) != sorted(values):
        off = sorted({str(name) for name in names} ^ set(values)) or ["a value twice"]
        raise ProfileError('"how" names every value once, and nothing else', place=place, cause=readable(off[0]))
    return {name: way for way in WAYS for name in data.get(way, ())}


def _parse(data: object, place: str) -> StatedError:
    if not isinstance(data, dict) or set(data) != set(_MEMBERS):
        raise ProfileError(f'each of "errors" is an object with {", ".join(_MEMBERS)}', place=place)
    kernel, figure, ctas, params = (data[name] for name in _MEMBERS[:4])
    numbers = [data[name] for name in _NUMBERS]
    if not isinstance(kernel, str) or wrong_name(kernel):
        raise ProfileError('the "kernel" of a stated error is the name of a protocol', place=place)
    if figure not in (PERIOD, WHOLE_RUN):
        raise ProfileError(f'the "figure" of a stated error is "{PERIOD}" or "{WHOLE_RUN}"', place=place)
    if not _range(ctas) or not 1 <= ctas[0] <= ctas[1] <= MAX_GRID:
        raise ProfileError('the "ctas" of a stated error are the least and the most CTAs of a launch', place=place)
    if not isinstance(params, dict) or not all(map(_range, params.values())):
        raise ProfileError('the "params" of a stated error are the least and the most of parameters', place=place)
    if not _whole(*numbers) or not numbers[0] >= 1 or not 0 <= numbers[1] <= numbers[2] <= MOST_PERMILLE:
        raise ProfileError(
            f"a stated error has whole numbers {', '.join(_NUMBERS)}",
            place=place,
            cause="there is 1 configuration or more, and the worst error is not below the median",
        )
    ranges = {name: (least, most) for name, (least, most) in params.items()}
    return StatedError(kernel, figure, (ctas[0], ctas[1]), ranges, *numbers)


def _range(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and len(value) == 2 and _whole(*value) and value[0] <= value[1]


def _whole(*values: object) -> bool:
    return all(type(value) is int for value in values)


FORMAT = "pipesim-profile"
PROFILE_VERSION = 9
MAX_VALUE = MAX_CYCLES  #: of any number in a profile: sums of many still fit the 64 bits of an event's time
FOLDER = Path(__file__).parent / "profiles"
DEFAULT = "h100"
WORK_CONSTANT = re.compile(r"[a-z0-9_]+/[a-z0-9_]+[.](cycles|permille)")  #: the names of its two constants
_EDITED = "the file was edited, or is of another kind"
PROFILE = InputKind(
    "latency profile", MAX_SMALL_BYTES, ProfileError, "copy one of pipesim/timed/profiles, and change its values"
)

FIELDS: dict[str, str] = {
    "wait.issue": "a wait that passes immediately, from its issue to its return",
    "wait.wake_up": "from the completion of a phase by a landing to the return of a wait that was blocked on it",
    "wait.retry": "from a wait's first try_wait to its second, if the first failed",
    "wait.poll": "from each later try_wait to the next, and to a try's second look; only a landing wakes both",
    "arrive.issue": "an arrive, from its issue to the agent's next operation",
    "arrive.latency": "from the issue of an arrive to the moment at which other agents can see its phase complete",
    "expect.issue": "an arrive.expect_tx, from its issue to the agent's next operation",
    "copy.issue": "a bulk copy, from its issue to the agent's next operation",
    "copy.latency": "from the issue of a bulk copy on an idle engine to its last byte, less the transfer itself",
    "copy.latency_loaded": "the same with a CTA on every SM",
    "copy.cold": "the additional time of a CTA's first bulk operation, load or store (translation of addresses, code)",
    "copy.bytes_per_kcycle": "bytes that one SM's engine moves in 1,000 cycles",
    "copy.store_bytes_per_kcycle": "bytes of a bulk store that one SM's engine reads in 1,000 cycles",
    "copy.device_bytes_per_kcycle": "bytes that all SMs together can load in 1,000 cycles",
    "copy.device_fresh_bytes_per_kcycle": "the same of data that the SM's side of the L2 cache has not read before",
    "copy.device_shared_bytes_per_kcycle": "the same of data that several SMs load at about the same time",
    "copy.memory_bytes_per_kcycle": "the same of data that is in no cache",
    "copy.cached_bytes": "bytes of streamed copies that a launch can make from the L2 cache",
    "read.issue": "ordinary loads of a tile's share by a warp, the part that does not grow with its size",
    "read.bytes_per_kcycle": "bytes that one warp loads and reduces in 1,000 cycles",
    "work.issue": "the overhead of a work of n cycles",
    "loop.issue": "from the end of a loop iteration to the start of the next",
    "transfer.latency": "any other transfer (bulk store, cp.async), from its issue to its completion, less its bytes",
    "matrix.latency": "a matrix multiplication, from the end of its engine's work on it to its completion",
    "sync.latency": "a CTA or cluster barrier, from the last arrival to the return",
    "other.issue": "every other operation",
    "record.issue": "one record of the trace, where recording is simulated",
    "class.rounds": "thousandths of a cycle of one access to shared memory that the next one waits for",
    "class.fma": "thousandths of a cycle of one warp instruction of floating-point arithmetic, a warp alone",
    "class.alu": "thousandths of a cycle of one warp instruction of integers, comparisons, conversions, a warp alone",
    "class.exp2": "thousandths of a cycle of one warp instruction of the special-function unit",
    "class.shuffles": "thousandths of a cycle of one warp shuffle that the next one waits for",
    "class.shared_bytes": "thousandths of a cycle of one byte of shared memory that a warp alone reads or writes",
    "class.global_accesses": "thousandths of a cycle of one access to global memory that the next one waits for",
    "class.global_bytes": "thousandths of a cycle of one byte that a warp writes to global memory",
    "class.copies": "thousandths of a cycle of one instruction that starts a further bulk copy",
    "class.products": "thousandths of a cycle that issuing one instruction of a matrix multiplication takes at least",
    "class.warp_products": "thousandths of a cycle of 256 multiply-adds of mma.sync (16-bit operands), a warp alone",
    "class.proxy_fences": "thousandths of a cycle of a fence between proxies after accesses to shared memory",
    "class.cluster_fences": "thousandths of a cycle of an arrive at cluster scope, until it takes effect",
    "class.fences_beside": "thousandths of a cycle by which such an arrive of another warp makes it longer",
    "ptx.wait": "as wait.issue, of a program whose other instructions have prices of their own",
    "ptx.arrive": "as arrive.issue, in such a program",
    "ptx.expect": "as expect.issue, in such a program",
    "ptx.copy": "as copy.issue, in such a program",
    "ptx.sync": "as sync.latency, in such a program",
    "ptx.record": "as record.issue, in such a program",
    "ptx.slots_permille": "as mma.slots_permille, in such a program",
    "class.fresh_copies": "thousandths of a cycle by which a bulk copy of fresh data comes later",
    "class.streamed_copies": "thousandths of a cycle by which a streamed copy comes later if a cache cannot hold all",
    "class.global_lines": "thousandths of a cycle of the SM's memory for a line of global memory that a store touches",
    "shared.bytes_per_kcycle": "bytes that the shared memory of an SM moves for all its warps in 1,000 cycles",
    "mma.per_kcycle": "multiply-adds that the tensor cores of an SM make in 1,000 cycles",
    "try.limit": "a single try_wait that bulk copies complete, until it gives up; 0: no try waits, or looks twice",
    "mma.queue": "instructions of matrix multiplications that a quarter of an SM has taken and not ended, at most",
    "mma.slots_permille": "thousandths of a quarter's issue slots that its tensor core takes while it works",
    "mma.issue_permille": "thousandths of the time of such an instruction that its issue takes its warp",
    "copy.loaded_bytes": "bytes of a copy on every SM from which on its latency is that of a loaded device",
    "clock.tensor_permille": "thousandths of the SM clock that are left where a launch multiplies matrices on one SM",
    "clock.tensor_loaded_permille": "the same with a CTA on every SM",
    "cta.start": "from the begin of a CTA to the first operation of its agents, and from their last to its end",
    "word.load": "a load of a word of global memory; a loop on one makes one after the other",
    "word.store": "a relaxed store to such a word or addition to it, from its issue to the agent's next operation",
    "word.release": "the same of one that releases, with its fence; a load that begins then finds it",
    "word.count": "from there until loads find an addition to a counter that several raise",
}

#: What a profile that lacks them takes, as assumed: as measured on an H200 (docs/experiments.md).
OF_WORDS: dict[str, int] = {"word.load": 330, "word.store": 39, "word.release": 612, "word.count": 635}


#: What takes the place of a value in a program whose instructions between two operations are priced by their classes:
#: the others were measured in loops, with the instructions that stand around an operation there.
OF_INSTRUCTIONS: dict[str, str] = {
    "wait.issue": "ptx.wait",
    "arrive.issue": "ptx.arrive",
    "expect.issue": "ptx.expect",
    "copy.issue": "ptx.copy",
    "sync.latency": "ptx.sync",
    "record.issue": "ptx.record",
    "mma.slots_permille": "ptx.slots_permille",
}

#: Divisors.
AT_LEAST_ONE = frozenset(
    {
        "wait.poll",
        "word.load",
        "mma.queue",
        "copy.loaded_bytes",
        *(name for name in FIELDS if "per_kcycle" in name or name.startswith("clock.")),
    }
)


#: The others are at most MAX_VALUE. Of issue slots that a tensor core takes many times over nothing is left for works.
AT_MOST: dict[str, int] = {"mma.slots_permille": 4_000, "ptx.slots_permille": 4_000}
#: Values that count bytes and are no rates.
OF_BYTES = frozenset({"copy.cached_bytes", "copy.loaded_bytes"})


@dataclass(frozen=True)
class Profile:
    """One device's latencies. ``values`` holds a number for each of :data:`FIELDS`, and may hold constants of works.

    The work ``kernel/name`` has ``kernel/name.cycles`` (its overhead) and ``kernel/name.permille`` (the factor of its
    amounts' time). ``how`` says how a value was obtained: measured, fitted or assumed. ``errors``: how far
    simulated periods were off measured ones, for each kernel that it was measured with. ``assumed``: values that are
    estimates.
    """

    name: str
    device: str
    sms: int
    sm_khz: int
    fitted: str  #: from what the numbers come
    values: dict[str, int]
    errors: tuple[StatedError, ...] = ()
    assumed: tuple[str, ...] = ()
    how: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    def knows(self, work: str) -> bool:
        """Whether it has constants for the work of this name."""
        return f"{work}.cycles" in self.values

    def stated_errors(self, kernel: str, figure: str) -> tuple[StatedError, ...]:
        """What it states of launches of ``kernel``."""
        return tuple(each for each in self.errors if (each.kernel, each.figure) == (kernel, figure))


def load_profile(name: str) -> Profile:
    """A profile by the name of a built-in one ("h100", "h200") or by the path of a JSON file; else ProfileError."""
    path = Path(name)
    if path.suffix != ".json":
        path = FOLDER / f"{name}.json"
        if name not in profile_names():
            near = difflib.get_close_matches(name, profile_names(), n=1)
            others = f"use one of {', '.join(profile_names())}, or the path of a JSON file"
            raise ProfileError(
                f"there is no latency profile {name!r}",
                correction=f"did you mean {near[0]}? If not, {others}" if near else others,
            )
    return parse_profile(PROFILE.read_text(path), str(path))


def profile_names() -> list[str]:
    """The built-in profiles."""
    return sorted(p.stem for p in FOLDER.glob("*.json"))


def profile_for(device: str) -> Profile:
    """The built-in profile of the device of this exact name, else of the nearest relative, the default one."""
    profiles = map(load_profile, profile_names())
    return next((profile for profile in profiles if profile.device == device), None) or load_profile(DEFAULT)


def parse_profile(text: str, place: str = "") -> Profile:
    """The profile in ``text``, from the file ``place``. ProfileError: what is missing, unknown, or no whole number."""
    try:
        return _profile(PROFILE.parse_json(text, place), place)
    except ProfileError as error:
        raise error.completed(cause=_EDITED, correction=PROFILE.correction) from None


def _profile(data: object, place: str) -> Profile:
    """The profile in a JSON document."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProfileError(f'this JSON is not a latency profile: it has no "format": "{FORMAT}"', place=place)
    found = data.get("version")
    if type(found) is not int or found != PROFILE_VERSION:
        raise ProfileError(
            f"this latency profile is of version {brief(found)}; this pipesim reads version {PROFILE_VERSION}",
            place=place,
            cause="it was written for another pipesim, which knew other values",
        )
    if data.get("units") != "SM cycles, bytes":
        raise ProfileError('a latency profile names its units: "units": "SM cycles, bytes"', place=place)
    values = _values(data.get("values"), place)
    texts = [data.get(key) for key in ("name", "device", "fitted")]
    sizes = [data.get(key) for key in ("sms", "sm_khz")]
    if not all(isinstance(v, str) for v in texts) or not all(type(v) is int and 0 < v <= MAX_KHZ for v in sizes):
        raise ProfileError(
            "a latency profile names name, device, fitted (text), sms and sm_khz (whole numbers)",
            place=place,
            cause=f"sm_khz is the SM clock in kHz, at most {MAX_KHZ:,}",
        )
    for key, text in zip(("name", "device", "fitted"), map(str, texts), strict=True):
        wrong = wrong_name(text)
        if wrong:
            raise ProfileError(f"the {key} of this latency profile is {quoted_name(text)}", place=place, cause=wrong)
    inputs = data.get("inputs", [])
    if not isinstance(inputs, list) or not all(isinstance(each, str) for each in inputs):
        raise ProfileError("inputs of a latency profile is a list of the recordings that it was fitted to", place=place)
    name, device, fitted = map(str, texts)
    errors = parse_errors(data.get("errors"), place)
    how = parse_how(data.get("how"), values, place) | {name: ASSUMED for name in OF_WORDS if name not in values}
    values = OF_WORDS | values
    assumed = tuple(value for value, way in how.items() if way == ASSUMED)
    return Profile(name, device, data["sms"], data["sm_khz"], fitted, values, errors, assumed, how)


def _values(data: object, place: str) -> dict[str, int]:
    """The values of a profile."""
    if not isinstance(data, dict):
        raise ProfileError('a latency profile has an object "values"', place=place)
    works = {name for name in data if WORK_CONSTANT.fullmatch(name)}
    for name in sorted(FIELDS.keys() ^ (OF_WORDS.keys() | data.keys() - works)):
        known = name in FIELDS
        raise ProfileError(
            f"the profile lacks value {name}" if known else f"the profile has an unknown value {readable(name)}",
            place=place,
            cause=f"{name} is {FIELDS[name]}" if known else "",
        )
    for name, value in data.items():
        least, most = 1 if name in AT_LEAST_ONE else 0, AT_MOST.get(name, MAX_VALUE)
        if type(value) is not int or not least <= value <= most:
            raise ProfileError(
                f"{name} = {brief(value)}: a whole number of {_unit(name)} is needed, {least} to {most:,}", place=place
            )
    return data


def _unit(name: str) -> str:
    """What the number of a value counts."""
    if "bytes_per" in name or name in OF_BYTES:
        return "bytes"
    return "cycles"


def cycles_at_rate(nbytes: int, per_kcycle: int) -> int:
    """Cycles that ``nbytes`` take at a rate in bytes per 1,000 cycles, rounded up."""
    return -(-nbytes * 1000 // per_kcycle)


def profile_text(profile: Profile, how: Mapping[str, str], inputs: Sequence[str] = ()) -> str:
    """The document. ``how``: for each value whether it was measured, fitted or assumed; ``inputs``: the recordings
    that were fitted.
    """
    document: dict[str, object] = {
        "format": FORMAT,
        "version": PROFILE_VERSION,
        "pipesim": __version__,
        "name": profile.name,
        "device": profile.device,
        "sms": profile.sms,
        "sm_khz": profile.sm_khz,
        "units": "SM cycles, bytes",
        "fitted": profile.fitted,
        "inputs": list(inputs),
        "errors": [asdict(each) for each in profile.errors],
        "how": {way: [name for name in profile.values if how[name] == way] for way in WAYS},
        "values": dict(profile.values),
    }
    return json.dumps(document, indent=1) + "\n"
