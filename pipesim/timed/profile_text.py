"""A latency profile as the text of its document: what :func:`pipesim.timed.profile.parse_profile` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pipesim.timed.profile import FORMAT, PROFILE_VERSION, Profile

WAYS = ("measured", "fitted", "assumed")  #: how a value was obtained
SAYS_HOW = 4  #: the first version that says of every value how it was obtained; before, which ones are assumed


def profile_text(profile: Profile, how: Mapping[str, str], inputs: Sequence[str] = ()) -> str:
    """The document. ``how``: for each value whether it was measured, fitted or assumed; ``inputs``: the recordings
    that were fitted.
    """
    document: dict[str, object] = {
        "format": FORMAT,
        "version": PROFILE_VERSION,
        "name": profile.name,
        "device": profile.device,
        "sms": profile.sms,
        "sm_khz": profile.sm_khz,
        "units": "SM cycles, bytes",
        "fitted": profile.fitted,
        "inputs": list(inputs),
        "errors": [
            {
                "kernel": each.kernel,
                "ctas": list(each.ctas),
                "configurations": each.configurations,
                "median_permille": each.median_permille,
                "worst_permille": each.worst_permille,
            }
            for each in profile.errors
        ],
    }
    by_way = {way: [name for name in profile.values if how[name] == way] for way in WAYS}
    document |= {"how": by_way} if PROFILE_VERSION >= SAYS_HOW else {"assumed": by_way["assumed"]}
    document["values"] = dict(profile.values)
    return json.dumps(document, indent=1) + "\n"
