"""What tracks are called, in every format."""

from __future__ import annotations

from pipesim.scene.parts import SceneTrack


def cta_name(cta: int, sm: int) -> str:
    """``CTA 3 on SM 17``."""
    return f"CTA {cta} on SM {sm}" if sm >= 0 else f"CTA {cta}"


def track_name(track: SceneTrack) -> str:
    """``warp 4: consumer/0``, or what is in flight."""
    return f"warp {track.warp}: {track.name}" if track.warp >= 0 else track.name
