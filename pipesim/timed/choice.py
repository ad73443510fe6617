"""Which built-in profile belongs to a device."""

from __future__ import annotations

from pipesim.timed.profile import Profile, load_profile, profile_names

DEFAULT = "h100"


def profile_for(device: str) -> Profile:
    """The built-in profile of the device of this exact name, else of the nearest relative, the default one."""
    for name in profile_names():
        profile = load_profile(name)
        if profile.device == device:
            return profile
    return load_profile(DEFAULT)
