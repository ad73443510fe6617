"""The kinds of input, a module for each: ``make`` gives the case of some random choices. A new kind is a line here."""

from collections.abc import Mapping

from tools.fuzz.cases import Make
from tools.fuzz.kinds import dumps, kernels, launches, profiles, programs, protocols, schedules, traces

KINDS: Mapping[str, Make] = {
    "traces": traces.make,
    "programs": programs.make,
    "protocols": protocols.make,
    "profiles": profiles.make,
    "schedules": schedules.make,
    "kernels": kernels.make,
    "launches": launches.make,
    "sequences": launches.make_sequence,
    "dumps": dumps.make,
}
