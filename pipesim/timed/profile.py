"""Latency profiles: how long each operation takes on one device. JSON documents beside this file, or the user's own.

All times are whole SM cycles, all sizes bytes. A document names its device and its units; :data:`FIELDS` is the whole
list of numbers that it must give (documented in ``docs/latency-profile.md``).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief  # of a value that may be as long as its file

from pipesim.bounds import MAX_CYCLES, MAX_KHZ, MAX_SMALL_BYTES
from pipesim.errors import ProfileError
from pipesim.inputs import InputKind
from pipesim.names import readable, shown, wrong_name
from pipesim.timed.stated_error import StatedError, parse_assumed, parse_errors

FORMAT = "pipesim-profile"
PROFILE_VERSION = 3
ADDED: dict[str, tuple[int, int]] = {"matrix.latency": (2, 30)}  #: value → since which version, what it was before
STATES_ERRORS = 3  #: the first version that states its errors and which values are assumed
MAX_VALUE = MAX_CYCLES  #: of any number in a profile: sums of many still fit the 64 bits of an event's time
FOLDER = Path(__file__).parent / "profiles"
_EDITED = "the file was edited, or is of another kind"
PROFILE = InputKind(
    "latency profile", MAX_SMALL_BYTES, ProfileError, "copy one of pipesim/timed/profiles, and change its values"
)

FIELDS: dict[str, str] = {
    "wait.issue": "a wait that passes immediately, from its issue to its return",
    "wait.wake_up": "from the completion of a phase by a landing to the return of a wait that was blocked on it",
    "wait.retry": "from a wait's first try_wait to its second, if the first failed",
    "wait.poll": "from each later try_wait to the next: an arrive does not wake a suspended try_wait, a landing does",
    "arrive.issue": "an arrive, from its issue to the agent's next operation",
    "arrive.latency": "from the issue of an arrive to the moment at which other agents can see its phase complete",
    "expect.issue": "an arrive.expect_tx, from its issue to the agent's next operation",
    "copy.issue": "a bulk copy, from its issue to the agent's next operation",
    "copy.latency": "from the issue of a bulk copy on an idle engine to its last byte, less the transfer itself",
    "copy.latency_loaded": "the same with a CTA on every SM",
    "copy.cold": "the additional time of a CTA's first copy (translation of addresses, first fetch of the code)",
    "copy.bytes_per_kcycle": "bytes that one SM's engine moves in 1,000 cycles",
    "copy.device_bytes_per_kcycle": "bytes that all SMs together can load in 1,000 cycles",
    "read.issue": "ordinary loads of a tile's share by a warp, the part that does not grow with its size",
    "read.bytes_per_kcycle": "bytes that one warp loads and reduces in 1,000 cycles",
    "work.issue": "the overhead of a work of n cycles",
    "loop.issue": "from the end of a loop iteration to the start of the next",
    "transfer.latency": "any other transfer (bulk store, cp.async), from its issue to its completion, less its bytes",
    "matrix.latency": "a matrix multiplication, from the end of its engine's work on it to its completion",
    "sync.latency": "a CTA or cluster barrier, from the last arrival to the return",
    "other.issue": "every other operation",
    "record.issue": "one record of the trace, where recording is simulated",
}


_AT_LEAST_ONE = frozenset({"wait.poll", *(field for field in FIELDS if "bytes" in field)})  #: divisors


@dataclass(frozen=True)
class Profile:
    """One device's latencies. ``values`` holds a number for each of :data:`FIELDS`.

    ``errors``: how far simulated periods were off measured ones, of each kernel that it was measured with; () if it
    states none, as before version 3. ``assumed``: values that are estimates.
    """

    name: str
    device: str
    sms: int
    sm_khz: int
    fitted: str  #: from what the numbers come
    values: dict[str, int]
    errors: tuple[StatedError, ...] = ()
    assumed: tuple[str, ...] = ()

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    def stated_error(self, kernel: str, ctas: int) -> StatedError | None:
        """What it states of launches of ``ctas`` CTAs of ``kernel``, None if nothing."""
        return next((each for each in self.errors if each.speaks_of(kernel, ctas)), None)


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
    version = data.get("version")
    if type(version) is not int or not 1 <= version <= PROFILE_VERSION:
        raise ProfileError(
            f"this latency profile is of version {brief(version)}; this pipesim reads versions 1 to {PROFILE_VERSION}",
            place=place,
        )
    if data.get("units") != "SM cycles, bytes":
        raise ProfileError('a latency profile names its units: "units": "SM cycles, bytes"', place=place)
    values = _values(data.get("values"), version, place)
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
            raise ProfileError(f"the {key} of this latency profile is {shown(text)}", place=place, cause=wrong)
    name, device, fitted = map(str, texts)
    states = version >= STATES_ERRORS
    errors = parse_errors(data.get("errors"), place) if states else ()
    assumed = parse_assumed(data.get("assumed"), FIELDS, place) if states else ()
    return Profile(name, device, data["sms"], data["sm_khz"], fitted, values, errors, assumed)


def _values(values: object, version: int, place: str) -> dict[str, int]:
    if not isinstance(values, dict):
        raise ProfileError('a latency profile has an object "values"', place=place)
    values = {field: default for field, (since, default) in ADDED.items() if version < since} | values
    for field in sorted(FIELDS.keys() ^ values.keys()):
        known = field in FIELDS
        raise ProfileError(
            f"the profile lacks value {field}" if known else f"the profile has an unknown value {readable(field)}",
            place=place,
            cause=f"{field} is {FIELDS[field]}" if known else "",
        )
    for field, value in values.items():
        least = 1 if field in _AT_LEAST_ONE else 0
        if type(value) is not int or not least <= value <= MAX_VALUE:
            what = "bytes" if "bytes" in field else "cycles"
            raise ProfileError(
                f"{field} = {brief(value)}: a whole number of {what} is needed, {least} to {MAX_VALUE:,}", place=place
            )
    return dict(values)


def scaled(nbytes: int, per_kcycle: int) -> int:
    """Cycles that ``nbytes`` take at a rate in bytes per 1,000 cycles, rounded up."""
    return -(-nbytes * 1000 // per_kcycle)
